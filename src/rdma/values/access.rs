// SPDX-License-Identifier: GPL-2.0
// host-test

//! Access rights: of memory regions, of memory windows, and of the peer of a queue pair.

kernel::impl_flags! {
    /// A set of access rights. Local read is always granted (IBA 10.6.3.1, NDKPI MR flags).
    ///
    /// C: `enum ib_access_flags`.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub(crate) struct AccessFlags(u8);

    /// One access right.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum AccessFlag {
        /// Requests of the owner may place data: receives, read sinks, atomic results.
        LocalWrite = 1,
        /// The peer may write.
        RemoteWrite = 2,
        /// The peer may read.
        RemoteRead = 4,
        /// The peer may execute atomic operations.
        RemoteAtomic = 8,
        /// Addresses count from zero.
        ZeroBased = 32,
    }
}

impl AccessFlags {
    /// The set of these rights, also for constants.
    #[cfg(any(test, ndk_kunit))]
    pub(crate) const fn of<const N: usize>(flags: [AccessFlag; N]) -> Self {
        let (mut bits, mut at) = (0, 0);
        while at < N {
            // CAST: the number of the variant.
            bits |= flags[at] as u8;
            at += 1;
        }
        Self(bits)
    }

    /// The set of the bits of C. Bits without a name here are dropped.
    pub(crate) const fn from_bits(bits: u32) -> Self {
        // CAST: the bits that are left are those of a `u8`.
        Self((bits & Self::all_bits() as u32) as u8)
    }

    /// The bits of C.
    pub(crate) const fn bits(self) -> u32 {
        // CAST: widening.
        self.0 as u32
    }

    /// The rights that a peer gets from this set.
    pub(crate) fn remote(self) -> Self {
        self & (AccessFlag::RemoteRead | AccessFlag::RemoteWrite | AccessFlag::RemoteAtomic)
    }

    /// Returns true if the set has local write where it has remote write or remote atomic, which
    /// change memory (IBA 10.6.3.1).
    pub(crate) fn is_consistent(self) -> bool {
        let writes = AccessFlag::RemoteWrite | AccessFlag::RemoteAtomic;
        !self.contains_any(writes) || self.contains(AccessFlag::LocalWrite)
    }

    /// Returns true if a peer gets a right from this set.
    pub(crate) fn is_remote(self) -> bool {
        self.remote() != Self::empty()
    }
}

#[cfg_attr(ndk_kunit, kernel::macros::kunit_tests(ndk_rdma_values_access))]
#[cfg(any(test, ndk_kunit))]
mod tests {
    use super::AccessFlag::*;
    use super::*;

    #[test]
    fn a_right_is_not_implied_by_another() {
        let set = LocalWrite | RemoteRead;
        assert!(set.contains_all(AccessFlags::empty()));
        assert!(set.contains_all(RemoteRead.into()));
        assert!(!set.contains_all(RemoteWrite.into()));
        assert!(!set.contains_all(RemoteRead | RemoteAtomic));
    }

    #[test]
    fn a_peer_gets_the_remote_rights_alone() {
        let all = AccessFlags::from_bits(!0);
        assert_eq!(all.remote(), RemoteRead | RemoteWrite | RemoteAtomic);
        for (flag, is_remote) in [
            (LocalWrite, false),
            (RemoteWrite, true),
            (RemoteRead, true),
            (RemoteAtomic, true),
            (ZeroBased, false),
        ] {
            assert_eq!(AccessFlags::from(flag).is_remote(), is_remote);
        }
    }

    #[test]
    fn remote_rights_that_change_memory_need_local_write() {
        for (flag, is_consistent) in [
            (LocalWrite, true),
            (RemoteWrite, false),
            (RemoteRead, true),
            (RemoteAtomic, false),
            (ZeroBased, true),
        ] {
            assert_eq!(AccessFlags::from(flag).is_consistent(), is_consistent);
            assert!((flag | LocalWrite).is_consistent());
        }
    }

    #[test]
    fn bits_without_a_name_are_dropped() {
        const ALL: AccessFlags =
            AccessFlags::of([LocalWrite, RemoteWrite, RemoteRead, RemoteAtomic, ZeroBased]);
        assert_eq!(AccessFlags::from_bits(!0), ALL);
        assert_eq!(
            AccessFlags::from_bits(16 | 64 | 1 << 20),
            AccessFlags::empty()
        );
        for bits in 0..64 {
            assert_eq!(AccessFlags::from_bits(bits).bits(), bits & !16);
        }
    }
}
