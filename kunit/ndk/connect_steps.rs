// SPDX-License-Identifier: GPL-2.0

//! Connections made step by step: [`TestListener`] for the passive side, [`Half`] for both.

use core::net::{
    IpAddr,
    Ipv6Addr,
    SocketAddr, //
};

use kernel::{
    new_spinlock_irq,
    prelude::*,
    sync::{
        Arc,
        SpinLockIrq, //
    }, //
};

use super::{
    completion::{
        log_status,
        request,
        AutoClose,
        CallbackValue, //
    },
    host::{
        HostAttr,
        TestHost,
        HERE,
        SIZES, //
    },
    pair::{
        TestSide,
        READS, //
    }, //
};
use crate::{
    engine::cm::{
        Reservation,
        Timeouts, //
    },
    kunit::{
        harness::wait_until,
        log::Tally, //
    },
    ndk::{
        connector::{
            Connector,
            Source, //
        },
        life::Ref,
        listener::Listener,
        qp::Qp,
        status::NtStatus, //
    },
    rdma::values::status::Status, //
};

/// Both addresses of the device.
pub(super) const BOTH: [IpAddr; 2] = [HERE, IpAddr::V6(Ipv6Addr::LOCALHOST)];

/// `CONNECTION_REFUSED`.
pub(super) const REFUSED: NtStatus = NtStatus::of(Status::Refused);

/// `HOST_UNREACHABLE`.
pub(super) const UNREACHABLE: NtStatus = NtStatus::of(Status::Unreachable);

// CAST: the bits of an NTSTATUS.
const _: () = assert!(REFUSED.raw() == 0xC000_0236_u32 as i32);
// CAST: the bits of an NTSTATUS.
const _: () = assert!(UNREACHABLE.raw() == 0xC000_023D_u32 as i32);

/// Any port of an address.
pub(super) const fn any(ip: IpAddr) -> SocketAddr {
    SocketAddr::new(ip, 0)
}

/// A host with these timeouts, in milliseconds: for an answer, and for the confirmation.
pub(super) const fn patience(answer_ms: u32, confirm_ms: u32) -> HostAttr {
    HostAttr {
        timeouts: Timeouts {
            answer_ms,
            orphan_ms: 20,
            confirm_ms,
        },
        ..HostAttr::PLAIN
    }
}

/// A copy of some bytes.
pub(super) fn bytes(of: &[u8]) -> Result<KVec<u8>> {
    let mut copy = KVec::new();
    copy.extend_from_slice(of, GFP_KERNEL)?;
    Ok(copy)
}

/// The connectors of a listener that the test has not taken yet, in order.
#[pin_data]
pub(super) struct Arrivals {
    #[pin]
    list: SpinLockIrq<KVec<AutoClose<Connector>>>,
    /// Connect events.
    pub(super) events: Tally,
}

impl Arrivals {
    fn put(&self, connector: Ref<Connector>) {
        let _ = self.list.lock().push(AutoClose::new(connector), GFP_ATOMIC);
        self.events.hit();
    }

    fn take(&self) -> Option<AutoClose<Connector>> {
        let mut list = self.list.lock();
        match list.is_empty() {
            true => None,
            false => list.remove(0).ok(),
        }
    }
}

/// A listener that keeps all connectors that it is given.
pub(super) struct TestListener {
    pub(super) listener: AutoClose<Listener>,
    pub(super) at: SocketAddr,
    pub(super) arrivals: Arc<Arrivals>,
}

impl TestListener {
    /// Listens at any port of an address. May sleep.
    pub(super) fn new(test_host: &TestHost, ip: IpAddr) -> Result<Self> {
        let arrivals = Arc::pin_init(
            pin_init!(Arrivals {
                list <- new_spinlock_irq!(KVec::new()),
                events: Tally::new(),
            }),
            GFP_KERNEL,
        )?;
        let list = arrivals.clone();
        let user = KBox::new(move |connector| list.put(connector), GFP_KERNEL)?;
        let listener = test_host
            .adapter
            .create_listener(user)
            .map_err(log_status)?;
        let mut test_listener = Self {
            listener: AutoClose::new(listener),
            at: any(ip),
            arrivals,
        };
        match request(|done| test_listener.listener.listen(test_listener.at, done))? {
            NtStatus::SUCCESS => (),
            status => return Err(log_status(status)),
        }
        test_listener.at = test_listener.listener.address().map_err(log_status)?;
        Ok(test_listener)
    }

    /// Waits for the next connect request and returns its connector.
    pub(super) fn next(&self) -> Result<AutoClose<Connector>> {
        let mut found = None;
        wait_until(|| {
            found = self.arrivals.take();
            found.is_some()
        });
        found.ok_or(ETIMEDOUT)
    }
}

impl Drop for TestListener {
    fn drop(&mut self) {
        while self.arrivals.take().is_some() {}
    }
}

/// A listener that does not listen yet, and closes each incoming connector.
pub(super) fn listener(test_host: &TestHost) -> Result<AutoClose<Listener>> {
    let user = KBox::new(|c: Ref<Connector>| drop(AutoClose::new(c)), GFP_KERNEL)?;
    let listener = test_host.adapter.create_listener(user);
    listener.map(AutoClose::new).map_err(log_status)
}

/// Listens at an address, closes the listener, and returns the status of Listen.
pub(super) fn try_listen(test_host: &TestHost, at: SocketAddr) -> Result<NtStatus> {
    let mut listener = listener(test_host)?;
    let status = request(|done| listener.listen(at, done))?;
    listener.close_and_wait()?;
    Ok(status)
}

/// An unused connector.
pub(super) fn connector(test_host: &TestHost) -> Result<AutoClose<Connector>> {
    test_host
        .adapter
        .create_connector()
        .map(AutoClose::new)
        .map_err(log_status)
}

/// Begins to connect, with "hello"; the callback sets the value that is returned.
pub(super) fn begin(
    connector: &Ref<Connector>,
    qp: &Ref<Qp>,
    from: Source,
    to: SocketAddr,
) -> Result<Arc<CallbackValue<NtStatus>>> {
    let slot = CallbackValue::new()?;
    let begun = connector.connect(qp, (from, to), READS, bytes(b"hello")?, slot.callback()?);
    begun.map_err(log_status)?;
    Ok(slot)
}

/// Connects, waits for the end, and returns the status.
pub(super) fn try_connect(
    connector: &Ref<Connector>,
    qp: &Ref<Qp>,
    from: Source,
    to: SocketAddr,
) -> Result<NtStatus> {
    let hello = bytes(b"hello")?;
    request(|done| connector.connect(qp, (from, to), READS, hello, done))
}

/// Accepts a request, with "welcome"; the callback sets the value that is returned.
pub(super) fn accept(
    connector: &Ref<Connector>,
    with: &TestSide,
) -> Result<Arc<CallbackValue<NtStatus>>> {
    let slot = CallbackValue::new()?;
    let user = with.disconnect_user()?;
    let accepting = connector.accept(&with.qp, READS, bytes(b"welcome")?, user, slot.callback()?);
    accepting.map_err(log_status)?;
    Ok(slot)
}

/// Completes a connection on the active side.
pub(super) fn complete(connector: &Ref<Connector>, with: &TestSide) -> Result<NtStatus> {
    let user = with.disconnect_user()?;
    request(|done| connector.complete_connect(user, done))
}

/// Connects two sides from a source, in all steps.
pub(super) fn link(
    test_host: &TestHost,
    test_listener: &TestListener,
    (a, b): (&TestSide, &TestSide),
    from: Source,
) -> Result<(AutoClose<Connector>, AutoClose<Connector>)> {
    let ours = connector(test_host)?;
    let connected = begin(&ours, &a.qp, from, test_listener.at)?;
    let theirs = test_listener.next()?;
    let accepted = accept(&theirs, b)?;
    succeeds(&connected)?;
    match complete(&ours, a)? {
        NtStatus::SUCCESS => succeeds(&accepted)?,
        status => return Err(log_status(status)),
    }
    Ok((ours, theirs))
}

fn succeeds(slot: &CallbackValue<NtStatus>) -> Result {
    match slot.wait().ok_or(ETIMEDOUT)? {
        NtStatus::SUCCESS => Ok(()),
        status => Err(log_status(status)),
    }
}

/// Returns true if a message goes from one side to the other.
pub(super) fn message_passes(from: &TestSide, to: &TestSide) -> Result<bool> {
    to.receive(0x70, &[])?;
    from.send(0x71, &[], 0)?;
    Ok(from.requests.next_is(0x71, NtStatus::SUCCESS)
        && to.receives.next_is(0x70, NtStatus::SUCCESS))
}

/// A side with the sizes of ordinary tests.
pub(super) fn test_side(test_host: &TestHost, context: usize) -> Result<TestSide> {
    TestSide::new(&test_host.adapter, context, SIZES)
}

/// Reserves every free port of the dynamic range of an address.
pub(super) fn all_ports(test_host: &TestHost, ip: IpAddr) -> Result<KVVec<Arc<Reservation>>> {
    let (device, cm) = (&test_host.device, &test_host.context.cm);
    let mut held = KVVec::new();
    // A closed object gives its port back from a thread.
    test_host.flush_work();
    for number in 49152..=u16::MAX {
        let at = SocketAddr::new(ip, number);
        if let Ok(reserved) = cm.reserve(device.id(), device.net, at) {
            held.push(reserved, GFP_KERNEL)?;
        }
    }
    Ok(held)
}

/// Two sides at a step of their connection. `a` is the active side, with the connector `ours`.
pub(super) struct Half {
    pub(super) ours: AutoClose<Connector>,
    pub(super) theirs: AutoClose<Connector>,
    /// The ends of Connect and Accept.
    pub(super) connected: Arc<CallbackValue<NtStatus>>,
    pub(super) accepted: Arc<CallbackValue<NtStatus>>,
    pub(super) a: TestSide,
    pub(super) b: TestSide,
    pub(super) test_listener: TestListener,
    // Dropped last.
    pub(super) test_host: TestHost,
}

impl Half {
    /// The passive side has the request.
    pub(super) fn asked(attr: &HostAttr, ip: IpAddr) -> Result<Self> {
        let test_host = TestHost::with(attr)?;
        let test_listener = TestListener::new(&test_host, ip)?;
        let (a, b) = (test_side(&test_host, 0xA)?, test_side(&test_host, 0xB)?);
        let ours = connector(&test_host)?;
        let connected = begin(&ours, &a.qp, Source::Address(any(ip)), test_listener.at)?;
        let theirs = test_listener.next()?;
        Ok(Self {
            ours,
            theirs,
            connected,
            accepted: CallbackValue::new()?,
            a,
            b,
            test_listener,
            test_host,
        })
    }

    /// The passive side has accepted, and Connect has succeeded.
    pub(super) fn answered(attr: &HostAttr, ip: IpAddr) -> Result<Self> {
        let mut half = Self::asked(attr, ip)?;
        half.accept()?;
        succeeds(&half.connected)?;
        Ok(half)
    }

    /// The active side has completed: both are connected.
    pub(super) fn up(attr: &HostAttr, ip: IpAddr) -> Result<Self> {
        let half = Self::answered(attr, ip)?;
        match half.complete()? {
            NtStatus::SUCCESS => succeeds(&half.accepted)?,
            status => return Err(log_status(status)),
        }
        Ok(half)
    }

    pub(super) fn accept(&mut self) -> Result {
        self.accepted = accept(&self.theirs, &self.b)?;
        Ok(())
    }

    pub(super) fn complete(&self) -> Result<NtStatus> {
        complete(&self.ours, &self.a)
    }

    /// Returns true if a call still pends after the pending work has run.
    pub(super) fn is_pending(&self, slot: &CallbackValue<NtStatus>) -> bool {
        self.test_host.flush_work();
        slot.calls.get() == 0
    }

    /// Closes the active connector and waits for the end.
    pub(super) fn leave(&mut self) -> Result<bool> {
        self.ours.close_and_wait()
    }

    /// Returns true if neither side is connected.
    pub(super) fn is_nothing(&self) -> bool {
        let refused = Some(NtStatus::CONNECTION_INVALID);
        [&self.a, &self.b]
            .into_iter()
            .all(|test_side| test_side.qp.send(1, [].into_iter(), 0).err() == refused)
    }
}

/// Disconnects, waits for the end, and returns the status.
pub(super) fn disconnect(connector: &Ref<Connector>) -> Result<NtStatus> {
    request(|done| connector.disconnect(done))
}
