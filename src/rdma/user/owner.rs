// SPDX-License-Identifier: GPL-2.0

//! Owners of queue pairs: the right to connect them.
//!
//! rdma_ucm passes the number of the queue pair that a program names, and `iw_cm` looks the number
//! up among all queue pairs. A queue pair of the kernel is connected only through the identifier
//! that it was made with (`rdma_create_qp()`), a queue pair of a program only by that program; both
//! only through an identifier of their own device.

use core::ptr::NonNull;

use super::super::{
    cm_ops::CmClient,
    prelude::*, //
};

/// A process; its identity is not reused as long as this exists. C: `struct pid` of a thread group.
///
/// # Invariants
///
/// A reference to the `struct pid`.
pub(in crate::rdma) struct Process(NonNull<bindings::pid>);

// SAFETY: Reference counts of `struct pid` may be given up anywhere.
unsafe impl Send for Process {}
// SAFETY: The pointer is compared, no more.
unsafe impl Sync for Process {}

impl Process {
    /// Returns the process of the calling task; also with interrupts off.
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

/// The owner of a queue pair.
pub(in crate::rdma) enum Owner {
    /// A consumer in the kernel.
    Kernel,
    /// A program.
    Program(Process),
}

impl Owner {
    /// The owner of an object that the calling task makes. `EINVAL` if there is no task.
    pub(in crate::rdma) fn of_caller(is_program: bool) -> Result<Self> {
        match is_program {
            true => Process::current().map(Self::Program).ok_or(EINVAL),
            false => Ok(Self::Kernel),
        }
    }

    /// Returns true unless the owner is a program other than that of the calling task. Any context
    /// that belongs to a task.
    pub(in crate::rdma) fn admits_caller(&self) -> bool {
        match self {
            Self::Kernel => true,
            Self::Program(process) => Process::current().is_some_and(|caller| caller == *process),
        }
    }

    /// Returns true if the calling task may connect `qp`, which has this owner, as `client`.
    ///
    /// # Safety
    ///
    /// `qp` is a live queue pair.
    pub(in crate::rdma) unsafe fn may_connect(
        &self,
        qp: *mut bindings::ib_qp,
        client: &CmClient<'_>,
    ) -> bool {
        // SAFETY: The caller says that the queue pair is live.
        if unsafe { (*qp).device } != client.device {
            return false;
        }
        match self {
            Self::Kernel => client.qp == qp,
            // rdma_ucm makes no queue pairs.
            Self::Program(_) => client.qp.is_null() && self.admits_caller(),
        }
    }
}

#[cfg(ndk_kunit)]
#[kernel::macros::kunit_tests(ndk_rdma_user_owner)]
mod tests {
    use super::*;
    use crate::sys::netdev::Net;
    use core::ptr;

    /// The queue pair that a client keeps.
    #[derive(Clone, Copy)]
    enum Keeps {
        This,
        Another,
        None,
    }

    /// Returns true if a client with such a queue pair, on the same device or not, may connect.
    fn may(owner: &Owner, keeps: Keeps, is_same_device: bool) -> bool {
        let mut qp = bindings::ib_qp::default();
        let client = CmClient {
            qp: match keeps {
                Keeps::This => &raw mut qp,
                Keeps::Another => ptr::without_provenance_mut(8),
                Keeps::None => ptr::null_mut(),
            },
            device: match is_same_device {
                true => ptr::null_mut(),
                false => ptr::without_provenance_mut(8),
            },
            net: Net::FIRST,
            is_stream: true,
        };
        // SAFETY: The queue pair lives as long as the call.
        unsafe { owner.may_connect(&mut qp, &client) }
    }

    #[test]
    fn a_queue_pair_of_the_kernel_is_connected_by_its_own_identifier() {
        assert!(may(&Owner::Kernel, Keeps::This, true));
        assert!(!may(&Owner::Kernel, Keeps::This, false));
        assert!(!may(&Owner::Kernel, Keeps::Another, true));
        // A client of rdma_ucm.
        assert!(!may(&Owner::Kernel, Keeps::None, true));
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

    #[test]
    fn one_of_a_program_is_not_connected_by_another() -> Result {
        // SAFETY: The function has no requirements.
        let init = NonNull::new(unsafe { bindings::ndk_kunit_first_process() }).ok_or(ESRCH)?;
        // INVARIANT: The function gives a reference.
        let others = Owner::Program(Process(init));
        assert!(!others.admits_caller());
        assert!(!may(&others, Keeps::None, true));
        assert!(Owner::of_caller(true)?.admits_caller());
        Ok(())
    }
}
