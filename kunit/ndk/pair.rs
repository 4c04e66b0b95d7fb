// SPDX-License-Identifier: GPL-2.0

//! [`Pair`]: two sides of this face that are connected, through a listener and connectors.

use core::net::SocketAddr;

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    completion::{
        log_status,
        request,
        AutoClose,
        CallbackValue, //
    },
    host::{
        here,
        pd,
        qp,
        HostAttr,
        Queue,
        TestHost,
        SIZES, //
    },
    memory::PageBuffer, //
};
use crate::{
    engine::transport::ReadLimits,
    kunit::log::Tally,
    ndk::{
        adapter::Adapter,
        call::done,
        connector::{
            Connector,
            DisconnectUser,
            Source, //
        },
        life::Ref,
        listener::Listener,
        pd::Pd,
        qp::Qp,
        status::NtStatus, //
    },
    rdma::values::qp::QpCaps,
    sys::sge::Sge, //
};

/// The default read limits of a side.
pub(super) const READS: ReadLimits = ReadLimits {
    inbound: 8,
    outbound: 8,
};

/// A listener that keeps the connectors that it is given.
pub(super) struct OpenListener {
    pub(super) listener: AutoClose<Listener>,
    pub(super) at: SocketAddr,
    pub(super) arrivals: Arc<CallbackValue<Ref<Connector>>>,
}

impl OpenListener {
    /// Listens at any port of the device.
    pub(super) fn new(adapter: &Ref<Adapter>) -> Result<Self> {
        Self::at(adapter, here(0))
    }

    pub(super) fn at(adapter: &Ref<Adapter>, at: SocketAddr) -> Result<Self> {
        let arrivals = CallbackValue::new()?;
        let slot = arrivals.clone();
        let user = KBox::new(move |connector| slot.put(connector), GFP_KERNEL)?;
        let listener = adapter
            .create_listener(user)
            .map(AutoClose::new)
            .map_err(log_status)?;
        match request(|done| listener.listen(at, done))? {
            NtStatus::SUCCESS => (),
            status => return Err(log_status(status)),
        }
        let at = listener.address().map_err(log_status)?;
        Ok(Self {
            listener,
            at,
            arrivals,
        })
    }

    /// Waits for the next connect request and returns its connector.
    pub(super) fn incoming(&self) -> Result<AutoClose<Connector>> {
        self.arrivals.wait().map(AutoClose::new).ok_or(ETIMEDOUT)
    }
}

/// One side: its own domain, queues and queue pair, and a connector once there is one.
pub(super) struct TestSide {
    pub(super) connector: Option<AutoClose<Connector>>,
    pub(super) disconnects: Arc<Tally>,
    pub(super) qp: AutoClose<Qp>,
    pub(super) requests: Queue,
    pub(super) receives: Queue,
    pub(super) pd: AutoClose<Pd>,
}

impl TestSide {
    /// A side that is not connected. `context` is the context of its queue pair.
    pub(super) fn new(adapter: &Ref<Adapter>, context: usize, sizes: QpCaps) -> Result<Self> {
        Self::within(adapter, pd(adapter)?, context, sizes)
    }

    /// The same as [`Self::new`] in an existing domain.
    pub(super) fn within(
        adapter: &Ref<Adapter>,
        pd: AutoClose<Pd>,
        context: usize,
        sizes: QpCaps,
    ) -> Result<Self> {
        let receives = Queue::new(adapter, 128)?;
        let requests = Queue::new(adapter, 128)?;
        let qp = qp(&pd, &receives, &requests, context, sizes)?;
        Ok(Self {
            connector: None,
            disconnects: Arc::new(Tally::new(), GFP_KERNEL)?,
            qp,
            requests,
            receives,
            pd,
        })
    }

    /// The callback that counts the disconnect events of this side.
    pub(super) fn disconnect_user(&self) -> Result<Option<DisconnectUser>> {
        let tally = self.disconnects.clone();
        let user = done(GFP_KERNEL, move |_reason: u32| {
            tally.hit();
        });
        user.map(Some).map_err(log_status)
    }

    /// The connector; `EINVAL` where there is none.
    pub(super) fn connector(&self) -> Result<&AutoClose<Connector>> {
        self.connector.as_ref().ok_or(EINVAL)
    }

    /// A buffer of this side, registered with these flags of `RegisterMr`.
    pub(super) fn buffer(&self, len: usize, flags: u32) -> Result<PageBuffer> {
        PageBuffer::registered(&self.pd, len, flags)
    }

    /// Posts a receive into a list.
    pub(super) fn receive(&self, context: u64, sges: &[Sge]) -> Result {
        self.qp
            .receive(context, sges.iter().copied())
            .map_err(log_status)
    }

    /// Posts a send of a list.
    pub(super) fn send(&self, context: u64, sges: &[Sge], flags: u32) -> Result {
        self.qp
            .send(context, sges.iter().copied(), flags)
            .map_err(log_status)
    }
}

/// Two connected sides on one host. `a` is the active side.
pub(super) struct Pair {
    pub(super) a: TestSide,
    pub(super) b: TestSide,
    pub(super) open_listener: OpenListener,
    // Dropped last.
    pub(super) test_host: TestHost,
}

impl Pair {
    /// May sleep.
    pub(super) fn new() -> Result<Self> {
        Self::with(&HostAttr::PLAIN, SIZES, SIZES)
    }

    /// Two connected sides of these sizes. The contexts of the queue pairs are 0xA and 0xB.
    pub(super) fn with(attr: &HostAttr, a: QpCaps, b: QpCaps) -> Result<Self> {
        let mut pair = Self::unconnected(attr, a, b)?;
        pair.connect(READS, READS)?;
        Ok(pair)
    }

    /// Two sides that are not connected.
    pub(super) fn unconnected(attr: &HostAttr, a: QpCaps, b: QpCaps) -> Result<Self> {
        let test_host = TestHost::with(attr)?;
        let open_listener = OpenListener::new(&test_host.adapter)?;
        Ok(Self {
            a: TestSide::new(&test_host.adapter, 0xA, a)?,
            b: TestSide::new(&test_host.adapter, 0xB, b)?,
            open_listener,
            test_host,
        })
    }

    /// Two more sides, in the domains of `a` and `b`, that are connected like these. The contexts
    /// of their queue pairs are 0xA2 and 0xB2.
    pub(super) fn second(&self) -> Result<(TestSide, TestSide)> {
        let adapter = &self.test_host.adapter;
        let mut a = TestSide::within(adapter, self.a.pd.lent(), 0xA2, SIZES)?;
        let mut b = TestSide::within(adapter, self.b.pd.lent(), 0xB2, SIZES)?;
        let (active, passive) = connect(adapter, &self.open_listener, (&a, READS), (&b, READS))?;
        a.connector = Some(active);
        b.connector = Some(passive);
        Ok((a, b))
    }

    /// Connects the two sides, each with the read limits that it asks for.
    pub(super) fn connect(&mut self, active: ReadLimits, passive: ReadLimits) -> Result {
        let (a, b) = connect(
            &self.test_host.adapter,
            &self.open_listener,
            (&self.a, active),
            (&self.b, passive),
        )?;
        self.a.connector = Some(a);
        self.b.connector = Some(b);
        Ok(())
    }
}

/// Connects two sides by a listener: Connect, Accept, CompleteConnect.
pub(super) fn connect(
    adapter: &Ref<Adapter>,
    open_listener: &OpenListener,
    (active, asked): (&TestSide, ReadLimits),
    (passive, served): (&TestSide, ReadLimits),
) -> Result<(AutoClose<Connector>, AutoClose<Connector>)> {
    let ours = adapter
        .create_connector()
        .map(AutoClose::new)
        .map_err(log_status)?;
    let (connected, accepted) = (CallbackValue::new()?, CallbackValue::new()?);
    let from = Source::Address(here(0));
    let mut hello = KVec::new();
    hello.extend_from_slice(b"hello", GFP_KERNEL)?;
    let asking = ours.connect(
        &active.qp,
        (from, open_listener.at),
        asked,
        hello,
        connected.callback()?,
    );
    asking.map_err(log_status)?;
    let theirs = open_listener.incoming()?;
    let mut welcome = KVec::new();
    welcome.extend_from_slice(b"welcome", GFP_KERNEL)?;
    let user = passive.disconnect_user()?;
    let accepting = theirs.accept(&passive.qp, served, welcome, user, accepted.callback()?);
    accepting.map_err(log_status)?;
    success(connected.wait())?;
    let user = active.disconnect_user()?;
    success(Some(request(|done| ours.complete_connect(user, done))?))?;
    success(accepted.wait())?;
    Ok((ours, theirs))
}

fn success(status: Option<NtStatus>) -> Result {
    match status {
        Some(NtStatus::SUCCESS) => Ok(()),
        Some(status) => Err(log_status(status)),
        None => Err(ETIMEDOUT),
    }
}
