// SPDX-License-Identifier: GPL-2.0

//! `sockaddr_storage` to and from [`core::net::SocketAddr`].
//!
//! C headers: [`include/linux/in.h`](srctree/include/linux/in.h),
//! [`include/linux/in6.h`](srctree/include/linux/in6.h)

use core::{
    mem::size_of,
    net::{
        Ipv4Addr,
        Ipv6Addr,
        SocketAddr,
        SocketAddrV4,
        SocketAddrV6, //
    },
    ptr, //
};

use crate::bindings;

/// The C type that holds an address of any family.
pub(crate) type Storage = bindings::__kernel_sockaddr_storage;

/// Address families as C numbers them.
const AF_INET: u16 = 2;
const AF_INET6: u16 = 10;

/// The bytes of a `sockaddr_storage`: family, port, then the fields of the family.
///
/// IPv4: address at 4. IPv6: flow label at 4, address at 8, scope at 24.
type Bytes = [u8; size_of::<Storage>()];

fn take<const N: usize>(bytes: &Bytes, at: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&bytes[at..at + N]);
    out
}

/// Reads an address; `None` if it is neither IPv4 nor IPv6.
pub(crate) fn read(storage: &Storage) -> Option<SocketAddr> {
    // SAFETY: `storage` is initialised and has the size of `Bytes`, whose alignment is 1.
    let bytes = unsafe { &*ptr::from_ref(storage).cast::<Bytes>() };
    let port = u16::from_be_bytes(take(bytes, 2));
    match u16::from_ne_bytes(take(bytes, 0)) {
        AF_INET => Some(SocketAddrV4::new(Ipv4Addr::from(take::<4>(bytes, 4)), port).into()),
        AF_INET6 => {
            let ip = Ipv6Addr::from(take::<16>(bytes, 8));
            let flow = u32::from_be_bytes(take(bytes, 4));
            let scope = u32::from_ne_bytes(take(bytes, 24));
            Some(SocketAddrV6::new(ip, port, flow, scope).into())
        }
        _ => None,
    }
}

/// Reads an address from `bytes`; missing bytes at the end count as zero.
pub(crate) fn from_bytes(bytes: &[u8]) -> Option<SocketAddr> {
    let mut storage: Bytes = [0; size_of::<Storage>()];
    for (to, from) in storage.iter_mut().zip(bytes) {
        *to = *from;
    }
    // SAFETY: Every pattern of bytes is a valid `Storage`, and the read demands no alignment.
    read(&unsafe { storage.as_ptr().cast::<Storage>().read_unaligned() })
}

/// The family of `addr` as C numbers it.
pub(crate) const fn family(addr: &SocketAddr) -> u16 {
    match addr {
        SocketAddr::V4(_) => AF_INET,
        SocketAddr::V6(_) => AF_INET6,
    }
}

/// Returns the length in bytes of a C address of `family`; for a family other than IPv4 and IPv6,
/// the length of the family field alone.
pub(crate) const fn length_of(family: u16) -> u32 {
    match family {
        AF_INET => 16,
        AF_INET6 => 28,
        _ => 2,
    }
}

/// Makes the C form of `addr`.
pub(crate) fn write(addr: &SocketAddr) -> Storage {
    let mut bytes: Bytes = [0; size_of::<Storage>()];
    bytes[2..4].copy_from_slice(&addr.port().to_be_bytes());
    match addr {
        SocketAddr::V4(v4) => {
            bytes[0..2].copy_from_slice(&AF_INET.to_ne_bytes());
            bytes[4..8].copy_from_slice(&v4.ip().octets());
        }
        SocketAddr::V6(v6) => {
            bytes[0..2].copy_from_slice(&AF_INET6.to_ne_bytes());
            bytes[4..8].copy_from_slice(&v6.flowinfo().to_be_bytes());
            bytes[8..24].copy_from_slice(&v6.ip().octets());
            bytes[24..28].copy_from_slice(&v6.scope_id().to_ne_bytes());
        }
    }
    // SAFETY: `Storage` is plain bytes and a union of bytes with a pointer; every pattern is valid,
    // and the unaligned read makes no demand on `bytes`.
    unsafe { bytes.as_ptr().cast::<Storage>().read_unaligned() }
}

#[cfg(ndk_kunit)]
#[kernel::macros::kunit_tests(ndk_sys_addr)]
mod tests {
    use super::*;

    #[test]
    fn both_families_survive_the_round_trip() {
        let v4: SocketAddr = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 7), 4420).into();
        let v6: SocketAddr = SocketAddrV6::new(Ipv6Addr::LOCALHOST, 20049, 5, 3).into();
        kunit_assert_eq!(read(&write(&v4)), Some(v4));
        kunit_assert_eq!(read(&write(&v6)), Some(v6));
    }

    #[test]
    fn lengths_are_those_of_the_c_types() {
        kunit_assert_eq!(length_of(AF_INET), 16);
        kunit_assert_eq!(length_of(AF_INET6), 28);
        kunit_assert_eq!(length_of(0), 2);
    }

    #[test]
    fn zeroed_storage_is_no_address() {
        let zero: Storage = pin_init::zeroed();
        assert!(read(&zero).is_none());
    }
}
