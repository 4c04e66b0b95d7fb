// SPDX-License-Identifier: GPL-2.0

//! Opening, creating and closing without memory.

use kernel::prelude::*;

use super::{
    completion::{
        AutoClose,
        CallbackValue, //
    },
    host::{
        here,
        pd,
        HostAttr,
        Queue,
        TestHost,
        NAME,
        SIZES, //
    },
    memory::PageBuffer,
    oom::{
        closed,
        everywhere,
        has_faults,
        never,
        Strike,
        Struck, //
    },
    pair::{
        Pair,
        READS, //
    }, //
};
use crate::{
    engine::memory::CHUNK_BYTES,
    kunit::harness::cases,
    ndk::{
        adapter::{
            open,
            OpenBy,
            VERSION, //
        },
        connector::Source,
        cq::CqUser,
        life::{
            ObjectType,
            Ref, //
        },
        srq::{
            SrqSizes,
            SrqUser, //
        },
        status::{
            NtStatus,
            Progress, //
        }, //
    },
    rdma::values::qp::QpCaps,
    sys::fault::is_counted, //
};

/// Sizes of which each takes less than a page.
const SMALL: QpCaps = QpCaps {
    recv_wr: 8,
    send_wr: 8,
    recv_sge: 2,
    send_sge: 2,
    inline_data: 16,
    ..QpCaps::NONE
};

/// Sizes of which each takes more than a page.
const LARGE: QpCaps = QpCaps {
    recv_wr: 512,
    send_wr: 512,
    recv_sge: 4,
    send_sge: 4,
    inline_data: 64,
    ..QpCaps::NONE
};

fn cq_user() -> Result<CqUser> {
    Ok(KBox::new(|_: NtStatus| (), GFP_KERNEL)?)
}

/// Closes an object that was created inline.
fn closed_now<T: ObjectType>(made: Result<Ref<T>, NtStatus>) -> Result<i32> {
    closed(made.map(AutoClose::new).map_err(NtStatus::raw))
}

/// Lets an inline creation fail at each allocation.
fn at_once<T: ObjectType>(
    test_host: &TestHost,
    mut create: impl FnMut(&mut Strike<'_>) -> Result<Result<Ref<T>, NtStatus>>,
) -> Result<Struck> {
    everywhere(test_host, |strike| {
        strike.begin();
        let made = create(strike)?;
        strike.end();
        closed_now(made)
    })
}

#[kernel::macros::kunit_tests(ndk_kunit_ndk_oom_create)]
mod tests {
    use super::*;

    #[test]
    fn opening_fails_at_each_allocation() -> Result {
        if !has_faults()? {
            return Ok(());
        }
        let test_host = TestHost::new()?;
        let struck = everywhere(&test_host, |strike| {
            strike.begin();
            let which = OpenBy::first(NAME);
            let (opened, _) = strike.inline(|| open(&test_host.context, &which, VERSION));
            strike.end();
            Ok(match opened {
                Ok(adapter) => {
                    adapter.close_and_wait();
                    0
                }
                Err(status) => status.raw(),
            })
        })?;
        // The event of the end, its waiter, the adapter.
        assert!(struck.is_by(3, 0, 0));
        Ok(())
    }

    #[test]
    fn objects_that_come_at_once_fail_at_each_allocation() -> Result {
        if !has_faults()? {
            return Ok(());
        }
        let test_host = TestHost::new()?;
        let adapter = &test_host.adapter;
        let domain = pd(adapter)?;
        let struck = at_once(&test_host, |strike| {
            Ok(strike.inline(|| adapter.create_pd()).0)
        })?;
        assert!(struck.is_by(2, 0, 0));
        for fast in cases([false, true]) {
            let struck = at_once(&test_host, |strike| {
                Ok(strike.inline(|| domain.create_mr(fast)).0)
            })?;
            assert!(struck.is_by(1, 0, 0));
        }
        let struck = at_once(&test_host, |strike| {
            Ok(strike.inline(|| adapter.create_connector()).0)
        })?;
        assert!(struck.is_by(2, 0, 0));
        let struck = at_once(&test_host, |strike| {
            let user = KBox::new(|_| (), GFP_KERNEL)?;
            Ok(strike.inline(|| adapter.create_listener(user)).0)
        })?;
        assert!(struck.is_by(2, 0, 0));
        Ok(())
    }

    #[test]
    fn ndk_gen_07_a_queue_fails_inline_and_through_its_completion() -> Result {
        if !has_faults()? {
            return Ok(());
        }
        let test_host = TestHost::new()?;
        // 2048 results are more than a page, 16 are less.
        for depth in cases([16, 2048]) {
            let struck = everywhere(&test_host, |strike| {
                let user = cq_user()?;
                let made =
                    strike.create(|done| test_host.adapter.create_cq(depth, None, user, done))?;
                closed(made)
            })?;
            // The work; users, events, the ring, the queue, its place in the adapter, the object.
            assert!(struck.is_by(1, 6, 1));
        }
        Ok(())
    }

    #[test]
    fn shared_queues_fail_at_each_allocation() -> Result {
        if !has_faults()? {
            return Ok(());
        }
        let test_host = TestHost::new()?;
        let domain = pd(&test_host.adapter)?;
        for depth in cases([16, 2048]) {
            let sizes = SrqSizes {
                depth,
                sges: 2,
                threshold: 4,
            };
            let struck = everywhere(&test_host, |strike| {
                let user: SrqUser = Some(KBox::new(|_: NtStatus| (), GFP_KERNEL)?);
                closed(strike.create(|done| domain.create_srq(sizes, user, done))?)
            })?;
            assert!(struck.is_by(1, 7, 2));
        }
        Ok(())
    }

    #[test]
    fn queue_pairs_fail_at_each_allocation() -> Result {
        if !has_faults()? {
            return Ok(());
        }
        let test_host = TestHost::new()?;
        let domain = pd(&test_host.adapter)?;
        let shared = SrqSizes {
            depth: 16,
            sges: 2,
            threshold: 0,
        };
        let mut none = Strike::none(&test_host);
        let srq = none.create(|done| domain.create_srq(shared, None, done))?;
        let srq = srq.map_err(|_| EIO)?;
        for sizes in cases([SMALL, LARGE]) {
            for srq in [None, Some(&*srq)] {
                let struck = everywhere(&test_host, |strike| {
                    let (receives, requests) = (test_host.queue(16)?, test_host.queue(16)?);
                    let cqs = (&*receives.cq, &*requests.cq);
                    let made = strike.create(|done| domain.create_qp(cqs, srq, 0, sizes, done))?;
                    closed(made)
                })?;
                // The rings and their elements; the queue pair, its places among the users of its
                // completion queues, the object. With a shared queue no elements of receives, a
                // place among its users, and one among its waiters.
                assert!(match srq {
                    None => struck.is_by(1, 9, 5),
                    Some(_) => struck.is_by(1, 10, 4),
                });
            }
        }
        Ok(())
    }

    #[test]
    fn windows_and_shared_endpoints_fail_at_each_allocation() -> Result {
        if !has_faults()? {
            return Ok(());
        }
        let test_host = TestHost::new()?;
        let domain = pd(&test_host.adapter)?;
        let struck = everywhere(&test_host, |strike| {
            closed(strike.create(|done| domain.create_mw(done))?)
        })?;
        assert!(struck.is_by(1, 2, 0));
        let struck = everywhere(&test_host, |strike| {
            closed(strike.create(|done| test_host.adapter.create_shared_endpoint(here(0), done))?)
        })?;
        // The place of the address, its reservation, the object.
        assert!(struck.is_by(1, 3, 0));
        Ok(())
    }

    /// No region was made on the device before: the table of regions grows.
    #[test]
    fn the_first_window_of_a_device_fails_at_each_allocation() -> Result {
        if !has_faults()? {
            return Ok(());
        }
        let outer = TestHost::new()?;
        let struck = everywhere(&outer, |strike| {
            let test_host = TestHost::new()?;
            let domain = pd(&test_host.adapter)?;
            test_host.flush_work();
            closed(strike.create(|done| domain.create_mw(done))?)
        })?;
        // The size of a chunk of the table depends on the size of the kernel's locks.
        match is_counted(CHUNK_BYTES) {
            true => assert!(struck.is_by(1, 3, 1)),
            false => assert!(struck.is_by(1, 2, 0)),
        }
        Ok(())
    }

    #[test]
    fn listening_fails_at_each_allocation() -> Result {
        if !has_faults()? {
            return Ok(());
        }
        let test_host = TestHost::new()?;
        let struck = everywhere(&test_host, |strike| {
            let user = KBox::new(|_| (), GFP_KERNEL)?;
            let mut listener =
                AutoClose::new(test_host.adapter.create_listener(user).map_err(|_| EIO)?);
            let status = strike.request(|done| listener.listen(here(0), done))?;
            if status != NtStatus::SUCCESS.raw() {
                // The same listener may try again.
                let mut none = Strike::none(&test_host);
                kunit_assert_eq!(none.request(|done| listener.listen(here(0), done))?, 0);
            }
            assert!(listener.address().is_ok());
            assert!(listener.close_and_wait()?);
            Ok(status)
        })?;
        assert!(struck.is_by(1, 4, 0));
        Ok(())
    }

    /// Each close is made without any memory, both its own part and its work.
    #[test]
    fn closing_needs_no_memory() -> Result {
        if !has_faults()? {
            return Ok(());
        }
        let mut pair = Pair::new()?;
        let sizes = SrqSizes {
            depth: 16,
            sges: 2,
            threshold: 0,
        };
        let mut none = Strike::none(&pair.test_host);
        let srq = none.create(|done| pair.a.pd.create_srq(sizes, None, done))?;
        let mw = none.create(|done| pair.a.pd.create_mw(done))?;
        let end =
            none.create(|done| pair.test_host.adapter.create_shared_endpoint(here(0), done))?;
        let buffer = pair.a.buffer(100, 1)?;
        let fast = PageBuffer::fast(&pair.a.pd, 8192, true)?;
        pair.b.receive(1, &[])?;
        let mut others = (srq, mw, end, buffer.mr, fast.mr);
        let test_host = &pair.test_host;
        close_without(test_host, pair.a.connector.as_mut())?;
        close_without(test_host, pair.b.connector.as_mut())?;
        close_without(test_host, Some(&mut pair.open_listener.listener))?;
        close_without(test_host, others.0.as_mut().ok())?;
        close_without(test_host, others.1.as_mut().ok())?;
        close_without(test_host, others.2.as_mut().ok())?;
        close_without(test_host, others.3.as_mut())?;
        close_without(test_host, others.4.as_mut())?;
        for test_side in [&mut pair.a, &mut pair.b] {
            close_without(test_host, Some(&mut test_side.qp))?;
            close_without(test_host, Some(&mut test_side.requests.cq))?;
            close_without(test_host, Some(&mut test_side.receives.cq))?;
            close_without(test_host, Some(&mut test_side.pd))?;
        }
        never(test_host, || {
            test_host.adapter.close_and_wait();
            Ok(())
        })
    }

    /// A queue full of results that were not polled, and a request without an answer.
    #[test]
    fn closing_what_is_busy_needs_no_memory() -> Result {
        if !has_faults()? {
            return Ok(());
        }
        let mut pair = Pair::unconnected(&HostAttr::PLAIN, SIZES, SIZES)?;
        let (test_host, open_listener) = (&pair.test_host, &pair.open_listener);
        let mut ours = AutoClose::new(test_host.adapter.create_connector().map_err(|_| EIO)?);
        let slot = CallbackValue::new()?;
        let from = Source::Address(here(0));
        let done = slot.callback()?;
        let asked = ours.connect(
            &pair.a.qp,
            (from, open_listener.at),
            READS,
            KVec::new(),
            done,
        );
        assert!(asked.is_ok());
        let mut theirs = open_listener.incoming()?;
        close_without(test_host, Some(&mut theirs))?;
        // Refused: the connector that would have accepted is closed.
        assert!(slot
            .wait()
            .is_some_and(|status| status != NtStatus::SUCCESS));
        close_without(test_host, Some(&mut ours))?;
        for context in cases(0..32) {
            pair.a.receive(context, &[])?;
        }
        let (qp, queue): (_, &Queue) = (&mut pair.a.qp, &pair.a.receives);
        qp.flush();
        close_without(test_host, Some(qp))?;
        assert!(queue.next_is(0, NtStatus::CANCELLED));
        Ok(())
    }

    fn close_without<T: ObjectType>(
        test_host: &TestHost,
        object: Option<&mut AutoClose<T>>,
    ) -> Result {
        let object = object.ok_or(EINVAL)?.give_up()?;
        let slot = CallbackValue::new()?;
        let done = slot.callback()?;
        never(test_host, || match object.close(done) {
            Progress::Done => Ok(()),
            Progress::Pending => slot.wait().ok_or(ETIMEDOUT),
        })?;
        Ok(())
    }
}
