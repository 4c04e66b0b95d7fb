// SPDX-License-Identifier: GPL-2.0

//! Who may connect a queue pair.
//!
//! rdma_ucm passes the number of the queue pair that a program names, and `iw_cm` looks it up
//! among all that there are. A queue pair of the kernel is connected only through the identifier
//! that it was made with (`rdma_create_qp()`), one of a program only by that program, and only from
//! the network namespace of its device: at 127.0.0.1 rdma_cm takes any device. The kernel's own
//! consumers are not asked for theirs, for some (NVMe) are in the first one always.

use core::ptr::NonNull;

use super::super::prelude::*;

/// A process, which nobody else is as long as this exists. C: `struct pid` of a thread group.
///
/// # Invariants
///
/// A reference to the `struct pid`.
pub(in crate::rdma) struct Process(NonNull<bindings::pid>);

// SAFETY: Reference counts of `struct pid` may be given up anywhere.
unsafe impl Send for Process {}
// SAFETY: It is compared, no more.
unsafe impl Sync for Process {}

impl Process {
    /// That of the calling task. Process context.
    pub(in crate::rdma) fn current() -> Option<Self> {
        // SAFETY: In process context there is a current task.
        // INVARIANT: The function gives a reference.
        NonNull::new(unsafe { bindings::ndk_get_current_process() }).map(Self)
    }
}

impl PartialEq for Process {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // SAFETY: By the invariant this is a reference, given up once.
        unsafe { bindings::ndk_put_process(self.0.as_ptr()) };
    }
}

/// Who a queue pair belongs to.
pub(in crate::rdma) enum Owner {
    /// A consumer in the kernel.
    Kernel,
    /// A program.
    Program(Process),
}

impl Owner {
    /// That of an object made by the calling task. `EINVAL` where there is no task.
    pub(in crate::rdma) fn of_caller(is_program: bool) -> Result<Self> {
        match is_program {
            true => Process::current().map(Self::Program).ok_or(EINVAL),
            false => Ok(Self::Kernel),
        }
    }

    /// Returns true if the calling task may connect `qp`, whose owner this is, through `id`.
    ///
    /// # Safety
    ///
    /// `id` is an identifier of `iw_cm`, in a call of its client, and `qp` a live queue pair.
    pub(in crate::rdma) unsafe fn may_connect(
        &self,
        qp: *mut bindings::ib_qp,
        id: *mut bindings::iw_cm_id,
    ) -> bool {
        // SAFETY: The caller says that the identifier is there.
        let client = unsafe { (*id).context }.cast::<bindings::rdma_cm_id>();
        if client.is_null() {
            return false;
        }
        // SAFETY: The only client of `iw_cm` is rdma_cm, and what it keeps with an identifier
        // begins with its own (`struct rdma_id_private`), which lives during the call.
        let own = unsafe { (*client).qp };
        // SAFETY: The caller says that both are there.
        let is_same_device = unsafe { (*qp).device == (*id).device };
        match self {
            Self::Kernel => own == qp,
            // rdma_ucm makes no queue pairs. Another device may be in another namespace.
            Self::Program(process) => {
                own.is_null()
                    && is_same_device
                    && Process::current().is_some_and(|caller| caller == *process)
            }
        }
    }

    /// Returns true if a connection of a queue pair, whose owner this is, may be asked for through
    /// `id` in the network namespace that has the cookie `net`.
    ///
    /// # Safety
    ///
    /// `id` is an identifier of `iw_cm`, in a call of its client.
    pub(in crate::rdma) unsafe fn is_in(&self, net: u64, id: *mut bindings::iw_cm_id) -> bool {
        // SAFETY: The caller says that the identifier is there.
        let client = unsafe { (*id).context }.cast::<bindings::rdma_cm_id>();
        match self {
            Self::Kernel => true,
            Self::Program(_) if client.is_null() => false,
            Self::Program(_) => {
                // SAFETY: As above, the client begins with an identifier of rdma_cm, which holds
                // its namespace from its creation to its end.
                let cookie = unsafe { bindings::ndk_net_cookie((*client).route.addr.dev_addr.net) };
                cookie == net
            }
        }
    }
}

#[cfg(ndk_kunit)]
#[kernel::macros::kunit_tests(ndk_rdma_user_owner)]
mod tests {
    use super::*;
    use core::ptr;

    /// Which queue pair a client keeps.
    #[derive(Clone, Copy)]
    enum Keeps {
        This,
        Another,
        None,
    }

    /// Whether a client that keeps that queue pair, on the same device or not, may connect one.
    fn may(owner: &Owner, keeps: Keeps, is_same_device: bool) -> bool {
        let mut qp = bindings::ib_qp::default();
        let mut client: bindings::rdma_cm_id = pin_init::zeroed();
        client.qp = match keeps {
            Keeps::This => &raw mut qp,
            Keeps::Another => ptr::without_provenance_mut(8),
            Keeps::None => ptr::null_mut(),
        };
        let mut id = bindings::iw_cm_id {
            context: (&raw mut client).cast(),
            device: match is_same_device {
                true => ptr::null_mut(),
                false => ptr::without_provenance_mut(8),
            },
            ..Default::default()
        };
        // SAFETY: All of them live as long as the call.
        unsafe { owner.may_connect(&mut qp, &mut id) }
    }

    #[test]
    fn a_queue_pair_of_the_kernel_is_connected_by_its_own_identifier() {
        assert!(may(&Owner::Kernel, Keeps::This, true));
        assert!(may(&Owner::Kernel, Keeps::This, false));
        assert!(!may(&Owner::Kernel, Keeps::Another, true));
        // Of rdma_ucm.
        assert!(!may(&Owner::Kernel, Keeps::None, true));
    }

    #[test]
    fn one_of_a_program_is_connected_in_the_namespace_of_its_device() -> Result {
        let mine = Owner::of_caller(true)?;
        // SAFETY: Null stands for the first namespace.
        let first = unsafe { bindings::ndk_net_cookie(ptr::null()) };
        let mut client: bindings::rdma_cm_id = pin_init::zeroed();
        let mut id = bindings::iw_cm_id {
            context: (&raw mut client).cast(),
            ..Default::default()
        };
        // SAFETY: Both live as long as the calls.
        unsafe {
            assert!(mine.is_in(first, &mut id) && !mine.is_in(first + 1, &mut id));
            assert!(Owner::Kernel.is_in(first + 1, &mut id));
        }
        id.context = ptr::null_mut();
        // SAFETY: As above.
        assert!(!unsafe { mine.is_in(first, &mut id) });
        Ok(())
    }

    #[test]
    fn one_of_a_program_is_connected_by_that_program_on_its_device() -> Result {
        let mine = Owner::of_caller(true)?;
        assert!(may(&mine, Keeps::None, true));
        assert!(!may(&mine, Keeps::None, false));
        // Not by the kernel.
        assert!(!may(&mine, Keeps::This, true));
        Ok(())
    }
}
