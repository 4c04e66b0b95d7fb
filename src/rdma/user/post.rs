// SPDX-License-Identifier: GPL-2.0

//! Work requests of programs: addresses and keys are the program's.
//!
//! uverbs copies requests and their lists into the kernel and leaves their content to the provider.
//! A program may use neither the key of all local memory nor registrations; inline data is fetched
//! here, before the queue pair is used, because the fetch may sleep.

use kernel::uaccess::{
    UserPtr,
    UserSlice, //
};

use super::super::{
    prelude::*,
    work::{
        WorkRequest,
        WrChain, //
    }, //
};
use crate::rdma::values::token::Token;

/// The most bytes that a request of a program may carry inline; the queue pair may take fewer.
const MAX_INLINE: usize = 512;

/// A request that [`check`] inspects.
pub(crate) trait UserRequest: WorkRequest + Sized {
    /// The request's list, and the number of entries.
    fn list(&mut self) -> (&mut *mut bindings::ib_sge, &mut c_int);

    /// Returns true if programs must not use the operation, such as a registration.
    fn is_privileged(&self) -> bool;

    /// Returns true if the data is carried inline.
    fn is_inline(&self) -> bool;
}

impl UserRequest for bindings::ib_send_wr {
    fn list(&mut self) -> (&mut *mut bindings::ib_sge, &mut c_int) {
        (&mut self.sg_list, &mut self.num_sge)
    }

    fn is_privileged(&self) -> bool {
        !matches!(
            self.opcode,
            bindings::ib_wr_opcode_IB_WR_SEND
                | bindings::ib_wr_opcode_IB_WR_SEND_WITH_IMM
                | bindings::ib_wr_opcode_IB_WR_SEND_WITH_INV
                | bindings::ib_wr_opcode_IB_WR_RDMA_WRITE
                | bindings::ib_wr_opcode_IB_WR_RDMA_WRITE_WITH_IMM
                | bindings::ib_wr_opcode_IB_WR_RDMA_READ
                | bindings::ib_wr_opcode_IB_WR_ATOMIC_FETCH_AND_ADD
                | bindings::ib_wr_opcode_IB_WR_ATOMIC_CMP_AND_SWP
        )
    }

    fn is_inline(&self) -> bool {
        // CAST: A set of bits, kept bit by bit.
        self.send_flags as u32 & bindings::ib_send_flags_IB_SEND_INLINE as u32 != 0
    }
}

impl UserRequest for bindings::ib_recv_wr {
    fn list(&mut self) -> (&mut *mut bindings::ib_sge, &mut c_int) {
        (&mut self.sg_list, &mut self.num_sge)
    }

    fn is_privileged(&self) -> bool {
        false
    }

    fn is_inline(&self) -> bool {
        false
    }
}

/// The fetched inline data of a chain; kept as long as the chain is used.
#[derive(Default)]
struct InlineData(KVec<KVec<u8>>);

/// Turns a program's chain into one that may be posted as the kernel's are. Process context.
///
/// `EINVAL` for requests that programs must not make, `EFAULT` if inline data cannot be read.
///
/// # Safety
///
/// `first` is null or starts a chain of valid requests that is the caller's to change, and that no
/// code uses after the result is dropped.
unsafe fn check<W: UserRequest>(first: *const W) -> Result<InlineData> {
    let mut data = InlineData::default();
    let mut next = first.cast_mut();
    // SAFETY: The caller says that this is null or a valid request, which no other code uses.
    while let Some(request) = unsafe { next.as_mut() } {
        next = request.next().cast_mut();
        if request.is_privileged() {
            return Err(EINVAL);
        }
        let is_inline = request.is_inline();
        let (list, count) = request.list();
        let length = usize::try_from(*count).map_err(|_| EINVAL)?;
        if length == 0 || list.is_null() {
            continue;
        }
        // SAFETY: A valid request has that many entries; uverbs makes them, and aligns them.
        let sges = unsafe { core::slice::from_raw_parts_mut(*list, length) };
        if is_inline {
            let bytes = fetch(sges)?;
            if let [first, ..] = sges {
                first.addr = bytes.as_ptr().expose_provenance() as u64;
                // CAST: At most `MAX_INLINE`.
                first.length = bytes.len() as u32;
                first.lkey = 0;
                *count = 1;
            }
            data.0.push(bytes, GFP_KERNEL)?;
        } else if sges.iter().any(|sge| sge.lkey == Token::LOCAL_MEMORY.raw()) {
            return Err(EINVAL);
        }
    }
    Ok(data)
}

/// Copies the data that a program's list names. `EINVAL` above `MAX_INLINE` bytes.
fn fetch(sges: &[bindings::ib_sge]) -> Result<KVec<u8>> {
    let mut bytes = KVec::new();
    for sge in sges {
        // CAST: widening.
        let length = sge.length as usize;
        if bytes.len().saturating_add(length) > MAX_INLINE {
            return Err(EINVAL);
        }
        let addr = usize::try_from(sge.addr).map_err(|_| EFAULT)?;
        UserSlice::new(UserPtr::from_addr(addr), length).read_all(&mut bytes, GFP_KERNEL)?;
    }
    Ok(bytes)
}

impl<W: UserRequest> WrChain<'_, W> {
    /// As [`WrChain::post`], for a queue that may be a program's: then the chain is turned into one
    /// that the kernel may post, or refused as a whole. Process context for a program.
    ///
    /// # Safety
    ///
    /// As for [`WrChain::post`]; for a program's queue the chain is uverbs' copy.
    #[inline]
    pub(in crate::rdma) unsafe fn post_from(
        is_of_program: bool,
        first: *const W,
        bad_wr: *mut *const W,
        post: impl FnOnce(&mut WrChain<'_, W>) -> Result,
    ) -> c_int {
        if is_of_program {
            // SAFETY: The caller keeps to the same contract.
            return unsafe { Self::post_checked(first, bad_wr, post) };
        }
        // SAFETY: The caller keeps to the same contract.
        unsafe { Self::post(first, bad_wr, post) }
    }

    /// Posts the chain of a program.
    ///
    /// # Safety
    ///
    /// As for [`WrChain::post_from`].
    #[inline(never)]
    unsafe fn post_checked(
        first: *const W,
        bad_wr: *mut *const W,
        post: impl FnOnce(&mut WrChain<'_, W>) -> Result,
    ) -> c_int {
        // SAFETY: The caller says that the chain is valid, and uverbs leaves its copy to the
        // provider.
        let (fetched, error) = match unsafe { check(first) } {
            Ok(data) => (Some(data), None),
            Err(error) => (None, Some(error)),
        };
        // SAFETY: The caller keeps to the contract; the fetched data is kept until after the post.
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

#[cfg(ndk_kunit)]
#[kernel::macros::kunit_tests(ndk_rdma_user_post)]
mod tests {
    use super::*;
    use core::ptr;

    use crate::sys::report::cases;

    const LOCAL: u32 = Token::LOCAL_MEMORY.raw();

    fn sge(lkey: u32) -> bindings::ib_sge {
        bindings::ib_sge {
            addr: 0x1000,
            length: 8,
            lkey,
        }
    }

    /// Checks one request of that kind with one element.
    fn send(opcode: bindings::ib_wr_opcode, send_flags: u32, lkey: u32) -> Result {
        let mut list = [sge(lkey)];
        let wr = bindings::ib_send_wr {
            opcode,
            // CAST: flags are small.
            send_flags: send_flags as c_int,
            sg_list: list.as_mut_ptr(),
            num_sge: 1,
            ..Default::default()
        };
        // SAFETY: The request and its list live as long as the call.
        unsafe { check(&wr) }.map(|_| ())
    }

    #[test]
    fn the_key_of_all_memory_is_not_for_programs() -> Result {
        let opcode = bindings::ib_wr_opcode_IB_WR_SEND;
        kunit_assert_eq!(send(opcode, 0, LOCAL), Err(EINVAL));
        assert!(send(opcode, 0, LOCAL + 1).is_ok());
        let mut list = [sge(7), sge(LOCAL)];
        let mut last = bindings::ib_recv_wr {
            sg_list: list.as_mut_ptr(),
            num_sge: 2,
            ..Default::default()
        };
        let first = bindings::ib_recv_wr {
            next: &mut last,
            ..Default::default()
        };
        // SAFETY: The requests and the list live as long as the call.
        kunit_assert_eq!(unsafe { check(&first) }.err(), Some(EINVAL));
        // SAFETY: Null is an empty chain.
        assert!(unsafe { check::<bindings::ib_recv_wr>(ptr::null()) }.is_ok());
        Ok(())
    }

    #[test]
    fn registrations_are_not_for_programs() {
        for opcode in cases([
            bindings::ib_wr_opcode_IB_WR_REG_MR,
            bindings::ib_wr_opcode_IB_WR_LOCAL_INV,
            bindings::ib_wr_opcode_IB_WR_RDMA_READ_WITH_INV,
            bindings::ib_wr_opcode_IB_WR_BIND_MW,
        ]) {
            kunit_assert_eq!(send(opcode, 0, 7), Err(EINVAL));
        }
        for opcode in cases([
            bindings::ib_wr_opcode_IB_WR_SEND_WITH_INV,
            bindings::ib_wr_opcode_IB_WR_RDMA_READ,
            bindings::ib_wr_opcode_IB_WR_ATOMIC_FETCH_AND_ADD,
        ]) {
            assert!(send(opcode, 0, 7).is_ok());
        }
    }

    #[test]
    fn inline_data_is_not_taken_from_the_kernel() {
        let secret = [7u8; 8];
        // In User Mode Linux the kernel's own memory lies among the addresses of programs: a read
        // there goes to the memory of a program, which the thread of a test does not have. No
        // program has the last page.
        let addr = if cfg!(CONFIG_UML) {
            u64::MAX - 4095
        } else {
            secret.as_ptr().expose_provenance() as u64
        };
        let mut list = [bindings::ib_sge {
            addr,
            length: 8,
            lkey: 0,
        }];
        let wr = bindings::ib_send_wr {
            opcode: bindings::ib_wr_opcode_IB_WR_SEND,
            // CAST: flags are small.
            send_flags: bindings::ib_send_flags_IB_SEND_INLINE as c_int,
            sg_list: list.as_mut_ptr(),
            num_sge: 1,
            ..Default::default()
        };
        // SAFETY: The request and its list live as long as the call.
        kunit_assert_eq!(unsafe { check(&wr) }.err(), Some(EFAULT));
    }
}
