// SPDX-License-Identifier: GPL-2.0

//! What a provider says of its objects in `rdma resource show ... -dd`.
//!
//! C header: [`include/rdma/restrack.h`](srctree/include/rdma/restrack.h)

use kernel::error::to_result;

use super::prelude::*;

/// Takes names and values of one object.
pub(crate) struct Details(*mut bindings::sk_buff);

impl Details {
    /// Has `f` describe an object in a netlink message. `EMSGSIZE` when that has no room.
    ///
    /// # Safety
    ///
    /// `msg` is a message of ib_core's that nobody else writes to during the call.
    pub(super) unsafe fn fill(
        msg: *mut bindings::sk_buff,
        f: impl FnOnce(&mut Self) -> Result,
    ) -> Result {
        // SAFETY: The caller has the message for himself.
        let begin = unsafe { bindings::ndk_details_begin(msg) };
        if begin.is_null() {
            return Err(EMSGSIZE);
        }
        let filled = f(&mut Self(msg));
        // SAFETY: As above; `begin` is what was begun in this message.
        unsafe { bindings::ndk_details_end(msg, begin, filled.is_ok()) };
        filled
    }

    /// A number.
    pub(crate) fn number(&mut self, name: &CStr, value: u64) -> Result {
        // SAFETY: The message is there as long as `self`, and the name is NUL-terminated.
        to_result(unsafe { bindings::rdma_nl_put_driver_u64(self.0, name.as_char_ptr(), value) })
    }

    /// A word.
    pub(crate) fn word(&mut self, name: &CStr, value: &CStr) -> Result {
        // SAFETY: The message is there as long as `self`, and both are NUL-terminated.
        to_result(unsafe {
            bindings::rdma_nl_put_driver_string(self.0, name.as_char_ptr(), value.as_char_ptr())
        })
    }
}
