// SPDX-License-Identifier: GPL-2.0

//! The base of every suite: a host, two connected ends, and bounded waits.
//!
//! ```text
//! QpPair
//!   a: End --- transport --- b: End        each with its own device, domain, queues and memory
//!   engine_host: EngineHost              the host; goes last and leaves no work behind
//! ```
//!
//! A check that fails says what it found in the log, because the test framework prints no values.

use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        atomic::{
            ordering::Relaxed,
            Atomic, //
        },
        Arc,
        Mutex, //
    },
    time::{
        delay::fsleep,
        Delta, //
    }, //
};

use super::{
    buffer::{
        MrBuffer,
        ALL, //
    },
    log::{
        Owner,
        QpLog,
        QpUser, //
    },
    queues::{
        Queue,
        Shared, //
    }, //
};
use crate::{
    direct,
    engine::{
        cm::{
            ConnectFn,
            Timeouts, //
        },
        counters::Counter,
        device::RdmaDevice,
        domain::Domain,
        host::Host,
        qp::{
            QpParams,
            QueuePair, //
        },
        transport::{
            Link,
            ReadLimits,
            Transport, //
        },
        wq::PostError, //
    },
    rdma::values::{
        access::AccessFlags,
        qp::{
            QpCaps,
            QpState, //
        },
        work::{
            SendFlag,
            SendFlags,
            SendOp, //
        }, //
    },
    sys::{
        clock::{
            self,
            StoppedClock, //
        },
        event::Event,
        netdev::NetDev,
        sge::{
            test_posted,
            Sge, //
        },
        speed, //
    }, //
};

pub(crate) use crate::sys::over_tcp::runs_over_tcp;
pub(crate) use crate::sys::report::{
    cases,
    same, //
};

/// Longer than any test, in milliseconds: for timeouts that must not expire.
pub(crate) const NEVER_MS: u32 = 3_600_000;

/// The default time that a message waits for a receive, in milliseconds.
pub(crate) const RNR_MS: u32 = NEVER_MS;

/// The limit of a wait for what has to come, in milliseconds. It is there to end a hang: no verdict
/// depends on it.
pub(crate) fn wait_ms() -> u32 {
    speed::slowness().saturating_mul(20_000)
}

/// Timeouts of connections: those at their defaults are multiplied by the slowness of the machine.
pub(crate) fn patient(timeouts: Timeouts) -> Timeouts {
    let longer = |ms: u32, default: u32| match ms == default {
        true => ms.saturating_mul(speed::slowness()),
        false => ms,
    };
    Timeouts {
        answer_ms: longer(timeouts.answer_ms, Timeouts::DEFAULT.answer_ms),
        orphan_ms: longer(timeouts.orphan_ms, Timeouts::DEFAULT.orphan_ms),
        confirm_ms: longer(timeouts.confirm_ms, Timeouts::DEFAULT.confirm_ms),
    }
}

/// The end of a wait, by the real clock.
#[derive(Clone, Copy)]
pub(crate) struct Deadline(u64);

impl Deadline {
    /// `ms` milliseconds from now.
    pub(crate) fn in_ms(ms: u64) -> Self {
        Self(clock::real_ms() + ms)
    }

    /// The end of a wait of [`wait_ms`] from now.
    pub(crate) fn of_a_hang() -> Self {
        Self::of_hangs(1)
    }

    /// The end of `count` such waits, one after the other.
    pub(crate) fn of_hangs(count: u32) -> Self {
        Self::in_ms(u64::from(wait_ms()) * u64::from(count))
    }

    /// Returns true if it has passed. Any context.
    pub(crate) fn is_over(self) -> bool {
        clock::real_ms() >= self.0
    }
}

/// Waits until `is_so`; false when that takes too long.
pub(crate) fn wait_until(mut is_so: impl FnMut() -> bool) -> bool {
    let deadline = Deadline::of_a_hang();
    while !is_so() {
        if deadline.is_over() {
            kunit_note!("waited in vain");
            return false;
        }
        fsleep(Delta::from_micros(100));
    }
    true
}

/// Waits for the event; false when that takes too long.
pub(crate) fn came_in_time(event: &Event) -> bool {
    let came = event.wait_timeout(wait_ms());
    if !came {
        kunit_note!("waited in vain");
    }
    came
}

/// Lets `ms` milliseconds of a stopped clock pass; returns true if `is_so` before the last of them.
pub(crate) fn is_early(clock: &StoppedClock, ms: u32, is_so: impl Fn() -> bool) -> bool {
    clock.pass(ms - 1);
    sleep(20);
    let early = is_so();
    clock.pass(1);
    early
}

/// Sleeps for `ms` milliseconds.
pub(crate) fn sleep(ms: u32) {
    fsleep(Delta::from_millis(i64::from(ms)));
}

/// The attributes of an end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EndAttr {
    pub(crate) caps: QpCaps,
    pub(crate) send_entries: u32,
    pub(crate) receive_entries: u32,
    /// The depth of a shared queue; 0 for a receive queue of the end itself.
    pub(crate) shared: u32,
    pub(crate) limits: ReadLimits,
    pub(crate) peer_rights: AccessFlags,
    /// True if posted requests are cancelled when the peer goes.
    pub(crate) flush_on_disconnect: bool,
}

impl EndAttr {
    /// An end that any ordinary test can use.
    pub(crate) const PLAIN: Self = Self {
        caps: QpCaps {
            send_wr: 64,
            recv_wr: 64,
            send_sge: 4,
            recv_sge: 4,
            read_sge: 2,
            inline_data: 64,
        },
        send_entries: 256,
        receive_entries: 256,
        shared: 0,
        limits: ReadLimits {
            inbound: 4,
            outbound: 4,
        },
        peer_rights: ALL,
        flush_on_disconnect: true,
    };

    /// The same with a shared queue for `depth` receives.
    pub(crate) const fn shared(depth: u32) -> Self {
        Self {
            shared: depth,
            ..Self::PLAIN
        }
    }

    /// The same with room for `sends` requests and `receives` receives.
    pub(crate) const fn deep(sends: u32, receives: u32) -> Self {
        let mut attr = Self::PLAIN;
        attr.caps.send_wr = sends;
        attr.caps.recv_wr = receives;
        attr.send_entries = sends;
        attr.receive_entries = receives;
        attr
    }
}

/// The host of a test. Dropping it waits for all of its softirq work.
pub(crate) struct EngineHost {
    host: Arc<Host>,
    last_number: Atomic<u32>,
}

impl EngineHost {
    /// A host where a message waits for a receive for `rnr_timeout_ms`. May sleep.
    pub(crate) fn new(rnr_timeout_ms: u32) -> Result<Self> {
        clock::restart_if_left();
        Ok(Self {
            host: Host::new(rnr_timeout_ms)?,
            last_number: Atomic::new(0),
        })
    }

    /// Restarts the numbers of queue pairs from the first one.
    pub(crate) fn count_anew(&self) {
        self.last_number.store(0, Relaxed);
    }

    /// A new device.
    pub(crate) fn device(&self) -> Result<Arc<RdmaDevice>> {
        self.device_named(c"test", 1)
    }

    /// A new device with that name in the network namespace `net`.
    pub(crate) fn device_named(&self, name: &CStr, net: u64) -> Result<Arc<RdmaDevice>> {
        RdmaDevice::new(self.host.clone(), name, net, Some(NetDev::loopback()?))
    }

    /// A new end on a device of its own.
    pub(crate) fn end(&self, attr: &EndAttr) -> Result<End> {
        let domain = Domain::new(self.device()?, GFP_KERNEL)?;
        let shared = match attr.shared {
            0 => None,
            depth => Some(Shared::new(&domain, depth, attr.caps.recv_sge)?),
        };
        self.end_in(&domain, attr, shared)
    }

    /// A new end in `domain`, perhaps with a shared queue.
    pub(crate) fn end_in(
        &self,
        domain: &Arc<Domain>,
        attr: &EndAttr,
        shared: Option<Arc<Shared>>,
    ) -> Result<End> {
        let device = domain.device();
        let sends = Queue::new(device, attr.send_entries, u32::MAX)?;
        let receives = Queue::new(device, attr.receive_entries, u32::MAX)?;
        self.end_with(domain, attr, shared, sends, receives)
    }

    /// A new end with existing completion queues.
    pub(crate) fn end_with(
        &self,
        domain: &Arc<Domain>,
        attr: &EndAttr,
        shared: Option<Arc<Shared>>,
        sends: Arc<Queue>,
        receives: Arc<Queue>,
    ) -> Result<End> {
        let number = self.last_number.fetch_add(1, Relaxed) + 1;
        let events = QpLog::new()?;
        let params = QpParams {
            domain: domain.clone(),
            send_cq: sends.cq.clone(),
            receive_cq: receives.cq.clone(),
            shared: shared.as_ref().map(|s| s.srq.clone()),
            events: KBox::new(QpUser(events.clone()), GFP_KERNEL)?,
            qp_context: qp_context(number),
            flush_on_disconnect: attr.flush_on_disconnect,
            number,
        };
        let qp = QueuePair::new(params, attr.caps)?;
        qp.set_peer_rights(attr.peer_rights);
        Ok(End {
            qp,
            sends,
            receives,
            shared,
            events,
            owner: Owner::new()?,
            domain: domain.clone(),
            limits: attr.limits,
            memory: KBox::pin_init(new_mutex!(KVec::new()), GFP_KERNEL)?,
        })
    }
}

impl Drop for EngineHost {
    fn drop(&mut self) {
        // The queue of softirq work goes with the host: no work of that queue may free the host.
        self.host.quiesce();
    }
}

/// The cookie of queue pair `number`, as completions have it.
pub(crate) const fn qp_context(number: u32) -> usize {
    // CAST: widening.
    0xC00C_0000 + number as usize
}

/// Waits for the work of softirq and of threads that is due, so that an event that should not come
/// has had its chance. Of bytes on their way through TCP it promises nothing.
pub(crate) fn flush_work(device: &RdmaDevice) {
    for _ in 0..4 {
        device.host.flush_transports();
        device.host.threads.flush();
    }
}

/// A queue pair with all that belongs to it. Dropping it destroys the queue pair.
pub(crate) struct End {
    pub(crate) qp: Arc<QueuePair>,
    pub(crate) sends: Arc<Queue>,
    pub(crate) receives: Arc<Queue>,
    pub(crate) shared: Option<Arc<Shared>>,
    pub(crate) events: Arc<QpLog>,
    pub(crate) owner: Arc<Owner>,
    pub(crate) domain: Arc<Domain>,
    limits: ReadLimits,
    /// The memory that requests name, kept until the queue pair is gone.
    memory: Pin<KBox<Mutex<KVec<Arc<MrBuffer>>>>>,
}

/// A post that has to be accepted; says in the log why it was not.
pub(crate) fn accepted(posted: Result<(), PostError>) -> Result {
    posted.map_err(|e| {
        kunit_note!("refused: {:?}", e);
        EINVAL
    })
}

impl End {
    /// The device.
    pub(crate) fn device(&self) -> &Arc<RdmaDevice> {
        self.domain.device()
    }

    /// The value of a counter of the device.
    pub(crate) fn counted(&self, counter: Counter) -> u64 {
        // CAST: a variant's number is an index.
        self.device().counted(counter as usize)
    }

    /// Attaches the queue pair to its end of a transport.
    pub(crate) fn attach(&self, transport: Arc<dyn Transport>, end: usize) -> Result {
        let owner = self.owner.clone();
        let link = Link {
            transport,
            end,
            owner,
        };
        self.qp.attach(link, self.limits)
    }

    fn keep(&self, buffer: Result<Arc<MrBuffer>>) -> Result<Arc<MrBuffer>> {
        let buffer = buffer?;
        self.memory.lock().push(buffer.clone(), GFP_KERNEL)?;
        Ok(buffer)
    }

    /// `len` blank bytes with all rights.
    pub(crate) fn buffer(&self, len: usize) -> Result<Arc<MrBuffer>> {
        self.buffer_with(len, ALL)
    }

    /// `len` blank bytes with these rights.
    pub(crate) fn buffer_with(&self, len: usize, rights: AccessFlags) -> Result<Arc<MrBuffer>> {
        self.keep(MrBuffer::fixed(&self.domain, len, rights))
    }

    /// `len` bytes of pattern `seed` with all rights.
    pub(crate) fn filled(&self, len: usize, seed: u8) -> Result<Arc<MrBuffer>> {
        let buffer = self.buffer(len)?;
        buffer.fill(seed);
        Ok(buffer)
    }

    /// `len` blank bytes, staged for registration.
    pub(crate) fn fast(&self, len: usize) -> Result<Arc<MrBuffer>> {
        self.keep(MrBuffer::fast(&self.domain, len))
    }

    /// Posts and rings.
    pub(crate) fn try_post(
        &self,
        context: u64,
        work: SendOp,
        flags: impl Into<SendFlags>,
        sges: &[Sge],
    ) -> Result<(), PostError> {
        self.qp.post(context, work, flags, sges.iter().copied())?;
        self.qp.ring_doorbell();
        Ok(())
    }

    /// Posts and rings; the queue has to take the request.
    pub(crate) fn post_with(
        &self,
        context: u64,
        work: SendOp,
        flags: impl Into<SendFlags>,
        sges: &[Sge],
    ) -> Result {
        accepted(self.try_post(context, work, flags, sges))
    }

    /// Posts and rings a signalled request; the queue has to take the request.
    pub(crate) fn post(&self, context: u64, work: SendOp, sges: &[Sge]) -> Result {
        self.post_with(context, work, SendFlag::Signaled, sges)
    }

    /// Posts a receive, to the shared queue if the end has one.
    pub(crate) fn receive(&self, context: u64, sges: &[Sge]) -> Result {
        match &self.shared {
            Some(shared) => shared.post(context, sges),
            None => accepted(
                self.qp
                    .post_receive(test_posted(context, sges.iter().copied())),
            ),
        }
    }

    /// Returns true if the queue pair is in error and its owner was notified once; waits for it.
    pub(crate) fn is_down(&self) -> bool {
        wait_until(|| self.qp.state() == QpState::Err && self.owner.notified.get() > 0)
            && same(self.owner.notified.get(), 1)
    }
}

impl Drop for End {
    fn drop(&mut self) {
        self.qp.destroy();
    }
}

/// Makes the transport of two queue pairs that this run of the suites is for. May sleep.
pub(crate) fn connect_pair(a: &Arc<QueuePair>, b: &Arc<QueuePair>) -> Result<Arc<dyn Transport>> {
    match runs_over_tcp() {
        true => super::wire::connect(a, b),
        false => direct::connect(a, b),
    }
}

/// Two connected ends.
pub(crate) struct QpPair {
    pub(crate) a: End,
    pub(crate) b: End,
    // Dropped last.
    pub(crate) engine_host: EngineHost,
}

impl QpPair {
    /// A counter, summed over both ends.
    pub(crate) fn counted(&self, counter: Counter) -> u64 {
        self.a.counted(counter) + self.b.counted(counter)
    }

    /// Two plain ends over the transport of one host.
    pub(crate) fn new() -> Result<Self> {
        Self::with(&EndAttr::PLAIN, &EndAttr::PLAIN)
    }

    /// Two ends over the transport of one host.
    pub(crate) fn with(a: &EndAttr, b: &EndAttr) -> Result<Self> {
        Self::over(connect_pair, RNR_MS, a, b)
    }

    /// Two ends over a transport.
    pub(crate) fn over(
        connect_fn: ConnectFn,
        rnr_timeout_ms: u32,
        a: &EndAttr,
        b: &EndAttr,
    ) -> Result<Self> {
        let engine_host = EngineHost::new(rnr_timeout_ms)?;
        let qp_pair = Self {
            a: engine_host.end(a)?,
            b: engine_host.end(b)?,
            engine_host,
        };
        qp_pair.connect(connect_fn)?;
        Ok(qp_pair)
    }

    /// Connects the two ends, which are unconnected.
    pub(crate) fn connect(&self, connect_fn: ConnectFn) -> Result {
        connect(connect_fn, &self.a, &self.b)
    }

    /// Returns true if both ends are in error, and each owner was notified once; waits for it.
    pub(crate) fn is_down(&self) -> bool {
        self.a.is_down() && self.b.is_down()
    }
}

/// Connects two ends.
pub(crate) fn connect(connect_fn: ConnectFn, a: &End, b: &End) -> Result {
    let transport = connect_fn(&a.qp, &b.qp)?;
    for (end, number) in [(b, 1), (a, 0)] {
        end.qp.modify(QpState::Init)?;
        end.attach(transport.clone(), number)?;
    }
    Ok(())
}
