// SPDX-License-Identifier: GPL-2.0

//! A consumer in C, as tests play it: calls go through the dispatch tables of the objects.

use core::{
    ffi::c_void,
    ptr, //
};

use kernel::prelude::*;

use super::adapter::{
    ndk_face_close,
    open, //
};
use crate::{
    bindings,
    ndk::{
        adapter::{
            NdkContext,
            VERSION, //
        },
        status::NtStatus, //
    },
    sys::mdl::Described, //
};

/// Bytes of a mapping before its pages.
pub(crate) const LAM_HEAD: usize = 16;

/// A word of memory that was not written.
const UNWRITTEN: u64 = 0xA5A5_A5A5_A5A5_A5A5;

/// Memory for a mapping, as C lays it out: a context, the number of pages, the pages.
pub(crate) struct Lam {
    words: KVec<u64>,
}

impl Lam {
    /// Memory for up to `pages` pages. May sleep.
    pub(crate) fn new(pages: usize) -> Result<Self> {
        Ok(Self {
            words: KVec::from_elem(UNWRITTEN, LAM_HEAD / 8 + pages, GFP_KERNEL)?,
        })
    }

    /// Its size in bytes.
    pub(crate) fn size(&self) -> u32 {
        // CAST: a test's size.
        (self.words.len() * 8) as u32
    }

    /// The pages, as many as the mapping says.
    pub(crate) fn pages(&self) -> &[u64] {
        // CAST: the low half of the word; the other is padding.
        let count = self.words.get(1).map_or(0, |word| *word as u32) as usize;
        self.words.get(2..2 + count).unwrap_or_default()
    }

    /// Returns true if the pages from `page` on were not written.
    pub(crate) fn is_unwritten_from(&self, page: usize) -> bool {
        let rest = self.words.get(LAM_HEAD / 8 + page..).unwrap_or_default();
        rest.iter().all(|word| *word == UNWRITTEN)
    }

    /// Returns true if no part of it was written.
    pub(crate) fn is_unwritten(&self) -> bool {
        self.words.iter().all(|word| *word == UNWRITTEN)
    }

    fn as_mut_ptr(&mut self) -> *mut bindings::ndk_logical_address_mapping {
        self.words.as_mut_ptr().cast()
    }
}

/// An adapter that a consumer in C has opened; dropping it closes it. May sleep.
pub(crate) struct Opened(*mut bindings::ndk_adapter);

/// The callback of a call that is over at once.
///
/// # Safety
///
/// The arguments are those that the call was given, or as the header says.
unsafe extern "C" fn never(_context: *mut c_void, _status: i32) {
    kunit_note!("called back");
}

impl Opened {
    /// May sleep.
    pub(crate) fn new(context: &NdkContext, name: &CStr) -> Result<Self, NtStatus> {
        let params = bindings::ndk_open_params {
            version: bindings::ndk_version {
                major: VERSION.major,
                minor: VERSION.minor,
            },
            name: name.as_char_ptr(),
            ..Default::default()
        };
        let mut adapter = ptr::null_mut();
        // SAFETY: `params` and the name outlive the call, its other pointers are null, and
        // `adapter` may be written.
        unsafe { open(context, &raw const params, &raw mut adapter)? };
        Ok(Self(adapter))
    }

    fn dispatch(&self) -> &bindings::ndk_adapter_dispatch {
        // SAFETY: The adapter is open, and its table constant.
        unsafe { &*(*self.0).dispatch }
    }

    /// `NdkBuildLAM`: its status, and the offset that it gave, or `u32::MAX`.
    ///
    /// `size` is the size of `lam` as the consumer states it; `EINVAL` if `lam` is smaller.
    pub(crate) fn build_lam(
        &self,
        chain: &Described,
        len: u64,
        lam: Option<&mut Lam>,
        size: &mut u32,
    ) -> Result<(i32, u32)> {
        let call = self.dispatch().build_lam.ok_or(EINVAL)?;
        let place = match lam {
            Some(lam) if *size <= lam.size() => lam.as_mut_ptr(),
            Some(_) => return Err(EINVAL),
            None => ptr::null_mut(),
        };
        let mut offset = u32::MAX;
        // SAFETY: The chain and the mapping stay during the call, and have the size given.
        let status = unsafe {
            call(
                self.0,
                chain.as_raw(),
                len,
                Some(never),
                ptr::null_mut(),
                place,
                size,
                &raw mut offset,
            )
        };
        Ok((status, offset))
    }

    /// `NdkBuildLAM` without a chain: its status.
    pub(crate) fn build_lam_of_nothing(&self, lam: &mut Lam) -> Result<i32> {
        let call = self.dispatch().build_lam.ok_or(EINVAL)?;
        let (mut size, mut offset) = (lam.size(), 0);
        // SAFETY: As above; a chain may be null.
        Ok(unsafe {
            call(
                self.0,
                ptr::null_mut(),
                1,
                Some(never),
                ptr::null_mut(),
                lam.as_mut_ptr(),
                &raw mut size,
                &raw mut offset,
            )
        })
    }

    /// `NdkReleaseLAM`.
    pub(crate) fn release_lam(&self, lam: &mut Lam) -> Result {
        let call = self.dispatch().release_lam.ok_or(EINVAL)?;
        // SAFETY: The mapping was built by this adapter.
        unsafe { call(self.0, lam.as_mut_ptr()) };
        Ok(())
    }

    /// `NdkQueryAdapterInfo`: the flags.
    pub(crate) fn flags(&self) -> Result<u32> {
        let call = self.dispatch().query_adapter_info.ok_or(EINVAL)?;
        let mut info = bindings::ndk_adapter_info::default();
        let mut size = core::mem::size_of_val(&info) as u32;
        // SAFETY: There is room for it.
        match unsafe { call(self.0, &raw mut info, &raw mut size) } {
            0 => Ok(info.adapter_flags),
            _ => Err(EIO),
        }
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // SAFETY: Opened and not closed; it has no successors.
        unsafe { ndk_face_close(self.0, None, ptr::null_mut()) };
    }
}
