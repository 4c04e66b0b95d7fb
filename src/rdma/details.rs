// SPDX-License-Identifier: GPL-2.0

//! Details of a provider's objects in `rdma resource show ... -dd`.
//!
//! C header: [`include/rdma/restrack.h`](srctree/include/rdma/restrack.h)

use kernel::error::to_result;

use super::prelude::*;

/// Takes names and values of one object.
pub(crate) struct Details(*mut bindings::sk_buff);

impl Details {
    /// Calls `f` to describe an object in a netlink message. `EMSGSIZE` if the message has no room.
    ///
    /// # Safety
    ///
    /// `msg` is a message of ib_core's that no other code writes to during the call.
    pub(super) unsafe fn fill(
        msg: *mut bindings::sk_buff,
        f: impl FnOnce(&mut Self) -> Result,
    ) -> Result {
        // SAFETY: The caller says that no other code writes to the message.
        let begin = unsafe { bindings::ndk_details_begin(msg) };
        if begin.is_null() {
            return Err(EMSGSIZE);
        }
        let filled = f(&mut Self(msg));
        // SAFETY: As above; `begin` was begun in this message.
        unsafe { bindings::ndk_details_end(msg, begin, filled.is_ok()) };
        filled
    }

    /// Adds a number.
    pub(crate) fn number(&mut self, name: &CStr, value: u64) -> Result {
        // SAFETY: The message lives as long as `self`, and the name is NUL-terminated.
        to_result(unsafe { bindings::rdma_nl_put_driver_u64(self.0, name.as_char_ptr(), value) })
    }

    /// Adds a word.
    pub(crate) fn word(&mut self, name: &CStr, value: &CStr) -> Result {
        // SAFETY: The message lives as long as `self`, and both are NUL-terminated.
        to_result(unsafe {
            bindings::rdma_nl_put_driver_string(self.0, name.as_char_ptr(), value.as_char_ptr())
        })
    }
}
