// SPDX-License-Identifier: GPL-2.0

//! Chains of send requests as the consumer posted them: checked, borrowed
//! views, and the only writer of `bad_wr`.
//!
//! Only the values in a request are copied, and no memory is allocated. The
//! chain and its scatter lists are the consumer's and are valid during the post
//! only.
//!
//! C: `struct ib_send_wr` and the structures around it, `struct ib_sge`.

use core::slice;

use kernel::container_of;

use super::{
    prelude::*,
    values::{
        access::AccessFlags,
        token::Token,
        work::{
            RemoteAddr,
            SendFlag,
            SendFlags,
            SendOp,
            SendWith, //
        }, //
    }, //
};
use crate::sys::sge::{
    Posted,
    Sge, //
};

/// The flags have the numbers of C.
const _: () = {
    assert!(SendFlag::Fence as i32 == bindings::ib_send_flags_IB_SEND_FENCE);
    assert!(SendFlag::Signaled as i32 == bindings::ib_send_flags_IB_SEND_SIGNALED);
    assert!(SendFlag::Solicited as i32 == bindings::ib_send_flags_IB_SEND_SOLICITED);
    assert!(SendFlag::Inline as i32 == bindings::ib_send_flags_IB_SEND_INLINE);
};

/// The scatter list of a request that is posted, at any address. C: `struct ib_sge`.
#[derive(Clone)]
pub(crate) struct Sges<'a>(slice::Iter<'a, Unaligned<bindings::ib_sge>>);

impl Iterator for Sges<'_> {
    type Item = Sge;

    #[inline]
    fn next(&mut self) -> Option<Sge> {
        let bindings::ib_sge { addr, length, lkey } = self.0.next()?.get();
        Some(Sge::new(addr, length, Token::from_raw(lkey)))
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
/// the kernel posts, or a program by way of [`WrChain::post_from`], which lets no key of the
/// kernel's memory through.
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
        // SAFETY: The caller says that the entries are there; they are read as unaligned.
        _ => unsafe { slice::from_raw_parts(list.cast(), count) },
    };
    // SAFETY: By the post the consumer promises that memory under the device's `local_dma_lkey` is
    // the consumer's until the request has completed.
    Ok(unsafe { Posted::new(wr_id, Sges(sges.iter())) })
}

/// A request for the send queue.
pub(crate) struct SendRequest<'a> {
    /// The flags of the request.
    pub(crate) flags: SendFlags,
    /// The operation.
    pub(crate) op: SendOp,
    /// The local memory, and the consumer's number for the request.
    pub(crate) posted: Posted<Sges<'a>>,
}

/// A work request in a chain. C: `struct ib_send_wr`, `struct ib_recv_wr`.
pub(crate) trait WorkRequest: Copy {
    /// The next request of the chain, or null.
    fn next(&self) -> *const Self;
}

impl WorkRequest for bindings::ib_send_wr {
    #[inline]
    fn next(&self) -> *const Self {
        self.next
    }
}

/// A chain of requests `W` for a queue.
///
/// # Invariants
///
/// `current` and `next` are null or requests, at any address, of a chain that is valid during `'a`.
pub(crate) struct WrChain<'a, W> {
    current: *const W,
    next: *const W,
    _chain: PhantomData<&'a W>,
}

impl<'a, W: WorkRequest> WrChain<'a, W> {
    /// # Safety
    ///
    /// `first` is null or starts a chain of valid requests, which does not change during `'a`.
    #[inline]
    unsafe fn new(first: *const W) -> Self {
        // INVARIANT: by the safety requirements.
        Self {
            current: first,
            next: first,
            _chain: PhantomData,
        }
    }

    /// Posts a chain through `post`, and converts the result for C.
    ///
    /// # Safety
    ///
    /// As [`WrChain::new`] says of `first`, during the call; `bad_wr` is null or writable. Neither
    /// they nor the lists of the requests need be aligned.
    #[inline]
    pub(super) unsafe fn post(
        first: *const W,
        bad_wr: *mut *const W,
        post: impl FnOnce(&mut WrChain<'_, W>) -> Result,
    ) -> c_int {
        // SAFETY: The caller says that the chain is valid during the call.
        let mut chain = unsafe { WrChain::new(first) };
        let Err(error) = post(&mut chain) else {
            return 0;
        };
        if !bad_wr.is_null() {
            // SAFETY: The caller says that `bad_wr` is writable.
            unsafe { bad_wr.write_unaligned(chain.current) };
        }
        error.to_errno()
    }

    /// Advances to the next request, and returns a copy; `None` at the end. `current` then points
    /// at that request.
    #[inline]
    pub(super) fn advance(&mut self) -> Option<W> {
        // SAFETY: By the invariant this is null or a valid request.
        let wr = unsafe { self.next.cast::<Unaligned<W>>().as_ref() }?.get();
        // INVARIANT: `next` is a valid request, and its successor is null or of the same chain.
        self.current = self.next;
        self.next = wr.next();
        Some(wr)
    }
}

/// A chain of requests for the send queue.
pub(crate) type SendChain<'a> = WrChain<'a, bindings::ib_send_wr>;

impl<'a> SendChain<'a> {
    /// The next request; `None` at the end. `EINVAL` if it is malformed.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<SendRequest<'a>>> {
        let Some(wr) = self.advance() else {
            return Ok(None);
        };
        // SAFETY: The request is valid, so its list has that many entries; the fields of the union
        // are 64 bits without invalid patterns.
        let posted = unsafe { posted(wr.__bindgen_anon_1.wr_id, wr.sg_list, wr.num_sge) }?;
        Ok(Some(SendRequest {
            // CAST: A set of bits, kept bit by bit.
            flags: SendFlags::from_bits(wr.send_flags as u32),
            // SAFETY: The request is part of a valid chain, so its region is live, too; the copy
            // was made just now.
            op: unsafe { send_op(self.current, &wr, posted.sges()) }?,
            posted,
        }))
    }
}

/// Reads the operation of `wr`, a copy of the request at `at` with the list `sges`. `EINVAL` for an
/// operation that is not known here.
///
/// # Safety
///
/// The request is valid, and embedded in the structure that its opcode says; the region of a
/// registration is null or live.
#[inline]
unsafe fn send_op(
    at: *const bindings::ib_send_wr,
    wr: &bindings::ib_send_wr,
    sges: Sges<'_>,
) -> Result<SendOp> {
    // SAFETY: Both fields of the union are 32 bits without invalid patterns.
    let ex = unsafe { wr.ex.invalidate_rkey };
    Ok(match wr.opcode {
        bindings::ib_wr_opcode_IB_WR_SEND => SendOp::Send {
            with: SendWith::Nothing,
        },
        bindings::ib_wr_opcode_IB_WR_SEND_WITH_IMM => SendOp::Send {
            with: SendWith::Imm(ex),
        },
        bindings::ib_wr_opcode_IB_WR_SEND_WITH_INV => SendOp::Send {
            with: SendWith::Inv(Token::from_raw(ex)),
        },
        bindings::ib_wr_opcode_IB_WR_LOCAL_INV => SendOp::LocalInv {
            token: Token::from_raw(ex),
            must_be_valid: false,
        },
        bindings::ib_wr_opcode_IB_WR_RDMA_WRITE => SendOp::Write {
            // SAFETY: This request is embedded in an `ib_rdma_wr`.
            to: unsafe { remote_addr(at) },
            imm: None,
        },
        bindings::ib_wr_opcode_IB_WR_RDMA_WRITE_WITH_IMM => SendOp::Write {
            // SAFETY: This request is embedded in an `ib_rdma_wr`.
            to: unsafe { remote_addr(at) },
            imm: Some(ex),
        },
        bindings::ib_wr_opcode_IB_WR_RDMA_READ => SendOp::Read {
            // SAFETY: This request is embedded in an `ib_rdma_wr`.
            from: unsafe { remote_addr(at) },
            invalidate: None,
        },
        bindings::ib_wr_opcode_IB_WR_RDMA_READ_WITH_INV => SendOp::Read {
            // SAFETY: This request is embedded in an `ib_rdma_wr`.
            from: unsafe { remote_addr(at) },
            invalidate: Some(sink(sges)?),
        },
        bindings::ib_wr_opcode_IB_WR_REG_MR => {
            // SAFETY: This request is embedded in an `ib_reg_wr`, with a live region if any.
            unsafe { reg_mr(at) }?
        }
        bindings::ib_wr_opcode_IB_WR_ATOMIC_FETCH_AND_ADD
        | bindings::ib_wr_opcode_IB_WR_ATOMIC_CMP_AND_SWP => {
            // SAFETY: These requests are embedded in an `ib_atomic_wr`.
            unsafe { atomic_op(at, wr.opcode) }
        }
        _ => return Err(EINVAL),
    })
}

/// The token that a read with invalidate ends: that of its sink, the first element. The token in
/// the request does not matter, as with siw, cxgb4 and irdma: some consumers leave it unset, and
/// `rdma_rw` sets a key of the sink that may be out of date.
fn sink(mut sges: Sges<'_>) -> Result<Token> {
    Ok(sges.next().ok_or(EINVAL)?.token())
}

/// The memory of the peer.
///
/// # Safety
///
/// The request at `wr` is embedded in an `ib_rdma_wr`.
#[inline]
unsafe fn remote_addr(wr: *const bindings::ib_send_wr) -> RemoteAddr {
    // SAFETY: The caller says that `wr` is embedded in an `ib_rdma_wr`.
    let rdma = unsafe { container_of!(wr, bindings::ib_rdma_wr, wr).read_unaligned() };
    RemoteAddr {
        addr: rdma.remote_addr,
        token: Token::from_raw(rdma.rkey),
    }
}

/// A registration with the address, length, key and rights as they stand at the time of the post.
/// `EINVAL` for a key of another region, and for rights that no region has.
///
/// # Safety
///
/// The request at `wr` is embedded in an `ib_reg_wr` whose region, if not null, is a live one.
#[inline]
unsafe fn reg_mr(wr: *const bindings::ib_send_wr) -> Result<SendOp> {
    // SAFETY: The caller says that `wr` is embedded in an `ib_reg_wr`.
    let reg = unsafe { container_of!(wr, bindings::ib_reg_wr, wr).read_unaligned() };
    if reg.mr.is_null() {
        return Err(EINVAL);
    }
    // SAFETY: The caller says that the region is live; the consumer does not change it during
    // the post.
    let (rkey, base, len) = unsafe { ((*reg.mr).rkey, (*reg.mr).iova, (*reg.mr).length) };
    let token = Token::from_raw(reg.key);
    // `ib_update_fast_reg_key()` changes the key of a region's tokens, and not the index.
    if token.index() != Token::from_raw(rkey).index() {
        return Err(EINVAL);
    }
    Ok(SendOp::RegMr {
        token,
        base,
        len,
        rights: AccessFlags::from_c(reg.access).of_region()?,
        staged: None,
    })
}

/// # Safety
///
/// The request at `wr` is embedded in an `ib_atomic_wr`.
#[inline]
unsafe fn atomic_op(wr: *const bindings::ib_send_wr, opcode: bindings::ib_wr_opcode) -> SendOp {
    // SAFETY: The caller says that `wr` is embedded in an `ib_atomic_wr`.
    let atomic = unsafe { container_of!(wr, bindings::ib_atomic_wr, wr).read_unaligned() };
    let at = RemoteAddr {
        addr: atomic.remote_addr,
        token: Token::from_raw(atomic.rkey),
    };
    match opcode {
        bindings::ib_wr_opcode_IB_WR_ATOMIC_FETCH_AND_ADD => SendOp::FetchAdd {
            at,
            add: atomic.compare_add,
        },
        _ => SendOp::CmpSwap {
            at,
            compare: atomic.compare_add,
            swap: atomic.swap,
        },
    }
}

#[cfg(ndk_kunit)]
#[kernel::macros::kunit_tests(ndk_rdma_work)]
mod tests {
    use super::*;
    use core::ptr;

    use crate::sys::report::cases;

    const TOKEN: Token = Token::from_raw(9);
    const REMOTE: RemoteAddr = RemoteAddr {
        addr: 7,
        token: Token::from_raw(8),
    };

    fn send(opcode: bindings::ib_wr_opcode) -> bindings::ib_send_wr {
        bindings::ib_send_wr {
            opcode,
            ..Default::default()
        }
    }

    /// The operation of a request without a list.
    ///
    /// # Safety
    ///
    /// As [`send_op`] says.
    unsafe fn without_list(wr: &bindings::ib_send_wr) -> Result<SendOp> {
        // SAFETY: The caller keeps to the same contract.
        unsafe { send_op(wr, wr, Sges([].iter())) }
    }

    #[test]
    fn empty_chain_has_no_request() {
        // SAFETY: Null is an empty chain.
        let mut chain = unsafe { SendChain::new(ptr::null()) };
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
        let post = |chain: &mut SendChain<'_>| {
            assert!(matches!(chain.next(), Ok(Some(_))));
            chain.next().map(|_| ())
        };
        // SAFETY: The three requests live as long as the call, and `reported` is writable.
        let posted = unsafe { SendChain::post(&first, &mut reported, post) };
        kunit_assert_eq!(posted, -22);
        assert!(ptr::eq(reported, &bad));
        let refuse = |_: &mut SendChain<'_>| Err(ENOMEM);
        // SAFETY: The requests live as long as the call, and null is allowed.
        let posted = unsafe { SendChain::post(&first, ptr::null_mut(), refuse) };
        kunit_assert_eq!(posted, -12);
    }

    #[test]
    fn plain_opcodes_are_distinguished() {
        for (opcode, with) in cases([
            (bindings::ib_wr_opcode_IB_WR_SEND, SendWith::Nothing),
            (bindings::ib_wr_opcode_IB_WR_SEND_WITH_IMM, SendWith::Imm(9)),
            (
                bindings::ib_wr_opcode_IB_WR_SEND_WITH_INV,
                SendWith::Inv(TOKEN),
            ),
        ]) {
            let mut wr = send(opcode);
            wr.ex.invalidate_rkey = 9;
            // SAFETY: These opcodes need no structure around the request.
            let op = unsafe { without_list(&wr) };
            kunit_assert_eq!(op, Ok(SendOp::Send { with }));
        }
    }

    #[test]
    fn ndk_face_16_a_local_invalidation_of_verbs_takes_what_is_invalid() {
        let mut wr = send(bindings::ib_wr_opcode_IB_WR_LOCAL_INV);
        wr.ex.invalidate_rkey = 9;
        let invalidates = SendOp::LocalInv {
            token: TOKEN,
            must_be_valid: false,
        };
        // SAFETY: This opcode needs no structure around the request.
        kunit_assert_eq!(unsafe { without_list(&wr) }, Ok(invalidates));
    }

    #[test]
    fn remote_opcodes_carry_address_and_key() {
        for (opcode, expected) in [
            (
                bindings::ib_wr_opcode_IB_WR_RDMA_WRITE,
                Ok(SendOp::Write {
                    to: REMOTE,
                    imm: None,
                }),
            ),
            (
                bindings::ib_wr_opcode_IB_WR_RDMA_WRITE_WITH_IMM,
                Ok(SendOp::Write {
                    to: REMOTE,
                    imm: Some(9),
                }),
            ),
            (
                bindings::ib_wr_opcode_IB_WR_RDMA_READ,
                Ok(SendOp::Read {
                    from: REMOTE,
                    invalidate: None,
                }),
            ),
            // A request without a list has no sink.
            (bindings::ib_wr_opcode_IB_WR_RDMA_READ_WITH_INV, Err(EINVAL)),
        ] {
            let mut rdma = bindings::ib_rdma_wr {
                wr: send(opcode),
                remote_addr: 7,
                rkey: 8,
            };
            rdma.wr.ex.invalidate_rkey = 9;
            // SAFETY: The request is embedded in the structure that its opcode says.
            kunit_assert_eq!(unsafe { without_list(&rdma.wr) }, expected);
        }
    }

    #[test]
    fn a_read_with_invalidate_ends_its_sink_whatever_the_request_says() {
        let mut rdma = bindings::ib_rdma_wr {
            wr: send(bindings::ib_wr_opcode_IB_WR_RDMA_READ_WITH_INV),
            remote_addr: 7,
            rkey: 8,
        };
        rdma.wr.ex.invalidate_rkey = 9;
        let sinks = [5, 6].map(|lkey| {
            Unaligned(bindings::ib_sge {
                addr: 0,
                length: 1,
                lkey,
            })
        });
        // SAFETY: The request is embedded in the structure that its opcode says.
        let op = unsafe { send_op(&rdma.wr, &rdma.wr, Sges(sinks.iter())) };
        let expected = SendOp::Read {
            from: REMOTE,
            invalidate: Some(Token::from_raw(5)),
        };
        kunit_assert_eq!(op, Ok(expected));
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
        let swaps = SendOp::CmpSwap {
            at: REMOTE,
            compare: 5,
            swap: 6,
        };
        // SAFETY: The request is embedded in the structure that its opcode says.
        kunit_assert_eq!(unsafe { without_list(&atomic.wr) }, Ok(swaps));
        atomic.wr.opcode = bindings::ib_wr_opcode_IB_WR_ATOMIC_FETCH_AND_ADD;
        let adds = SendOp::FetchAdd { at: REMOTE, add: 5 };
        // SAFETY: The request is embedded in the structure that its opcode says.
        kunit_assert_eq!(unsafe { without_list(&atomic.wr) }, Ok(adds));
    }

    #[test]
    fn a_registration_is_of_the_region_of_its_key() {
        // SAFETY: The structure is C's, and all zeros are a valid value.
        let mut mr: bindings::ib_mr = unsafe { core::mem::zeroed() };
        mr.rkey = 0x1234_5601;
        mr.iova = 3;
        mr.length = 4;
        // CAST: small bits.
        let writes = bindings::ib_access_flags_IB_ACCESS_REMOTE_WRITE as c_int;
        let local = bindings::ib_access_flags_IB_ACCESS_LOCAL_WRITE as c_int;
        let registers = SendOp::RegMr {
            token: Token::from_raw(0x1234_5677),
            base: 3,
            len: 4,
            rights: AccessFlags::from_c(writes | local),
            staged: None,
        };
        let of = |mr, key, access| {
            let reg = bindings::ib_reg_wr {
                wr: send(bindings::ib_wr_opcode_IB_WR_REG_MR),
                mr,
                key,
                access,
            };
            // SAFETY: The request is embedded in the structure that its opcode says; the region is
            // live.
            unsafe { without_list(&reg.wr) }
        };
        kunit_assert_eq!(of(&mut mr, 0x1234_5677, writes | local), Ok(registers));
        kunit_assert_eq!(of(&mut mr, 0x1234_5577, writes | local), Err(EINVAL));
        // No peer may write where the owner may not.
        kunit_assert_eq!(of(&mut mr, 0x1234_5677, writes), Err(EINVAL));
        let zero_based = bindings::ib_access_flags_IB_ZERO_BASED as c_int;
        kunit_assert_eq!(of(&mut mr, 0x1234_5677, zero_based), Err(EINVAL));
        kunit_assert_eq!(of(ptr::null_mut(), 0x1234_5677, local), Err(EINVAL));
    }

    #[test]
    fn flags_of_c_are_taken_and_no_others() -> Result {
        let all = bindings::ib_send_flags_IB_SEND_FENCE
            | bindings::ib_send_flags_IB_SEND_SIGNALED
            | bindings::ib_send_flags_IB_SEND_SOLICITED
            | bindings::ib_send_flags_IB_SEND_INLINE;
        let wr = bindings::ib_send_wr {
            send_flags: !0,
            ..send(bindings::ib_wr_opcode_IB_WR_SEND)
        };
        // SAFETY: The request lives as long as the chain.
        let mut chain = unsafe { SendChain::new(&wr) };
        let request = chain.next()?.ok_or(EINVAL)?;
        // Only NDKPI can hold a request back.
        assert!(!request.flags.contains(SendFlag::Deferred));
        // CAST: small bits.
        kunit_assert_eq!(u8::from(request.flags), all as u8);
        Ok(())
    }

    #[test]
    fn scatter_lists_need_no_alignment() -> Result {
        let mut bytes = [0u8; 40];
        for at in cases(0..8) {
            bytes[at..at + 8].copy_from_slice(&1u64.to_ne_bytes());
            bytes[at + 8..at + 12].copy_from_slice(&2u32.to_ne_bytes());
            bytes[at + 12..at + 16].copy_from_slice(&3u32.to_ne_bytes());
            let list = bytes[at..].as_ptr();
            // SAFETY: The list has one entry, and its memory is not used.
            let one = unsafe { posted(9, list.cast(), 1) }?;
            let sge = one.sges().next().ok_or(EINVAL)?;
            kunit_assert_eq!((sge.addr(), sge.len(), sge.token().raw()), (1, 2, 3));
            kunit_assert_eq!(one.context(), 9);
            kunit_assert_eq!(one.sges().len(), 1);
        }
        Ok(())
    }

    #[test]
    fn scatter_lists_are_checked() {
        let list = [bindings::ib_sge::default()];
        // SAFETY: The list has one entry; the calls read none.
        unsafe {
            assert!(posted(1, list.as_ptr(), 1).is_ok_and(|one| one.sges().len() == 1));
            assert!(posted(1, ptr::null(), 0).is_ok_and(|none| none.sges().len() == 0));
            assert!(posted(1, ptr::null(), 1).is_err());
            assert!(posted(1, list.as_ptr(), -1).is_err());
        }
    }
}
