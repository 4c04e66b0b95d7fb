// SPDX-License-Identifier: GPL-2.0

//! [`Name`]: a short name by value, for an object that may be renamed while its name is in use.

use core::ops::Deref;

use kernel::{
    fmt,
    str::CStr, //
};

/// Room for a name with its terminating zero. C: `IB_DEVICE_NAME_MAX`.
pub(crate) const ROOM: usize = 64;

/// A name.
///
/// # Invariants
///
/// The last byte is zero.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Name([u8; ROOM]);

impl Name {
    /// A copy of `name`, cut to the room. Any context.
    pub(crate) fn of(name: &CStr) -> Self {
        let mut room = [0; ROOM];
        // INVARIANT: the last byte stays zero.
        for (to, from) in room.iter_mut().take(ROOM - 1).zip(name.to_bytes()) {
            *to = *from;
        }
        Self(room)
    }
}

impl Deref for Name {
    type Target = CStr;

    fn deref(&self) -> &CStr {
        // By the invariant there is a zero.
        CStr::from_bytes_until_nul(&self.0).unwrap_or_default()
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&**self, f)
    }
}

#[cfg(ndk_kunit)]
#[kernel::macros::kunit_tests(ndk_sys_name)]
mod tests {
    use super::*;
    use kernel::{
        prelude::*,
        str::CString, //
    };

    use crate::sys::report::cases;

    #[test]
    fn a_name_is_what_it_was_made_of() -> Result {
        for name in cases([c"", c"ndk0", c"a name with spaces"]) {
            kunit_assert_eq!(*Name::of(name), *name);
            let shown = CString::try_from_fmt(fmt!("{}", Name::of(name)))?;
            kunit_assert_eq!(*shown, *name);
        }
        assert!(Name::of(c"ndk1") != Name::of(c"ndk10"));
        Ok(())
    }

    #[test]
    fn a_name_too_long_is_cut_before_the_last_byte() -> Result {
        let mut text = [b'x'; 2 * ROOM];
        text[2 * ROOM - 1] = 0;
        let cut = Name::of(CStr::from_bytes_until_nul(&text).map_err(|_| EINVAL)?);
        kunit_assert_eq!(cut.to_bytes().len(), ROOM - 1);
        assert!(cut.to_bytes().iter().all(|b| *b == b'x'));
        Ok(())
    }
}
