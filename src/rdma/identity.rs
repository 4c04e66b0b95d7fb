// SPDX-License-Identifier: GPL-2.0

//! The names of a device: an EUI-64, which is its GUID, and the GID made of that.
//!
//! The names follow from the network device, so they are the same each time the device is added:
//! names that consumers save (SRP targets, access lists) stay right. Other software providers over
//! the same network device extend its MAC address in the way of IPv6, and have other names.
//!
//! ```text
//! byte                    0       1   2   3     4     5   6   7
//! with a MAC address      m0 ^ 2  m1  m2  0x6e  0x64  m3  m4  m5
//! of a VLAN               m0 ^ 2  m1  m2  those ^ id  m3  m4  m5
//! with a shared one       2       hash    1     hash of name and MAC address
//! without a MAC address   2       hash    0     hash of name and namespace
//! ```
//!
//! A MAC address may be shared by a bridge, bond or team and its ports, and by a device on top of
//! another device ([`NetDev::may_share_mac`]).

use crate::sys::netdev::{
    Net,
    NetDev, //
};

/// The bytes between the two halves of a MAC address, where IPv6 has `ff fe`.
const BETWEEN: u16 = 0x6e64;

/// Changes [`BETWEEN`] together with the number of a VLAN, which has 12 bits: a VLAN device has the
/// MAC address of the plain device below it.
const VLAN: u16 = 1 << 12;

/// The prefix of the GIDs of a subnet that is not configured. C: `IB_DEFAULT_GID_PREFIX`.
const PREFIX: [u8; 8] = [0xfe, 0x80, 0, 0, 0, 0, 0, 0];

/// The EUI-64 of a device over `netdev` in the namespace `net`, in network order; never zero.
pub(super) fn eui64(netdev: &NetDev, net: Net<'_>) -> [u8; 8] {
    match netdev.mac() {
        Some(mac) if netdev.may_share_mac() => of_shared_mac(mac, &netdev.name()),
        Some(mac) => of_mac(mac, netdev.vlan()),
        None => of_name(&netdev.name(), net.lasting()),
    }
}

/// The GID of the device with that EUI-64.
pub(super) fn gid(eui64: [u8; 8]) -> [u8; 16] {
    let mut gid = [0; 16];
    gid[..8].copy_from_slice(&PREFIX);
    gid[8..].copy_from_slice(&eui64);
    gid
}

fn of_mac(mac: [u8; 6], vlan: Option<u16>) -> [u8; 8] {
    let [m0, m1, m2, m3, m4, m5] = mac;
    let between = BETWEEN ^ vlan.map_or(0, |id| VLAN | id);
    let [high, low] = between.to_be_bytes();
    [m0 ^ 2, m1, m2, high, low, m3, m4, m5]
}

/// The EUI-64 of a network device that may share its MAC address.
fn of_shared_mac(mac: [u8; 6], name: &[u8]) -> [u8; 8] {
    hashed(name, &mac, 1)
}

/// The EUI-64 of a network device without a MAC address; `net` distinguishes namespaces.
fn of_name(name: &[u8], net: u64) -> [u8; 8] {
    hashed(name, &net.to_be_bytes(), 0)
}

/// An EUI-64 with a hash; `kind` is less than byte 3 of the EUI-64 of an unshared MAC address.
fn hashed(name: &[u8], with: &[u8], kind: u8) -> [u8; 8] {
    let mut eui64 = fnv1a(name.iter().chain(with)).to_be_bytes();
    eui64[0] = 2;
    eui64[3] = kind;
    eui64
}

/// The hash FNV-1a of 64 bits.
fn fnv1a<'a>(bytes: impl Iterator<Item = &'a u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        // OVERFLOW: the hash is taken modulo 2^64.
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(ndk_kunit)]
#[kernel::macros::kunit_tests(ndk_rdma_identity)]
mod tests {
    use super::*;
    use kernel::prelude::*;

    use crate::sys::report::cases;

    const MAC: [u8; 6] = [0x52, 0x54, 0, 0x12, 0x34, 0x56];

    /// The EUI-64 of a MAC address in IPv6, siw and rxe.
    fn as_others_do(mac: [u8; 6]) -> [u8; 8] {
        let [m0, m1, m2, m3, m4, m5] = mac;
        [m0 ^ 2, m1, m2, 0xff, 0xfe, m3, m4, m5]
    }

    #[test]
    fn mac_addresses_and_vlans_make_names_of_their_own() {
        let plain = of_mac(MAC, None);
        kunit_assert_eq!(plain, [0x50, 0x54, 0, 0x6e, 0x64, 0x12, 0x34, 0x56]);
        let mut other = MAC;
        other[5] ^= 1;
        assert!(plain != of_mac(other, None));
        let mut last = plain;
        for vlan in cases(0..4096) {
            let name = of_mac(MAC, Some(vlan));
            assert!(name != plain);
            assert!(name != last);
            assert!(name != as_others_do(MAC));
            // Distinct from the EUI-64 of a name, too.
            assert!(name[3] > 1);
            last = name;
        }
    }

    #[test]
    fn devices_with_a_shared_mac_address_make_names_of_their_own() {
        let bridge = of_shared_mac(MAC, b"br0\0");
        kunit_assert_eq!(bridge, of_shared_mac(MAC, b"br0\0"));
        assert!(bridge != of_shared_mac(MAC, b"bond0\0"));
        let mut other = MAC;
        other[5] ^= 1;
        // The same name on another machine.
        assert!(bridge != of_shared_mac(other, b"br0\0"));
        // Distinct from the EUI-64 of a MAC address alone or a name alone.
        kunit_assert_eq!((bridge[0], bridge[3]), (2, 1));
    }

    #[test]
    fn names_and_namespaces_make_names_of_their_own() {
        let lo = of_name(b"lo\0", 0);
        kunit_assert_eq!(lo, of_name(b"lo\0", 0));
        assert!(lo != of_name(b"lo\0", 1));
        assert!(lo != of_name(b"tun0\0", 0));
        kunit_assert_eq!((lo[0], lo[3]), (2, 0));
    }

    #[test]
    fn hash_is_the_published_one() {
        kunit_assert_eq!(fnv1a(b"".iter()), 0xcbf2_9ce4_8422_2325);
        kunit_assert_eq!(fnv1a(b"a".iter()), 0xaf63_dc4c_8601_ec8c);
        kunit_assert_eq!(fnv1a(b"foobar".iter()), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn loopback_is_named_after_its_name() -> Result {
        let lo = NetDev::loopback()?;
        assert!(lo.mac().is_none());
        let name = eui64(&lo, Net::FIRST);
        kunit_assert_eq!(name, of_name(&lo.name(), 0));
        let gid = gid(name);
        kunit_assert_eq!(gid[..2], [0xfe, 0x80]);
        kunit_assert_eq!(gid[8..], name);
        Ok(())
    }
}
