// SPDX-License-Identifier: GPL-2.0

//! The name of the provider in `rdma link add ... type`: its own, or that of one of the kernel's
//! software providers, for scripts that were written for them.
//!
//! C header: [`include/linux/moduleparam.h`](srctree/include/linux/moduleparam.h)

use kernel::sync::atomic::{
    Atomic,
    Relaxed, //
};

use super::prelude::*;

/// The link types of the kernel's software providers, and the modules that register them.
const OTHERS: [(&CStr, &CStr); 2] = [(c"siw", c"siw"), (c"rxe", c"rdma_rxe")];

/// The module parameter `link_type` of `bindings/export.c`, which is set before the module is
/// initialised, and never after.
#[no_mangle]
#[allow(non_upper_case_globals)]
// `CStrExt::as_char_ptr()` is no const function.
#[allow(clippy::disallowed_methods)]
static ndk_link_type: Atomic<*mut c_char> = Atomic::new(c"ndk".as_ptr().cast_mut().cast());

/// The name of a link type that may be registered.
pub(crate) struct LinkType(&'static CStr);

impl LinkType {
    /// The link type that the parameter asks for. The log has the reason of an error.
    ///
    /// `EINVAL` for an unknown name. `EBUSY` for a name of another module that is loaded: the core
    /// would warn, with a stack, and keep the first registration.
    pub(crate) fn wanted<T: Operations>() -> Result<Self> {
        // SAFETY: The parameter is NUL-terminated, and never changes: it is read-only.
        let asked = unsafe { CStr::from_char_ptr(ndk_link_type.load(Relaxed)) };
        let Some((found, owner)) = known::<T>(asked) else {
            let [(siw, _), (rxe, _)] = OTHERS;
            pr_err!(
                "link_type={} is none of {}, {}, {}\n",
                asked,
                T::LINK_TYPE,
                siw,
                rxe
            );
            return Err(EINVAL);
        };
        // SAFETY: The name is NUL-terminated.
        match owner.filter(|owner| unsafe { bindings::ndk_module_is_loaded(owner.as_char_ptr()) }) {
            Some(owner) => {
                pr_err!(
                    "link_type={}: the module {} is loaded, which has it\n",
                    found,
                    owner
                );
                Err(EBUSY)
            }
            None => Ok(Self(found)),
        }
    }

    /// Returns the name for `struct rdma_link_ops`, which keeps the pointer.
    pub(super) fn name(&self) -> &'static CStr {
        self.0
    }
}

/// A name that may be registered, with its module if that is another one.
fn known<T: Operations>(asked: &CStr) -> Option<(&'static CStr, Option<&'static CStr>)> {
    let is_asked = |name: &CStr| name.to_bytes() == asked.to_bytes();
    if is_asked(T::LINK_TYPE) {
        return Some((T::LINK_TYPE, None));
    }
    let (name, owner) = OTHERS.into_iter().find(|(name, _)| is_asked(name))?;
    Some((name, Some(owner)))
}

#[cfg(ndk_kunit)]
#[kernel::macros::kunit_tests(ndk_rdma_link_type)]
mod tests {
    use super::{
        super::tests::stub::Stub,
        *, //
    };

    use crate::sys::report::cases;

    #[test]
    fn own_name_is_nobody_elses() {
        kunit_assert_eq!(known::<Stub>(c"stub"), Some((c"stub", None)));
    }

    #[test]
    fn names_of_others_belong_to_their_modules() {
        for (asked, module) in cases([(c"siw", c"siw"), (c"rxe", c"rdma_rxe")]) {
            kunit_assert_eq!(known::<Stub>(asked), Some((asked, Some(module))));
        }
    }

    #[test]
    fn nothing_else_is_known() {
        for unknown in cases([c"", c"rdma_rxe", c"si", c"siw ", c"SIW", c"ndk", c"stub2"]) {
            assert!(known::<Stub>(unknown).is_none());
        }
    }

    #[test]
    fn parameter_is_its_own_name_unless_set() {
        // SAFETY: The parameter is NUL-terminated, and never changes.
        let asked = unsafe { CStr::from_char_ptr(ndk_link_type.load(Relaxed)) };
        assert!([c"ndk", c"siw", c"rxe"]
            .iter()
            .any(|name| name.to_bytes() == asked.to_bytes()));
    }

    #[test]
    fn loaded_modules_are_found_by_their_whole_name() {
        // SAFETY: The names are NUL-terminated.
        unsafe {
            assert!(!bindings::ndk_module_is_loaded(c"ndk_nosuch".as_char_ptr()));
            assert!(!bindings::ndk_module_is_loaded(c"".as_char_ptr()));
        }
    }
}
