// SPDX-License-Identifier: GPL-2.0

//! Static branches, as cheap as those of C.
//!
//! The kernel crate's own are `asm!` blocks that may touch all memory and the flags: behind each of
//! them the compiler reloads all that it had loaded before.
//!
//! C header: [`include/linux/jump_label.h`](srctree/include/linux/jump_label.h)

/// Returns true if a static key is on: `$field` of `$key`, which has the type `$type`.
///
/// Unsafe: `$key` must be a static key, defined in C.
#[cfg(CONFIG_JUMP_LABEL)]
macro_rules! static_branch_unlikely {
    ($key:path, $type:ty, $field:ident) => {
        'branch: {
            // `nomem`, `preserves_flags`: the code is a jump or a no-op, which touch neither memory
            // nor flags.
            kernel::asm!(
                include!(concat!(
                    env!("OBJTREE"),
                    "/rust/kernel/generated_arch_static_branch_asm.rs"
                ));
                l_yes = label {
                    break 'branch true;
                },
                symb = sym $key,
                off = const ::core::mem::offset_of!($type, $field),
                branch = const 0,
                options(nomem, nostack, preserves_flags),
            );
            false
        }
    };
}

#[cfg(not(CONFIG_JUMP_LABEL))]
pub(crate) use kernel::jump_label::static_branch_unlikely;
#[cfg(CONFIG_JUMP_LABEL)]
pub(crate) use static_branch_unlikely;
