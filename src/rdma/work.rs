// SPDX-License-Identifier: GPL-2.0

//! Chains of send requests as the consumer posted them: checked, borrowed
//! views, and the only writer of `bad_wr`.
//!
//! Nothing is copied but what a request carries by value, and nothing is
//! allocated. The chain and its scatter lists are the consumer's and are valid
//! during the post only.
//!
//! C: `struct ib_send_wr` and what it is embedded in, `struct ib_sge`.

use core::slice;

use kernel::container_of;

use super::{
    mr::Mr,
    prelude::*,
    user::post::{
        self,
        UserRequest, //
    },
    values::access::AccessFlags, //
};
use crate::sys::sge::{
    Posted,
    Sge, //
};

/// The scatter list of a request that is posted, at any address. C: `struct ib_sge`.
#[derive(Clone)]
pub(crate) struct Sges<'a>(slice::Iter<'a, Unaligned<bindings::ib_sge>>);

impl Iterator for Sges<'_> {
    type Item = Sge;

    #[inline]
    fn next(&mut self) -> Option<Sge> {
        let bindings::ib_sge { addr, length, lkey } = self.0.next()?.get();
        Some(Sge::new(addr, length, lkey))
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl ExactSizeIterator for Sges<'_> {}

/// The list of the request `wr_id`. `EINVAL` if its length makes no sense.
///
/// # Safety
///
/// `list` has `count` entries that do not change during `'a`, in a work request that a consumer of
/// the kernel posts, or a program by way of [`Chain::post_from`], which lets no key of the kernel's
/// memory through.
#[inline]
pub(super) unsafe fn posted<'a>(
    wr_id: u64,
    list: *const bindings::ib_sge,
    count: c_int,
) -> Result<Posted<Sges<'a>>> {
    let count = usize::try_from(count).map_err(|_| EINVAL)?;
    let sges = match count {
        0 => &[],
        _ if list.is_null() => return Err(EINVAL),
        // SAFETY: The caller says that the entries are there; they are seen as unaligned.
        _ => unsafe { slice::from_raw_parts(list.cast(), count) },
    };
    // SAFETY: The consumer promises by his post that memory under the device's `local_dma_lkey` is
    // his until the request has completed.
    Ok(unsafe { Posted::new(wr_id, Sges(sges.iter())) })
}

/// The list of a test's request that has no memory.
#[cfg(ndk_kunit)]
pub(crate) fn test_without_memory<'a>(wr_id: u64) -> Posted<Sges<'a>> {
    crate::sys::sge::test_posted(wr_id, Sges([].iter()))
}

kernel::impl_flags! {
    /// How a send is to be treated. C: `enum ib_send_flags`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[cfg_attr(ndk_kunit, derive(Default))]
    pub(crate) struct SendFlags(i32);

    /// One of them.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum SendFlag {
        /// Wait for earlier reads.
        Fence = bindings::ib_send_flags_IB_SEND_FENCE,
        /// Complete also on success.
        Signaled = bindings::ib_send_flags_IB_SEND_SIGNALED,
        /// Make the peer's completion a solicited one.
        Solicited = bindings::ib_send_flags_IB_SEND_SOLICITED,
        /// Take the data during the post; keys do not matter.
        Inline = bindings::ib_send_flags_IB_SEND_INLINE,
    }
}

/// What a registration request brings. C: `struct ib_reg_wr`.
pub(crate) struct RegMr<'a, T: Operations> {
    /// The region.
    pub(crate) mr: &'a Mr<T>,
    /// The key it is to have.
    pub(crate) key: u32,
    /// The rights it is to give.
    pub(crate) access: AccessFlags,
    /// The address its first byte is to have, as it stands at the post.
    pub(crate) iova: u64,
    /// Its length in bytes.
    pub(crate) len: u64,
}

/// Memory of the peer. C: `remote_addr` and `rkey` of `struct ib_rdma_wr` and `ib_atomic_wr`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub(crate) struct RemoteAddr {
    pub(crate) addr: u64,
    pub(crate) rkey: u32,
}

/// What is to be done. C: `enum ib_wr_opcode` with the data of each.
#[allow(missing_docs)]
pub(crate) enum SendOp<'a, T: Operations> {
    Send,
    /// With immediate data, in the byte order it was posted in.
    SendImm(u32),
    /// With the key that the peer is to invalidate.
    SendInv(u32),
    Write(RemoteAddr),
    /// With immediate data, as that of a send.
    WriteImm(RemoteAddr, u32),
    Read(RemoteAddr),
    /// Invalidates its sink, the one element of the local memory, when the data is there.
    ReadInv(RemoteAddr),
    LocalInv(u32),
    RegMr(RegMr<'a, T>),
    /// With what is to be added.
    FetchAdd(RemoteAddr, u64),
    /// With what the word is compared to, and what replaces it then.
    CmpSwap(RemoteAddr, u64, u64),
}

/// A request for the send queue.
pub(crate) struct SendRequest<'a, T: Operations> {
    /// How to treat it.
    pub(crate) flags: SendFlags,
    /// What to do.
    pub(crate) op: SendOp<'a, T>,
    /// The local memory, and what the consumer calls the request.
    pub(crate) posted: Posted<Sges<'a>>,
}

/// A work request in a chain. C: `struct ib_send_wr`, `struct ib_recv_wr`.
pub(crate) trait WorkRequest: Copy {
    /// The one after it, or null.
    fn next(&self) -> *const Self;
}

impl WorkRequest for bindings::ib_send_wr {
    #[inline]
    fn next(&self) -> *const Self {
        self.next
    }
}

/// A chain of requests `W` for a queue of the provider `T`.
///
/// # Invariants
///
/// `current` and `next` are null or requests, at any address, of a chain that is valid during `'a`.
pub(crate) struct Chain<'a, W, T> {
    current: *const W,
    next: *const W,
    _chain: PhantomData<(&'a W, &'a T)>,
}

impl<'a, W: WorkRequest, T> Chain<'a, W, T> {
    /// # Safety
    ///
    /// `first` is null or starts a chain of valid requests for objects of `T`, which does not
    /// change during `'a`.
    #[inline]
    unsafe fn new(first: *const W) -> Self {
        // INVARIANT: by the safety requirements.
        Self {
            current: first,
            next: first,
            _chain: PhantomData,
        }
    }

    /// Has a chain posted by `post`, and turns the result into that for C.
    ///
    /// # Safety
    ///
    /// As [`Chain::new`] says of `first`, during the call; `bad_wr` is null or writable. Neither
    /// they nor the lists of the requests need be aligned.
    #[inline]
    pub(super) unsafe fn post(
        first: *const W,
        bad_wr: *mut *const W,
        post: impl FnOnce(&mut Chain<'_, W, T>) -> Result,
    ) -> c_int {
        // SAFETY: The caller says that the chain is valid during the call.
        let mut chain = unsafe { Chain::new(first) };
        let Err(error) = post(&mut chain) else {
            return 0;
        };
        if !bad_wr.is_null() {
            // SAFETY: The caller says that it is writable.
            unsafe { bad_wr.write_unaligned(chain.current) };
        }
        error.to_errno()
    }

    /// Goes on to the next request, and gives a copy of it; `None` at the end. `current` is
    /// where it stands.
    #[inline]
    pub(super) fn advance(&mut self) -> Option<W> {
        // SAFETY: By the invariant it is null or a valid request.
        let wr = unsafe { self.next.cast::<Unaligned<W>>().as_ref() }?.get();
        // INVARIANT: `next` is a valid request, and the one behind it of the same chain.
        self.current = self.next;
        self.next = wr.next();
        Some(wr)
    }
}

impl<W: UserRequest, T> Chain<'_, W, T> {
    /// As [`Chain::post`], of a queue that may be a program's: then the chain is made one that the kernel
    /// may post, or refused as a whole. Process context for those.
    ///
    /// # Safety
    ///
    /// As for [`Chain::post`]; of a program's queue the chain is uverbs' copy.
    #[inline]
    pub(super) unsafe fn post_from(
        is_of_program: bool,
        first: *const W,
        bad_wr: *mut *const W,
        post: impl FnOnce(&mut Chain<'_, W, T>) -> Result,
    ) -> c_int {
        if is_of_program {
            // SAFETY: The caller keeps to the same contract.
            return unsafe { Self::post_checked(first, bad_wr, post) };
        }
        // SAFETY: The caller keeps to the same contract.
        unsafe { Self::post(first, bad_wr, post) }
    }

    /// The chain of a program.
    ///
    /// # Safety
    ///
    /// As for [`Chain::post_from`].
    #[inline(never)]
    unsafe fn post_checked(
        first: *const W,
        bad_wr: *mut *const W,
        post: impl FnOnce(&mut Chain<'_, W, T>) -> Result,
    ) -> c_int {
        // SAFETY: The caller says that the chain is valid, and uverbs leaves it to us.
        let (fetched, error) = match unsafe { post::check(first) } {
            Ok(data) => (Some(data), None),
            Err(error) => (None, Some(error)),
        };
        // SAFETY: The caller keeps to the contract; what was fetched is kept.
        let posted = unsafe {
            Self::post(first, bad_wr, |chain| match error {
                Some(error) => Err(error),
                None => post(chain),
            })
        };
        drop(fetched);
        posted
    }
}

/// A chain of requests for the send queue.
pub(crate) type SendChain<'a, T> = Chain<'a, bindings::ib_send_wr, T>;

impl<'a, T: Operations> SendChain<'a, T> {
    /// The next request; `None` at the end. `EINVAL` if it is malformed.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<SendRequest<'a, T>>> {
        let Some(wr) = self.advance() else {
            return Ok(None);
        };
        Ok(Some(SendRequest {
            flags: SendFlags(wr.send_flags),
            // SAFETY: The request is part of a valid chain, and the copy was made just now.
            op: unsafe { send_op(self.current, &wr) }?,
            // SAFETY: The request is valid, so its list has that many entries; the fields of the
            // union are 64 bits without invalid patterns.
            posted: unsafe { posted(wr.__bindgen_anon_1.wr_id, wr.sg_list, wr.num_sge) }?,
        }))
    }
}

/// Reads what `wr`, a copy of the request at `at`, asks for. `EINVAL` for what is not known here.
///
/// # Safety
///
/// The request is valid during `'a`, and embedded in the structure that its opcode says.
#[inline]
unsafe fn send_op<'a, T: Operations>(
    at: *const bindings::ib_send_wr,
    wr: &bindings::ib_send_wr,
) -> Result<SendOp<'a, T>> {
    // SAFETY: Both fields of the union are 32 bits without invalid patterns.
    let ex = unsafe { wr.ex.invalidate_rkey };
    Ok(match wr.opcode {
        bindings::ib_wr_opcode_IB_WR_SEND => SendOp::Send,
        bindings::ib_wr_opcode_IB_WR_SEND_WITH_IMM => SendOp::SendImm(ex),
        bindings::ib_wr_opcode_IB_WR_SEND_WITH_INV => SendOp::SendInv(ex),
        bindings::ib_wr_opcode_IB_WR_LOCAL_INV => SendOp::LocalInv(ex),
        bindings::ib_wr_opcode_IB_WR_RDMA_WRITE
        | bindings::ib_wr_opcode_IB_WR_RDMA_WRITE_WITH_IMM
        | bindings::ib_wr_opcode_IB_WR_RDMA_READ
        | bindings::ib_wr_opcode_IB_WR_RDMA_READ_WITH_INV => {
            // SAFETY: These requests are embedded in an `ib_rdma_wr`.
            unsafe { rdma_op(at, wr.opcode, ex) }
        }
        bindings::ib_wr_opcode_IB_WR_REG_MR => {
            // SAFETY: This request is embedded in an `ib_reg_wr`.
            SendOp::RegMr(unsafe { reg_op(at) }?)
        }
        bindings::ib_wr_opcode_IB_WR_ATOMIC_FETCH_AND_ADD
        | bindings::ib_wr_opcode_IB_WR_ATOMIC_CMP_AND_SWP => {
            // SAFETY: These requests are embedded in an `ib_atomic_wr`.
            unsafe { atomic_op(at, wr.opcode) }
        }
        _ => return Err(EINVAL),
    })
}

/// # Safety
///
/// The request at `wr` is embedded in an `ib_rdma_wr`.
#[inline]
unsafe fn rdma_op<'a, T: Operations>(
    wr: *const bindings::ib_send_wr,
    opcode: bindings::ib_wr_opcode,
    ex: u32,
) -> SendOp<'a, T> {
    // SAFETY: The caller says that it is embedded in an `ib_rdma_wr`.
    let rdma = unsafe { container_of!(wr, bindings::ib_rdma_wr, wr).read_unaligned() };
    let at = RemoteAddr {
        addr: rdma.remote_addr,
        rkey: rdma.rkey,
    };
    match opcode {
        bindings::ib_wr_opcode_IB_WR_RDMA_WRITE => SendOp::Write(at),
        bindings::ib_wr_opcode_IB_WR_RDMA_READ => SendOp::Read(at),
        // What `ex` says does not matter, as with siw, cxgb4 and irdma: some consumers leave it
        // unset, and `rdma_rw` puts a key of the sink there that may be out of date.
        bindings::ib_wr_opcode_IB_WR_RDMA_READ_WITH_INV => SendOp::ReadInv(at),
        _ => SendOp::WriteImm(at, ex),
    }
}

/// # Safety
///
/// The request at `wr` is embedded in an `ib_reg_wr` whose region, if not null, is a live one of
/// `T` during `'a`.
#[inline]
unsafe fn reg_op<'a, T: Operations>(wr: *const bindings::ib_send_wr) -> Result<RegMr<'a, T>> {
    // SAFETY: The caller says that it is embedded in an `ib_reg_wr`.
    let reg = unsafe { container_of!(wr, bindings::ib_reg_wr, wr).read_unaligned() };
    if reg.mr.is_null() {
        return Err(EINVAL);
    }
    // SAFETY: The caller says that the region is live; the consumer does not change it during
    // the post.
    let (mr, iova, len) = unsafe { (Mr::<T>::from_raw(reg.mr), (*reg.mr).iova, (*reg.mr).length) };
    Ok(RegMr {
        mr,
        key: reg.key,
        access: AccessFlags::from_c(reg.access),
        iova,
        len,
    })
}

/// # Safety
///
/// The request at `wr` is embedded in an `ib_atomic_wr`.
#[inline]
unsafe fn atomic_op<'a, T: Operations>(
    wr: *const bindings::ib_send_wr,
    opcode: bindings::ib_wr_opcode,
) -> SendOp<'a, T> {
    // SAFETY: The caller says that it is embedded in an `ib_atomic_wr`.
    let atomic = unsafe { container_of!(wr, bindings::ib_atomic_wr, wr).read_unaligned() };
    let at = RemoteAddr {
        addr: atomic.remote_addr,
        rkey: atomic.rkey,
    };
    match opcode {
        bindings::ib_wr_opcode_IB_WR_ATOMIC_FETCH_AND_ADD => {
            SendOp::FetchAdd(at, atomic.compare_add)
        }
        _ => SendOp::CmpSwap(at, atomic.compare_add, atomic.swap),
    }
}

#[cfg(ndk_kunit)]
#[kernel::macros::kunit_tests(ndk_rdma_work)]
mod tests {
    use super::{
        super::tests::stub::Stub,
        *, //
    };
    use core::ptr;

    const REMOTE: RemoteAddr = RemoteAddr { addr: 7, rkey: 8 };

    fn send(opcode: bindings::ib_wr_opcode) -> bindings::ib_send_wr {
        bindings::ib_send_wr {
            opcode,
            ..Default::default()
        }
    }

    #[test]
    fn empty_chain_has_no_request() {
        // SAFETY: Null is an empty chain.
        let mut chain = unsafe { SendChain::<Stub>::new(ptr::null()) };
        assert!(matches!(chain.next(), Ok(None)));
    }

    #[test]
    fn first_bad_request_is_reported() {
        let mut last = send(bindings::ib_wr_opcode_IB_WR_SEND);
        let mut bad = send(bindings::ib_wr_opcode_IB_WR_BIND_MW);
        bad.next = &mut last;
        let mut first = send(bindings::ib_wr_opcode_IB_WR_SEND);
        first.next = &mut bad;
        let mut reported = ptr::null();
        let post = |chain: &mut SendChain<'_, Stub>| {
            assert!(matches!(chain.next(), Ok(Some(_))));
            chain.next().map(|_| ())
        };
        // SAFETY: The three requests live as long as the call, and `reported` is writable.
        let posted = unsafe { SendChain::post(&first, &mut reported, post) };
        assert_eq!(posted, -22);
        assert!(ptr::eq(reported, &bad));
        let refuse = |_: &mut SendChain<'_, Stub>| Err(ENOMEM);
        // SAFETY: The requests live as long as the call, and null is allowed.
        let posted = unsafe { SendChain::post(&first, ptr::null_mut(), refuse) };
        assert_eq!(posted, -12);
    }

    #[test]
    fn plain_opcodes_are_distinguished() {
        for (opcode, expected) in [
            (bindings::ib_wr_opcode_IB_WR_SEND, 0),
            (bindings::ib_wr_opcode_IB_WR_SEND_WITH_IMM, 1),
            (bindings::ib_wr_opcode_IB_WR_SEND_WITH_INV, 2),
            (bindings::ib_wr_opcode_IB_WR_LOCAL_INV, 3),
        ] {
            let mut wr = send(opcode);
            wr.ex.invalidate_rkey = 9;
            // SAFETY: These opcodes need no structure around the request.
            let found = match unsafe { send_op::<Stub>(&wr, &wr) } {
                Ok(SendOp::Send) => 0,
                Ok(SendOp::SendImm(9)) => 1,
                Ok(SendOp::SendInv(9)) => 2,
                Ok(SendOp::LocalInv(9)) => 3,
                _ => 99,
            };
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn remote_opcodes_carry_address_and_key() {
        for (opcode, expected) in [
            (bindings::ib_wr_opcode_IB_WR_RDMA_WRITE, 0),
            (bindings::ib_wr_opcode_IB_WR_RDMA_WRITE_WITH_IMM, 1),
            (bindings::ib_wr_opcode_IB_WR_RDMA_READ, 2),
            (bindings::ib_wr_opcode_IB_WR_RDMA_READ_WITH_INV, 3),
        ] {
            let mut rdma = bindings::ib_rdma_wr {
                wr: send(opcode),
                remote_addr: 7,
                rkey: 8,
            };
            rdma.wr.ex.invalidate_rkey = 9;
            // SAFETY: The request is embedded in what its opcode says.
            let found = match unsafe { send_op::<Stub>(&rdma.wr, &rdma.wr) } {
                Ok(SendOp::Write(REMOTE)) => 0,
                Ok(SendOp::WriteImm(REMOTE, 9)) => 1,
                Ok(SendOp::Read(REMOTE)) => 2,
                Ok(SendOp::ReadInv(REMOTE)) => 3,
                _ => 99,
            };
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn atomics_carry_their_operands() {
        let mut atomic = bindings::ib_atomic_wr {
            wr: send(bindings::ib_wr_opcode_IB_WR_ATOMIC_CMP_AND_SWP),
            remote_addr: 7,
            compare_add: 5,
            swap: 6,
            rkey: 8,
            ..Default::default()
        };
        // SAFETY: The request is embedded in what its opcode says.
        let op = unsafe { send_op::<Stub>(&atomic.wr, &atomic.wr) };
        assert!(matches!(op, Ok(SendOp::CmpSwap(REMOTE, 5, 6))));
        atomic.wr.opcode = bindings::ib_wr_opcode_IB_WR_ATOMIC_FETCH_AND_ADD;
        // SAFETY: The request is embedded in what its opcode says.
        let op = unsafe { send_op::<Stub>(&atomic.wr, &atomic.wr) };
        assert!(matches!(op, Ok(SendOp::FetchAdd(REMOTE, 5))));
    }

    #[test]
    fn registration_needs_a_region() {
        let reg = bindings::ib_reg_wr {
            wr: send(bindings::ib_wr_opcode_IB_WR_REG_MR),
            ..Default::default()
        };
        // SAFETY: The request is embedded in what its opcode says.
        assert!(unsafe { send_op::<Stub>(&reg.wr, &reg.wr) }.is_err());
    }

    #[test]
    fn scatter_lists_need_no_alignment() -> Result {
        let mut bytes = [0u8; 40];
        for at in 0..8 {
            bytes[at..at + 8].copy_from_slice(&1u64.to_ne_bytes());
            bytes[at + 8..at + 12].copy_from_slice(&2u32.to_ne_bytes());
            bytes[at + 12..at + 16].copy_from_slice(&3u32.to_ne_bytes());
            let list = bytes[at..].as_ptr();
            // SAFETY: One entry is there, and is not used.
            let one = unsafe { posted(9, list.cast(), 1) }?;
            let sge = one.sges().next().ok_or(EINVAL)?;
            assert!((sge.addr(), sge.len(), sge.key()) == (1, 2, 3));
            assert!(one.context() == 9 && one.sges().len() == 1);
        }
        Ok(())
    }

    #[test]
    fn scatter_lists_are_checked() {
        let list = [bindings::ib_sge::default()];
        // SAFETY: One entry is there; the calls read none.
        unsafe {
            assert!(posted(1, list.as_ptr(), 1).is_ok_and(|one| one.sges().len() == 1));
            assert!(posted(1, ptr::null(), 0).is_ok_and(|none| none.sges().len() == 0));
            assert!(posted(1, ptr::null(), 1).is_err());
            assert!(posted(1, list.as_ptr(), -1).is_err());
        }
    }
}
