// SPDX-License-Identifier: GPL-2.0

//! [`TestHost`]: a host with one device on the loopback, and an adapter of this face.

use core::net::{
    IpAddr,
    Ipv4Addr,
    SocketAddr, //
};

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::completion::{
    log_status,
    made,
    AutoClose, //
};
use crate::{
    engine::{
        cm::{
            ConnectFn,
            ConnectionManager,
            Timeouts, //
        },
        device::{
            DeviceList,
            RdmaDevice, //
        },
        host::Host, //
    },
    kunit::{
        harness::{
            connect_pair,
            flush_work,
            patient,
            wait_until,
            RNR_MS, //
        },
        log::Tally, //
    },
    ndk::{
        adapter::{
            open,
            Adapter,
            Limits,
            NdkContext,
            OpenBy,
            VERSION, //
        },
        cq::{
            Cq,
            ResultEx, //
        },
        life::Ref,
        pd::Pd,
        qp::Qp,
        status::NtStatus, //
    },
    rdma::values::qp::QpCaps,
    sys::{
        clock,
        netdev::{
            Net,
            NetDev, //
        }, //
    }, //
};

/// The address of the device.
pub(super) const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// An address of the device; port 0 stands for any.
pub(crate) const fn here(port: u16) -> SocketAddr {
    SocketAddr::new(HERE, port)
}

/// The name of the device.
pub(crate) const NAME: &CStr = c"ndktest0";

/// The attributes of a host.
#[derive(Clone, Copy)]
pub(crate) struct HostAttr {
    pub(crate) limits: Limits,
    pub(crate) timeouts: Timeouts,
    /// The function that makes the transport of a connection.
    pub(crate) connect_fn: ConnectFn,
    /// The time that a message waits for a receive, in milliseconds.
    pub(crate) rnr_ms: u32,
}

impl HostAttr {
    pub(crate) const PLAIN: Self = Self {
        limits: Limits::FULL,
        timeouts: Timeouts::DEFAULT,
        connect_fn: connect_pair,
        rnr_ms: RNR_MS,
    };
}

/// A host, a device, and one open adapter.
pub(crate) struct TestHost {
    pub(crate) adapter: Ref<Adapter>,
    pub(crate) context: NdkContext,
    pub(crate) device: Arc<RdmaDevice>,
    host: Arc<Host>,
}

impl TestHost {
    /// May sleep.
    pub(crate) fn new() -> Result<Self> {
        Self::with(&HostAttr::PLAIN)
    }

    /// May sleep.
    pub(crate) fn with(attr: &HostAttr) -> Result<Self> {
        clock::restart_if_left();
        let host = Host::new(attr.rnr_ms)?;
        let netdev = NetDev::loopback()?;
        let net = Net::FIRST.cookie();
        let cm = ConnectionManager::new(attr.connect_fn, None, patient(attr.timeouts))?;
        let device = RdmaDevice::new(host.clone(), NAME, net, Some(netdev))?;
        let devices = DeviceList::new()?;
        devices.add(device.clone())?;
        let context = NdkContext {
            devices,
            cm,
            limits: attr.limits,
        };
        let adapter = open(&context, &OpenBy::first(NAME), VERSION).map_err(log_status)?;
        Ok(Self {
            adapter,
            context,
            device,
            host,
        })
    }

    /// Waits until all work of the engine that is queued now has run.
    pub(crate) fn flush_work(&self) {
        self.device.host.threads.flush();
        flush_work(&self.device);
        self.device.host.threads.flush();
        flush_work(&self.device);
    }

    /// A queue for `depth` results.
    pub(super) fn queue(&self, depth: u32) -> Result<Queue> {
        Queue::new(&self.adapter, depth)
    }

    /// The present value of a counter.
    pub(super) fn counted(&self, counter: crate::engine::counters::Counter) -> u64 {
        self.device.counted(counter as usize)
    }
}

impl Drop for TestHost {
    fn drop(&mut self) {
        if !self.adapter.is_closed() {
            self.adapter.close_and_wait();
        }
        self.device.shut();
        self.context.devices.remove(&self.device);
        self.host.quiesce();
    }
}

/// A completion queue and its notifications.
pub(super) struct Queue {
    pub(super) cq: AutoClose<Cq>,
    pub(super) calls: Arc<Tally>,
    /// The status of the last notification.
    pub(super) status: Arc<kernel::sync::atomic::Atomic<i32>>,
    adapter: Ref<Adapter>,
}

impl Queue {
    /// May sleep.
    pub(super) fn new(adapter: &Ref<Adapter>, depth: u32) -> Result<Self> {
        use kernel::sync::atomic::{
            Atomic,
            Relaxed, //
        };
        let calls = Arc::new(Tally::new(), GFP_KERNEL)?;
        let status = Arc::new(Atomic::new(0), GFP_KERNEL)?;
        let (tally, last) = (calls.clone(), status.clone());
        let user = KBox::new(
            move |notified: NtStatus| {
                last.store(notified.raw(), Relaxed);
                tally.hit();
            },
            GFP_KERNEL,
        )?;
        Ok(Self {
            cq: made(|done| adapter.create_cq(depth, None, user, done))?,
            calls,
            status,
            adapter: adapter.clone(),
        })
    }

    /// Takes the next result, if the queue has one.
    pub(super) fn poll(&self) -> Option<ResultEx> {
        let mut found = None;
        self.cq.results(1, |result| found = Some(result));
        found
    }

    /// Waits for the next result and takes it. `ETIMEDOUT` if none comes.
    pub(super) fn next(&self) -> Result<ResultEx> {
        let mut found = None;
        wait_until(|| {
            found = self.poll();
            found.is_some()
        });
        found.ok_or(ETIMEDOUT)
    }

    /// Waits for the next result; returns true if it has this context and status.
    pub(super) fn next_is(&self, context: u64, status: NtStatus) -> bool {
        let got = self.next().map(|r| (r.request_context, r.status));
        let fine = got == Ok((context, status));
        if !fine {
            kunit_note!("want {:?}, got {:?}", (context, status), got);
        }
        fine
    }

    /// Returns true if the queue is empty after the pending work has run.
    pub(super) fn stays_empty(&self) -> bool {
        flush_work(self.adapter.device());
        let got = self.poll();
        if got.is_some() {
            kunit_note!("got {:?}", got);
        }
        got.is_none()
    }

    /// Returns true if the queue has notified `times` times after the pending work has run.
    pub(super) fn has_called(&self, times: u32) -> bool {
        flush_work(self.adapter.device());
        let got = self.calls.get();
        if got != times {
            kunit_note!("called {} times, not {}", got, times);
        }
        got == times
    }
}

/// The sizes of a queue pair in ordinary tests.
pub(super) const SIZES: QpCaps = QpCaps {
    recv_wr: 32,
    send_wr: 32,
    recv_sge: 4,
    send_sge: 4,
    inline_data: 64,
    ..QpCaps::NONE
};

/// A protection domain.
pub(super) fn pd(adapter: &Ref<Adapter>) -> Result<AutoClose<Pd>> {
    adapter.create_pd().map(AutoClose::new).map_err(log_status)
}

/// A queue pair with two completion queues.
pub(super) fn qp(
    pd: &Ref<Pd>,
    receives: &Queue,
    requests: &Queue,
    context: usize,
    sizes: QpCaps,
) -> Result<AutoClose<Qp>> {
    made(|done| pd.create_qp((&receives.cq, &requests.cq), None, context, sizes, done))
}
