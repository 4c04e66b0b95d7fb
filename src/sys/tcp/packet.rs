// SPDX-License-Identifier: GPL-2.0

//! Bytes that a socket has received, in the packet that carried them.
//!
//! C header: [`include/linux/skbuff.h`](srctree/include/linux/skbuff.h)

use core::{
    cell::Cell,
    ffi::c_void,
    marker::PhantomData,
    ptr, //
};

use kernel::{
    error::to_result,
    prelude::*,
    types::NotThreadSafe, //
};

use crate::{
    bindings,
    sys::span::{
        CopyFault,
        Run, //
    }, //
};

/// The unread bytes of a packet, while the socket is locked.
///
/// Other processors may change them, where the sender has lent them to its network: code copies
/// them, and never borrows them.
///
/// # Invariants
///
/// `len` bytes from `offset` on are in the live `skb`.
pub(crate) struct Packet<'a> {
    skb: *mut bindings::sk_buff,
    offset: u32,
    len: u32,
    /// Bytes that no copy can reach.
    is_lost: Cell<bool>,
    _locked: PhantomData<(&'a (), NotThreadSafe)>,
}

impl Packet<'_> {
    /// Unread bytes.
    pub(crate) fn len(&self) -> usize {
        // CAST: widening.
        self.len as usize
    }

    /// Returns true if a call met bytes that no copy can reach, as those of a device's memory.
    pub(crate) fn is_lost(&self) -> bool {
        self.is_lost.get()
    }

    /// CRC32C over the first `len` bytes, or all, as a continuation of `crc`, which is 0 at first.
    pub(crate) fn crc32c(&self, crc: u32, len: usize) -> u32 {
        // CAST: no more than `self.len`.
        let len = len.min(self.len()) as u32;
        let mut crc = crc;
        // SAFETY: By the invariant.
        if !unsafe { bindings::ndk_skb_crc32c(self.skb, self.offset, len, &mut crc) } {
            self.is_lost.set(true);
        }
        crc
    }

    /// Moves the first bytes to `to`; returns how many, which is what the shorter has.
    pub(crate) fn take(&mut self, to: &mut [u8]) -> usize {
        let len = to.len().min(self.len());
        // SAFETY: The slice has room for `len` bytes, and is not shared.
        unsafe { self.copy(to.as_mut_ptr().cast(), len) };
        len
    }

    /// Leaves all bytes behind.
    pub(crate) fn skip(&mut self) {
        // INVARIANT: There are `len` bytes.
        self.offset += self.len;
        self.len = 0;
    }

    /// Moves the first bytes to memory of a consumer; returns how many, which is what the shorter
    /// has. After an error some of them are gone.
    pub(crate) fn take_run(&mut self, to: Run<'_>) -> Result<usize, CopyFault> {
        // KCSAN takes the copies of `Run` for marked ones.
        let Some(address) = to.as_mut_ptr().filter(|_| !cfg!(CONFIG_KCSAN)) else {
            return self.take_by_parts(to);
        };
        let len = to.len().min(self.len());
        // SAFETY: The run is valid for `len` bytes, and does not fault; other processors may access
        // it as they may during any copy to it.
        unsafe { self.copy(address.cast(), len) };
        Ok(len)
    }

    /// The same by copies of [`Run`], for memory where an access may fault.
    fn take_by_parts(&mut self, to: Run<'_>) -> Result<usize, CopyFault> {
        let (mut part, mut done) = ([0; 128], 0);
        let len = to.len().min(self.len());
        while done < len {
            let most = part.len().min(len - done);
            let taken = self.take(&mut part[..most]);
            done += to.part(done, taken).write(&part[..taken])?;
        }
        Ok(done)
    }

    /// # Safety
    ///
    /// `len` bytes from `to` on may be written. There are as many.
    unsafe fn copy(&mut self, to: *mut c_void, len: usize) {
        // CAST: no more than `self.len`.
        let len = (len as u32).min(self.len);
        // SAFETY: By the invariant and the safety requirements.
        if unsafe { bindings::ndk_skb_copy(self.skb, self.offset, to, len) } != 0 {
            self.is_lost.set(true);
        }
        // INVARIANT: `len` is not more than there is.
        self.offset += len;
        self.len -= len;
    }
}

/// The argument and the function for C of a closure that reads.
pub(super) fn callback<F: FnMut(&mut Packet<'_>)>(
    read: &mut F,
) -> (
    *mut c_void,
    unsafe extern "C" fn(*mut c_void, *mut bindings::sk_buff, u32, u32) -> u32,
) {
    (ptr::from_mut(read).cast(), call::<F>)
}

/// # Safety
///
/// `arg` is of [`callback`] with this `F`, and not used by others at the same time. `skb` has `len`
/// bytes from `offset` on, and the socket is locked.
unsafe extern "C" fn call<F: FnMut(&mut Packet<'_>)>(
    arg: *mut c_void,
    skb: *mut bindings::sk_buff,
    offset: u32,
    len: u32,
) -> u32 {
    // SAFETY: By the safety requirements.
    let read = unsafe { &mut *arg.cast::<F>() };
    let (mut used, piece) = (0, super::piece());
    while used < len {
        let most = piece.min(len - used);
        // INVARIANT: By the safety requirements: `used` and `most` are not more than `len`.
        let mut packet = Packet {
            skb,
            offset: offset + used,
            len: most,
            is_lost: Cell::new(false),
            _locked: PhantomData,
        };
        read(&mut packet);
        used += most - packet.len;
        if packet.len > 0 {
            break;
        }
    }
    used
}

/// The number of bytes that were read, from the C function's return value.
pub(super) fn count(result: i32) -> Result<usize> {
    // CAST: not negative.
    to_result(result.min(0)).map(|()| result as usize)
}
