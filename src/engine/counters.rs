// SPDX-License-Identifier: GPL-2.0

//! The counters of a device. Each name is a line of `rdma statistic show`.

use kernel::prelude::*;

macro_rules! counters {
    ($($(#[$doc:meta])* $variant:ident = $name:literal),* $(,)?) => {
        /// One counter of a device.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Counter {
            $($(#[$doc])* $variant),*
        }

        /// The names of all counters, in the order of the variants.
        pub(crate) const NAMES: &[&CStr] = &[$($name),*];
    };
}

counters! {
    /// Sends that reached a receive of the peer.
    Sends = c"sends",
    /// Receives completed by a message.
    Receives = c"receives",
    /// Writes carried out for this side's consumers.
    Writes = c"writes",
    /// Reads carried out for this side's consumers.
    Reads = c"reads",
    /// Fetch-and-add and compare-and-swap.
    Atomics = c"atomics",
    /// Payload bytes that left.
    BytesOut = c"bytes_out",
    /// Payload bytes that came.
    BytesIn = c"bytes_in",
    /// Fast registrations.
    Registrations = c"registrations",
    /// Invalidations by the owner, those at the end of a read included.
    InvalidationsLocal = c"invalidations_local",
    /// Invalidations that a peer's send asked for.
    InvalidationsRemote = c"invalidations_remote",
    /// Invalidations refused, local and remote.
    InvalidationsRefused = c"invalidations_refused",
    /// Invalidations that had to wait for an access to end.
    InvalidationsDelayed = c"invalidations_delayed",
    /// Accesses by a peer refused for token, domain, rights or bounds.
    AccessRefused = c"access_refused",
    /// Messages that found no receive and waited.
    RnrWaits = c"rnr_waits",
    /// Messages that waited in vain.
    RnrTimeouts = c"rnr_timeouts",
    /// Requests cancelled.
    Flushes = c"flushes",
    /// Calls caused by an arm for any completion.
    NotifyAny = c"notify_any",
    /// Calls caused by an arm for solicited completions.
    NotifySolicited = c"notify_solicited",
    /// Calls caused by an arm for errors.
    NotifyErrors = c"notify_errors",
    /// Completion queues that overflowed.
    CqOverflows = c"cq_overflows",
    /// Passes of a transport over a send queue.
    Passes = c"passes",
    /// Requests that were held back until a later one ended their chain.
    Deferred = c"deferred",
    /// Runs of the send queue that ended because their budget was spent.
    BudgetSpent = c"budget_spent",
    /// Connections this side asked for and got.
    Connects = c"connects",
    /// Connections this side accepted.
    Accepts = c"accepts",
    /// Connections this side asked for and did not get.
    ConnectFailures = c"connect_failures",
    /// Connection requests turned down here.
    Rejects = c"rejects",
    /// Connections that ended.
    Disconnects = c"disconnects",
    /// Faults that were injected (docs/faults.md).
    FaultsInjected = c"faults_injected",
}

/// The number of counters.
pub(crate) const COUNT: usize = Counter::FaultsInjected as usize + 1;

#[cfg(ndk_kunit)]
#[kernel::macros::kunit_tests(ndk_engine_counters)]
mod tests {
    use super::*;

    use crate::sys::report::cases;

    #[test]
    fn every_counter_has_a_name_of_its_own() {
        kunit_assert_eq!(NAMES.len(), COUNT);
        for (i, name) in cases(NAMES.iter().enumerate()) {
            assert!(!name.to_bytes().is_empty());
            assert!(!NAMES[..i].contains(name));
        }
    }
}
