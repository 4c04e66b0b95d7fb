// SPDX-License-Identifier: GPL-2.0

//! Fault injection: the faults that a device was told to make, and the places where they hit.
//!
//! Each device has one fault of each [`Fault`], off until it is given a probability in debugfs.
//! Code at a place where a fault may hit asks [`is_on`] first, which is a static branch, and then
//! [`Faults::hits`]. On a kernel without `CONFIG_FAULT_INJECTION_DEBUG_FS` the first is constantly
//! `false`, and no fault hits.
//!
//! The hits are reproducible: the sites that a fault meets are numbered for each queue pair, from
//! the moment when the probability was set, and each run with the same seed hits the same numbers.
//!
//! C header: [`include/linux/fault-inject.h`](srctree/include/linux/fault-inject.h)

use kernel::{
    prelude::*,
    str::CStr, //
};

use crate::bindings;
use crate::rdma::values::wc::WcStatus;

#[cfg(CONFIG_FAULT_INJECTION_DEBUG_FS)]
mod decide;

/// A fault of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Fault {
    /// The connection is lost when the request has ended.
    DropConnection = bindings::ndk_fault_kind_NDK_FAULT_DROP_CONNECTION,
    /// The request fails with a status.
    CompleteWith = bindings::ndk_fault_kind_NDK_FAULT_COMPLETE_WITH,
    /// The request ends late.
    DelayCompletion = bindings::ndk_fault_kind_NDK_FAULT_DELAY_COMPLETION,
    /// The request begins late.
    DelayMessage = bindings::ndk_fault_kind_NDK_FAULT_DELAY_MESSAGE,
    /// The message finds no receive.
    Rnr = bindings::ndk_fault_kind_NDK_FAULT_RNR,
    /// The token that the request invalidates is refused.
    RefuseInvalidation = bindings::ndk_fault_kind_NDK_FAULT_REFUSE_INVALIDATION,
    /// The token of the peer's memory is refused.
    RefuseAccess = bindings::ndk_fault_kind_NDK_FAULT_REFUSE_ACCESS,
    /// One byte arrives wrong.
    Corrupt = bindings::ndk_fault_kind_NDK_FAULT_CORRUPT,
    /// The port goes down for a time.
    PortDown = bindings::ndk_fault_kind_NDK_FAULT_PORT_DOWN,
    /// The connect is refused.
    RejectConnect = bindings::ndk_fault_kind_NDK_FAULT_REJECT_CONNECT,
    /// The connect takes longer.
    DelayConnect = bindings::ndk_fault_kind_NDK_FAULT_DELAY_CONNECT,
    /// An event for the connection manager is lost.
    DropEvent = bindings::ndk_fault_kind_NDK_FAULT_DROP_EVENT,
    /// Making an object fails.
    NoMemory = bindings::ndk_fault_kind_NDK_FAULT_NO_MEMORY,
}

/// The number of faults of a device.
#[cfg(CONFIG_FAULT_INJECTION_DEBUG_FS)]
const COUNT: usize = bindings::ndk_fault_kind_NDK_FAULT_COUNT as usize;

/// The kind of a [`Site`] that a fault meets. A fault may be told to match some kinds only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum SiteKind {
    Send = bindings::ndk_fault_what_NDK_WHAT_SEND,
    Write = bindings::ndk_fault_what_NDK_WHAT_WRITE,
    Read = bindings::ndk_fault_what_NDK_WHAT_READ,
    Atomic = bindings::ndk_fault_what_NDK_WHAT_ATOMIC,
    Register = bindings::ndk_fault_what_NDK_WHAT_REG_MR,
    Invalidate = bindings::ndk_fault_what_NDK_WHAT_LOCAL_INV,
    Bind = bindings::ndk_fault_what_NDK_WHAT_BIND_MW,
    /// A receive that a message takes.
    Receive = bindings::ndk_fault_what_NDK_WHAT_RECV,
    Domain = bindings::ndk_fault_what_NDK_WHAT_PD,
    CompletionQueue = bindings::ndk_fault_what_NDK_WHAT_CQ,
    QueuePair = bindings::ndk_fault_what_NDK_WHAT_QP,
    SharedReceive = bindings::ndk_fault_what_NDK_WHAT_SRQ,
    Region = bindings::ndk_fault_what_NDK_WHAT_MR,
    Listener = bindings::ndk_fault_what_NDK_WHAT_LISTENER,
    Connection = bindings::ndk_fault_what_NDK_WHAT_CONNECTION,
    /// A connect request on its way to the listener.
    Request = bindings::ndk_fault_what_NDK_WHAT_REQUEST,
    /// The answer to a connect request.
    Reply = bindings::ndk_fault_what_NDK_WHAT_REPLY,
    /// The end of a connection.
    Disconnect = bindings::ndk_fault_what_NDK_WHAT_DISCONNECT,
}

/// The completions that a fault delays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(CONFIG_FAULT_INJECTION_DEBUG_FS), allow(dead_code))]
#[repr(u32)]
pub(crate) enum FaultSide {
    /// The completion of the request, and that of the receive that the request takes.
    Both = bindings::ndk_fault_side_NDK_SIDE_BOTH,
    /// The completion of the request alone, as if the acknowledgement of its message were late.
    Requester = bindings::ndk_fault_side_NDK_SIDE_REQUESTER,
}

#[cfg(CONFIG_FAULT_INJECTION_DEBUG_FS)]
impl FaultSide {
    fn of(number: u32) -> Self {
        match number {
            bindings::ndk_fault_side_NDK_SIDE_REQUESTER => Self::Requester,
            _ => Self::Both,
        }
    }
}

/// The settings of a fault, as its files have them.
#[cfg(ndk_kunit)]
#[cfg_attr(not(CONFIG_FAULT_INJECTION_DEBUG_FS), allow(dead_code))]
#[derive(Clone, Copy, Debug)]
pub(crate) struct FaultSettings {
    /// Percent of the sites that the fault meets.
    pub(crate) probability: u32,
    /// The fault hits one site in `interval`, of each queue pair.
    pub(crate) interval: u32,
    /// The most hits; -1 for no limit.
    pub(crate) times: i32,
    /// The number of the only site to hit, of each queue pair; 0 for all.
    pub(crate) nth: u32,
    /// The only queue pair; 0 for all.
    pub(crate) qp: u32,
    pub(crate) usec: u32,
    pub(crate) seed: u32,
    pub(crate) status: WcStatus,
    /// The only kind of site; `None` for all but receives.
    pub(crate) what: Option<SiteKind>,
    pub(crate) side: FaultSide,
}

#[cfg(ndk_kunit)]
impl FaultSettings {
    /// Always, without a limit.
    pub(crate) const ALWAYS: Self = Self {
        probability: 100,
        interval: 1,
        times: -1,
        nth: 0,
        qp: 0,
        usec: 0,
        seed: 1,
        status: WcStatus::RemOp,
        what: None,
        side: FaultSide::Both,
    };
    /// Never.
    pub(crate) const OFF: Self = Self {
        probability: 0,
        ..Self::ALWAYS
    };
}

/// Returns true if the kernel can inject faults. If not, the test that runs in this task counts as
/// skipped, and has to end.
#[cfg(ndk_kunit)]
pub(crate) fn needed() -> bool {
    let is_there = cfg!(CONFIG_FAULT_INJECTION_DEBUG_FS);
    if !is_there {
        // SAFETY: Changes the state of this task's test only; the text is NUL-terminated.
        unsafe {
            bindings::ndk_kunit_skip(c"no CONFIG_FAULT_INJECTION_DEBUG_FS".as_char_ptr());
        }
    }
    is_there
}

/// A place where a fault may hit.
#[cfg_attr(not(CONFIG_FAULT_INJECTION_DEBUG_FS), allow(dead_code))]
pub(crate) struct Site<'a> {
    /// The request, object or event there.
    pub(crate) what: SiteKind,
    /// The number and the counts of its queue pair; `None` for a site of no queue pair.
    pub(crate) qp: Option<(u32, &'a Counts)>,
    /// The number of bytes.
    pub(crate) size: u64,
}

/// A fault that hit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hit {
    /// The number of the site among those that the fault has met for the queue pair, from 1.
    pub(crate) number: u32,
    /// A random number, the same in each run with the same seed.
    pub(crate) draw: u32,
    /// The time that the fault was set to, in microseconds.
    pub(crate) usec: u32,
    /// The status that the fault was set to fail with.
    pub(crate) status: WcStatus,
    /// The completions that the fault was set to delay.
    pub(crate) side: FaultSide,
}

/// Returns true while any fault of any device has a probability. While none has, a site costs only
/// this test. Any context.
#[cfg(CONFIG_FAULT_INJECTION_DEBUG_FS)]
#[inline(always)]
pub(crate) fn is_on() -> bool {
    // SAFETY: The key is a static one, defined in C.
    unsafe {
        super::jump_label::static_branch_unlikely!(
            bindings::ndk_faults_on,
            bindings::ndk_switch,
            key
        )
    }
}

/// Returns false: the kernel injects no faults.
#[cfg(not(CONFIG_FAULT_INJECTION_DEBUG_FS))]
#[inline(always)]
pub(crate) const fn is_on() -> bool {
    false
}

#[cfg(CONFIG_FAULT_INJECTION_DEBUG_FS)]
mod enabled {
    use super::{
        decide::Settings,
        *, //
    };
    use core::ptr::NonNull;
    use kernel::sync::atomic::{
        Atomic,
        Relaxed, //
    };

    /// The counts of one queue pair: the sites that each fault has met. Counted under the lock of
    /// one device's faults; under the locks of several devices counts would be lost.
    pub(crate) struct Counts([Atomic<u64>; COUNT]);

    impl Counts {
        /// No sites.
        pub(crate) const fn new() -> Self {
            Self([const { Atomic::new(0) }; COUNT])
        }

        fn of(&self, fault: Fault) -> Option<&Atomic<u64>> {
            // CAST: the number of the variant, which is below `COUNT`.
            self.0.get(fault as usize)
        }
    }

    /// The faults of one device.
    pub(crate) struct Faults(NonNull<bindings::ndk_faults>);

    // SAFETY: `ndk_faults` is memory of the slab allocator with locks that belong to no task; any
    // task may free it.
    unsafe impl Send for Faults {}
    // SAFETY: Through `&Faults` counts are changed under the spinlock of `ndk_faults`, settings are
    // read by single loads, and the folder is changed under `ndk_faults_mutex`.
    unsafe impl Sync for Faults {}

    impl Faults {
        /// All faults of a device, off and without files. May sleep. `ENOMEM` without memory.
        pub(crate) fn new() -> Result<Self> {
            // SAFETY: The function has no requirements.
            let faults = unsafe { bindings::ndk_faults_new() };
            Ok(Self(NonNull::new(faults).ok_or(ENOMEM)?))
        }

        /// Makes the files, in the folder `device` of debugfs. A second call makes none. May sleep.
        pub(crate) fn show(&self, device: &CStr) {
            // SAFETY: The faults live as long as `self`, and the name is NUL-terminated.
            unsafe { bindings::ndk_faults_show(self.0.as_ptr(), device.as_char_ptr()) };
        }

        /// Renames the folder to `device`. May sleep.
        pub(crate) fn rename(&self, device: &CStr) {
            // SAFETY: The faults live as long as `self`, and the name is NUL-terminated.
            unsafe { bindings::ndk_faults_rename(self.0.as_ptr(), device.as_char_ptr()) };
        }

        /// Removes the files, and turns the faults off. May sleep.
        pub(crate) fn hide(&self) {
            // SAFETY: The faults live as long as `self`.
            unsafe { bindings::ndk_faults_hide(self.0.as_ptr()) };
        }

        /// Returns true while `fault` has a probability. Any context.
        pub(crate) fn is_set(&self, fault: Fault) -> bool {
            self.settings(fault).probability > 0
        }

        /// Returns the hit of `fault` at `site`, if it hits there. Any context.
        pub(crate) fn hits(&self, fault: Fault, site: &Site<'_>) -> Option<Hit> {
            if !self.is_set(fault) {
                return None;
            }
            let (qp, site_count) = match site.qp {
                Some((qp, counts)) => (qp, counts.of(fault)),
                None => (0, None),
            };
            let mut counts = self.lock(fault);
            // The probability does not change under the lock.
            let settings = self.settings(fault);
            if !settings.matches(site.what, qp) {
                return None;
            }
            let (user, number) = decide::count(counts.get(), site_count);
            let draw = draw(fault, settings.seed, user, number);
            if !(settings.picks(number, draw) && counts.should_fail(site.size)) {
                return None;
            }
            counts.get().hits = counts.get().hits.wrapping_add(1);
            Some(Hit {
                number,
                // Drawn anew: among hits the first draw is not evenly distributed.
                draw: self::draw(fault, draw, user, number),
                usec: settings.usec,
                status: settings.status,
                side: settings.side,
            })
        }

        fn settings(&self, fault: Fault) -> Settings {
            // CAST: the number of the variant.
            // SAFETY: The faults live as long as `self`. The files change the fields by single
            // writes, so each field is read as an atomic; tests change the fields under the lock.
            let read = |field: *mut u32| unsafe { Atomic::from_ptr(field) }.load(Relaxed);
            // SAFETY: The faults live as long as `self`.
            let of = unsafe { bindings::ndk_fault_settings(self.0.as_ptr(), fault as u32) };
            // SAFETY: `of` points at the settings of the fault, which live as long as `self`.
            unsafe {
                Settings {
                    probability: read(&raw mut (*of).probability),
                    interval: read(&raw mut (*of).interval),
                    qp: read(&raw mut (*of).qp),
                    nth: read(&raw mut (*of).nth),
                    usec: read(&raw mut (*of).usec),
                    seed: read(&raw mut (*of).seed),
                    status: WcStatus::failure(read(&raw mut (*of).status))
                        .unwrap_or(WcStatus::RemOp),
                    what: read(&raw mut (*of).what),
                    side: FaultSide::of(read(&raw mut (*of).side)),
                }
            }
        }

        fn lock(&self, fault: Fault) -> Counting<'_> {
            let mut flags = 0;
            // CAST: the number of the variant.
            // SAFETY: The faults live as long as `self`; `Counting` unlocks, on this CPU.
            let counts =
                unsafe { bindings::ndk_fault_lock(self.0.as_ptr(), fault as u32, &mut flags) };
            // INVARIANT: The lock was taken just now, for these counts.
            Counting {
                faults: self,
                fault,
                counts,
                flags,
            }
        }

        /// Sets a fault as its files would. May sleep.
        #[cfg(ndk_kunit)]
        pub(crate) fn set(&self, fault: Fault, order: &FaultSettings) {
            let order = bindings::ndk_fault_order {
                times: order.times,
                space: 0,
                settings: bindings::ndk_fault_settings {
                    probability: order.probability,
                    interval: order.interval,
                    qp: order.qp,
                    nth: order.nth,
                    usec: order.usec,
                    seed: order.seed,
                    // CAST: the numbers of the variants.
                    status: order.status as u32,
                    what: order.what.map_or(0, |what| what as u32),
                    side: order.side as u32,
                },
            };
            // CAST: the number of the variant.
            // SAFETY: The faults live as long as `self`.
            unsafe { bindings::ndk_fault_set(self.0.as_ptr(), fault as u32, &order) };
        }
    }

    impl Drop for Faults {
        fn drop(&mut self) {
            // SAFETY: `self` owns the faults, and no borrow of them is left.
            unsafe { bindings::ndk_faults_free(self.0.as_ptr()) };
        }
    }

    /// A random number, the same for the same arguments.
    fn draw(fault: Fault, seed: u32, user: u16, number: u32) -> u32 {
        // CAST: the number of the variant.
        // SAFETY: The function has no requirements.
        unsafe { bindings::ndk_fault_draw(seed, user.into(), number, fault as u32) }
    }

    /// The held lock of a device's faults, with the counts of one fault. Interrupts are off.
    ///
    /// # Invariants
    ///
    /// The lock is held, and `counts` are those of `fault`, which the lock protects.
    struct Counting<'a> {
        faults: &'a Faults,
        fault: Fault,
        counts: *mut bindings::ndk_fault_counts,
        flags: c_ulong,
    }

    impl Counting<'_> {
        fn get(&mut self) -> &mut bindings::ndk_fault_counts {
            // SAFETY: By the invariant the lock is held, without which the counts do not change.
            // The C code of two files reads one field each without the lock; the value that it
            // shows may be old, and has no other use.
            unsafe { &mut *self.counts }
        }

        /// Returns true if times, space and task filter let the fault hit.
        fn should_fail(&self, size: u64) -> bool {
            // CAST: the number of the variant.
            let (faults, kind) = (self.faults.0.as_ptr(), self.fault as u32);
            // SAFETY: By the invariant the lock is held.
            unsafe { bindings::ndk_fault_should_fail(faults, kind, size) }
        }
    }

    impl Drop for Counting<'_> {
        fn drop(&mut self) {
            // SAFETY: By the invariant the lock is held, with these flags.
            unsafe { bindings::ndk_fault_unlock(self.faults.0.as_ptr(), self.flags) };
        }
    }

    impl Fault {
        /// The name of the fault's folder.
        pub(crate) fn name(self) -> &'static CStr {
            // CAST: the number of the variant.
            // SAFETY: The names are static and NUL-terminated.
            unsafe { CStr::from_char_ptr(bindings::ndk_fault_name(self as u32)) }
        }
    }
}

#[cfg(not(CONFIG_FAULT_INJECTION_DEBUG_FS))]
mod disabled {
    use super::*;

    /// No counts.
    pub(crate) struct Counts;

    impl Counts {
        /// No counts.
        pub(crate) const fn new() -> Self {
            Self
        }
    }

    /// No faults.
    pub(crate) struct Faults;

    impl Faults {
        /// Makes no faults.
        pub(crate) fn new() -> Result<Self> {
            Ok(Self)
        }

        /// Makes no files.
        pub(crate) fn show(&self, _device: &CStr) {}

        /// Renames no folder.
        pub(crate) fn rename(&self, _device: &CStr) {}

        /// Removes no files.
        pub(crate) fn hide(&self) {}

        /// Sets no fault.
        #[cfg(ndk_kunit)]
        pub(crate) fn set(&self, _fault: Fault, _order: &FaultSettings) {}

        /// Returns false: no fault has a probability.
        pub(crate) fn is_set(&self, _fault: Fault) -> bool {
            false
        }

        /// Returns `None`: no fault hits.
        pub(crate) fn hits(&self, _fault: Fault, _site: &Site<'_>) -> Option<Hit> {
            None
        }
    }

    impl Fault {
        /// A placeholder: the fault has no folder.
        pub(crate) fn name(self) -> &'static CStr {
            c"none"
        }
    }
}

#[cfg(not(CONFIG_FAULT_INJECTION_DEBUG_FS))]
pub(crate) use disabled::*;
#[cfg(CONFIG_FAULT_INJECTION_DEBUG_FS)]
pub(crate) use enabled::*;
