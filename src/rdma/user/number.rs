// SPDX-License-Identifier: GPL-2.0

//! The numbers of queue pairs of programs, each with a stand-in for its queue pair.
//!
//! uverbs reads the number of a queue pair through the pointer in a polled completion, while
//! another thread of the program may destroy that queue pair; and completions stay in their queue
//! when their queue pair goes. So a completion of a program points at a stand-in instead of a queue
//! pair: only its number is valid, and it lives as long as the module has devices. A stand-in that
//! is given back is used again, under the same number, but not before [`RESTING`] stand-ins lie
//! idle, the oldest first: a completion that was polled late, and the core's own list of objects,
//! which forgets a queue pair after the provider has, find no other queue pair under that number.
//! So there are at most [`RESTING`] more stand-ins than programs had queue pairs at one time.

use kernel::{
    alloc::KBox,
    new_mutex,
    sync::Mutex, //
};

use super::super::{
    prelude::*,
    qp::{
        QpCookie,
        Qpn, //
    }, //
};

/// A queue pair with `qp_num` as its only valid field, which never changes.
struct StandIn(bindings::ib_qp);

// SAFETY: All its pointers are null; readers read only the number.
unsafe impl Send for StandIn {}
// SAFETY: As above.
unsafe impl Sync for StandIn {}

/// A number with its stand-in.
struct Numbered {
    qpn: Qpn,
    stand_in: KBox<StandIn>,
}

/// The most queue pairs that programs have at a time on all devices: half of all numbers, so that
/// the kernel always finds a free one. Each device has its own limit, too.
const MOST: usize = 1 << 22;

/// Numbers that rest before the oldest is used again, unless the pool has reached its limit.
const RESTING: usize = 1024;

/// The numbers of a [`NumberPool`].
struct Pool {
    /// Free numbers, the oldest first; there is always room for all numbers made.
    free: KVVec<Numbered>,
    /// Numbers made, free or not.
    made: usize,
    /// The most numbers that may be made.
    most: usize,
}

impl Pool {
    /// Returns true if the oldest free number is due for use.
    fn is_rested(&self) -> bool {
        self.free.len() >= RESTING || (self.made >= self.most && !self.free.is_empty())
    }
}

/// The numbers of programs' queue pairs. The pool must outlive all polling.
#[pin_data]
pub(in crate::rdma) struct NumberPool {
    #[pin]
    pool: Mutex<Pool>,
}

impl NumberPool {
    /// Makes an empty pool. Process context.
    pub(super) fn new() -> Result<Arc<Self>> {
        Self::with_most(MOST)
    }

    /// Makes an empty pool for at most `most` queue pairs at a time. Process context.
    fn with_most(most: usize) -> Result<Arc<Self>> {
        let pool = Pool {
            free: KVVec::new(),
            made: 0,
            most,
        };
        Arc::pin_init(pin_init!(Self { pool <- new_mutex!(pool) }), GFP_KERNEL)
    }
}

/// The number of a program's queue pair; given back on drop.
pub(in crate::rdma) struct UserQpn {
    numbered: Option<Numbered>,
    from: Arc<NumberPool>,
}

impl UserQpn {
    /// Takes a number that finds no queue pair yet. Process context.
    pub(in crate::rdma) fn take(from: &Arc<NumberPool>) -> Result<Self> {
        let one = |numbered| Self {
            numbered: Some(numbered),
            from: from.clone(),
        };
        let mut pool = from.pool.lock();
        if pool.is_rested() {
            return Ok(one(pool.free.remove(0).map_err(|_| EINVAL)?));
        }
        let made = pool.made.saturating_add(1);
        if made > pool.most {
            return Err(ENOMEM);
        }
        // Giving back must not fail, so there is room for all numbers.
        let more = made.saturating_sub(pool.free.len());
        pool.free.reserve(more, GFP_KERNEL)?;
        let qpn = Qpn::take()?;
        let stand_in = StandIn(bindings::ib_qp {
            qp_num: qpn.number(),
            ..Default::default()
        });
        let stand_in = KBox::new(stand_in, GFP_KERNEL)?;
        pool.made = made;
        Ok(one(Numbered { qpn, stand_in }))
    }

    /// The number.
    pub(in crate::rdma) fn qpn(&self) -> Option<&Qpn> {
        self.numbered.as_ref().map(|numbered| &numbered.qpn)
    }

    /// Returns the address for completions, that of the stand-in.
    pub(in crate::rdma) fn cookie(&self) -> QpCookie {
        let stand_in = self.numbered.as_ref().map(|numbered| &numbered.stand_in.0);
        QpCookie::from_raw(stand_in.map_or(0, |qp| core::ptr::from_ref(qp).expose_provenance()))
    }
}

impl Drop for UserQpn {
    fn drop(&mut self) {
        if let Some(numbered) = self.numbered.take() {
            numbered.qpn.unpublish();
            let given_back = self.from.pool.lock().free.push_within_capacity(numbered);
            // There is room, so this never fails; a number that is not kept must not be freed,
            // either.
            if let Err(lost) = given_back {
                core::mem::forget(lost.0);
            }
        }
    }
}

#[cfg(ndk_kunit)]
#[kernel::macros::kunit_tests(ndk_rdma_user_number)]
mod tests {
    use super::*;

    /// Reads the number as uverbs does, through the pointer of a completion.
    fn number_behind(qpn: &UserQpn) -> u32 {
        let stand_in =
            core::ptr::with_exposed_provenance::<bindings::ib_qp>(qpn.cookie().into_raw());
        // SAFETY: The stand-in lives at least as long as `qpn`.
        unsafe { (*stand_in).qp_num }
    }

    /// Takes a number, gives it back, and returns it.
    fn pass(pool: &Arc<NumberPool>) -> Result<u32> {
        Ok(number_behind(&UserQpn::take(pool)?))
    }

    #[test]
    fn a_stand_in_has_its_number_and_keeps_it() -> Result {
        let pool = NumberPool::with_most(3)?;
        let (one, two) = (UserQpn::take(&pool)?, UserQpn::take(&pool)?);
        let (first, second) = (number_behind(&one), number_behind(&two));
        assert!(first != second);
        assert!(one.qpn().is_some_and(|qpn| qpn.number() == first));
        let cookie = one.cookie();
        drop(one);
        let third = UserQpn::take(&pool)?;
        assert!(third.cookie() != cookie);
        // No more numbers may be made: the first is used again, with its stand-in.
        let fourth = UserQpn::take(&pool)?;
        kunit_assert_eq!(fourth.cookie(), cookie);
        kunit_assert_eq!(number_behind(&fourth), first);
        assert!(UserQpn::take(&pool).is_err_and(|e| e == ENOMEM));
        // The number that was given back first is used first.
        let cookie = third.cookie();
        drop(third);
        drop(fourth);
        kunit_assert_eq!(UserQpn::take(&pool)?.cookie(), cookie);
        kunit_assert_eq!(number_behind(&two), second);
        Ok(())
    }

    #[test]
    fn a_number_rests_until_many_others_do() -> Result {
        let pool = NumberPool::new()?;
        let first = pass(&pool)?;
        for _ in 1..RESTING {
            assert!(pass(&pool)? != first);
        }
        kunit_assert_eq!(pass(&pool)?, first);
        assert!(pass(&pool)? != first);
        // The pool never made more numbers than that.
        kunit_assert_eq!(pool.pool.lock().made, RESTING);
        Ok(())
    }
}
