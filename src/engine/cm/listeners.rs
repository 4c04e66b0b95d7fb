// SPDX-License-Identifier: GPL-2.0

//! [`Listeners`]: all listeners by their address.
//!
//! Any user may listen, at any number of ports: the lookup of other listeners stays as fast.

#[cfg(ndk_kunit)]
mod tests;

use core::{
    iter,
    net::{
        IpAddr,
        Ipv4Addr,
        Ipv6Addr,
        SocketAddr, //
    },
    num::NonZeroUsize, //
};

use kernel::rbtree::{
    RBTree,
    RBTreeNode, //
};

use super::listener::{
    Listener,
    ListenerKey, //
};
use crate::engine::prelude::*;

/// All listeners of this host.
pub(super) struct Listeners(RBTree<ListenerKey, Arc<Listener>>);

impl Listeners {
    pub(super) fn new() -> Self {
        Self(RBTree::new())
    }

    /// Adds a listener that is not in the table. May sleep. `ENOMEM` when there is no memory.
    pub(super) fn add(&mut self, listener: Arc<Listener>) -> Result {
        let node = RBTreeNode::new(listener.key(), listener, GFP_KERNEL)?;
        // The number of a listener is unique.
        let _ = self.0.insert(node);
        Ok(())
    }

    /// Removes a listener, if it is in the table.
    pub(super) fn remove(&mut self, listener: &Listener) {
        self.0.remove(&listener.key());
    }

    /// The listeners at the IP address and the port of `at`, of any device.
    pub(super) fn at(&self, net: u64, at: &SocketAddr) -> impl Iterator<Item = &Arc<Listener>> {
        let first = ListenerKey::new(net, at, NonZeroUsize::MIN);
        self.from(first, move |key| key.is_at_address_of(&first))
    }

    /// The listeners at that port, at any address, of any device.
    fn at_port(&self, net: u64, port: u16) -> impl Iterator<Item = &Arc<Listener>> {
        // No address comes before this one.
        let lowest = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port);
        let first = ListenerKey::new(net, &lowest, NonZeroUsize::MIN);
        self.from(first, move |key| key.has_port_of(&first))
    }

    /// The listeners that may get the same request as a listener at `at`.
    pub(super) fn overlapping(
        &self,
        net: u64,
        at: SocketAddr,
    ) -> impl Iterator<Item = &Arc<Listener>> {
        let (all, some) = match at.ip().is_unspecified() {
            true => (Some(self.at_port(net, at.port())), None),
            // Few, for any number of addresses at this port.
            false => (None, Some(self.candidates(net, &at))),
        };
        Iterator::chain(all.into_iter().flatten(), some.into_iter().flatten())
    }

    /// The listeners from the key `first` on, in order, while `belongs` returns true.
    fn from(
        &self,
        first: ListenerKey,
        belongs: impl Fn(&ListenerKey) -> bool,
    ) -> impl Iterator<Item = &Arc<Listener>> {
        let mut from = Some(first);
        iter::from_fn(move || {
            let key = *self.0.cursor_lower_bound(&from.take()?)?.current().0;
            from = key.following();
            self.0.get(&key).filter(|_| belongs(&key))
        })
    }

    /// The listeners that may get a request to `to`: at that address, or at a wildcard.
    pub(super) fn candidates(
        &self,
        net: u64,
        to: &SocketAddr,
    ) -> impl Iterator<Item = &Arc<Listener>> {
        let (ip, port) = (to.ip(), to.port());
        let v4 = Some(IpAddr::from(Ipv4Addr::UNSPECIFIED)).filter(|any| *any != ip);
        let v6 = Some(IpAddr::from(Ipv6Addr::UNSPECIFIED)).filter(|any| *any != ip);
        let all = [Some(ip), v4, v6].into_iter().flatten();
        all.flat_map(move |ip| self.at(net, &SocketAddr::new(ip, port)))
    }
}
