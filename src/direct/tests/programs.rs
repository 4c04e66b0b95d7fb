// SPDX-License-Identifier: GPL-2.0

//! Programs and the kernel on one device: their flows, and their failures in the log.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    engine::{
        device::RdmaDevice,
        domain::Domain, //
    },
    kunit::{
        harness::{
            connect,
            connect_pair,
            wait_ms,
            End,
            EndAttr,
            EngineHost,
            RNR_MS, //
        },
        other_context::OtherContext, //
    },
    sys::event::Event, //
};

/// Two connected ends, each of a program or of the kernel.
struct Mixed {
    a: End,
    b: End,
    // Dropped last.
    _engine_host: Arc<EngineHost>,
}

impl Mixed {
    fn new(engine_host: &Arc<EngineHost>, of_program: [bool; 2]) -> Result<Self> {
        let device = engine_host.device()?;
        let attr = EndAttr::deep(300, 16);
        let end = |is_of_program| -> Result<End> {
            let domain = match is_of_program {
                true => Domain::untrusted(device.clone())?,
                false => Domain::new(device.clone(), GFP_KERNEL)?,
            };
            engine_host.end_in(&domain, &attr, None)
        };
        let [a, b] = of_program;
        let mixed = Self {
            a: end(a)?,
            b: end(b)?,
            _engine_host: engine_host.clone(),
        };
        connect(connect_pair, &mixed.a, &mixed.b)?;
        Ok(mixed)
    }
}

fn new_host() -> Result<Arc<EngineHost>> {
    Ok(Arc::new(EngineHost::new(RNR_MS)?, GFP_KERNEL)?)
}

/// Occupies the thread of a processor that the flows of programs use, or those of the kernel.
struct Occupied {
    task: Arc<OtherContext>,
    end: Arc<Occupation>,
}

#[pin_data]
struct Occupation {
    #[pin]
    end: Event,
}

impl Occupied {
    fn new() -> Result<Self> {
        let end = Arc::pin_init(pin_init!(Occupation { end <- Event::new() }), GFP_KERNEL)?;
        let until = end.clone();
        let task = OtherContext::new(move || {
            until.end.wait_timeout(wait_ms());
        })?;
        Ok(Self { task, end })
    }

    /// Begins on the present processor.
    fn begin(&self, device: &RdmaDevice, of_programs: bool) -> bool {
        self.task.begin(device.host.copies(of_programs))
    }

    /// Ends the occupation; false if its work has not run.
    fn end(&self) -> bool {
        self.end.end.signal();
        self.task.is_done()
    }
}

#[kernel::macros::kunit_tests(ndk_direct_tests_programs)]
mod tests {
    use super::*;

    use crate::{
        kunit::{
            harness::{
                cases,
                flush_work,
                sleep, //
            },
            requests::*, //
        },
        rdma::values::{
            status::Status,
            work::SendFlag, //
        },
        sys::{
            log::{
                self,
                Limit, //
            },
            softirq::BhDisabled, //
        }, //
    };

    #[test]
    fn bytes_of_programs_and_of_the_kernel_are_moved_by_threads_of_their_own() -> Result {
        const LEN: usize = 3 << 20;
        for of_program in cases([false, true]) {
            let engine_host = new_host()?;
            // The thread of one of the two is occupied.
            let [held, free] = [of_program, !of_program]
                .map(|is_of_program| Mixed::new(&engine_host, [is_of_program, false]));
            let (held, free) = (held?, free?);
            let sinks = [held.b.buffer(LEN)?, free.b.buffer(LEN)?];
            let sources = [held.a.filled(LEN, 41)?, free.a.filled(LEN, 42)?];
            let occupied = Occupied::new()?;
            // All three are queued on one processor.
            let section = BhDisabled::enter();
            let is_begun = occupied.begin(held.a.device(), of_program);
            let posted = [
                held.a
                    .post(1, write(sinks[0].remote(0)), &[sources[0].whole()]),
                free.a
                    .post(1, write(sinks[1].remote(0)), &[sources[1].whole()]),
            ];
            drop(section);
            let is_through = free.a.sends.next_is(1, Status::Success);
            sleep(20);
            let is_held = held.a.sends.poll().is_none();
            assert!(occupied.end());
            assert!(is_begun);
            assert!(posted.iter().all(|posted| posted.is_ok()));
            kunit_assert_eq!((is_through, is_held), (true, true));
            assert!(held.a.sends.next_is(1, Status::Success));
            assert!(sinks[0].holds(0, LEN, 41, 0));
            assert!(sinks[1].holds(0, LEN, 42, 0));
        }
        Ok(())
    }

    #[test]
    fn a_program_s_long_run_of_requests_goes_on_in_a_thread() -> Result {
        let engine_host = new_host()?;
        let mixed = Mixed::new(&engine_host, [true, false])?;
        let (source, sink) = (mixed.a.filled(300, 43)?, mixed.b.buffer(300)?);
        for n in cases(0..300) {
            let list = [source.sge(n, 1)].into_iter();
            let work = write(sink.remote(n));
            assert!(mixed
                .a
                .qp
                .post(n as u64, work, SendFlag::Signaled, list)
                .is_ok());
        }
        let occupied = Occupied::new()?;
        let section = BhDisabled::enter();
        let is_begun = occupied.begin(mixed.a.device(), true);
        mixed.a.qp.ring_doorbell();
        drop(section);
        mixed.a.device().host.softirqs.flush();
        let early = mixed.a.sends.cq.poll(300, |_| ());
        assert!(occupied.end());
        assert!(is_begun);
        // The post itself carried out one run of requests.
        kunit_assert_eq!(early, 64);
        // CAST: widening.
        assert!(mixed.a.sends.next_are(early as u64..300, Status::Success));
        assert!(sink.holds(0, 300, 43, 0));
        Ok(())
    }

    #[test]
    fn what_a_program_brings_about_has_limits_of_its_own_in_the_log() -> Result {
        const LIMITS: [Limit; 3] = [Limit::Kernel, Limit::PeerOfProgram, Limit::Program];
        for (of_program, messages) in cases([
            ([false, false], [2, 0, 0]),
            ([true, false], [0, 1, 1]),
            ([false, true], [0, 1, 1]),
            ([true, true], [0, 0, 2]),
        ]) {
            let engine_host = new_host()?;
            let before = LIMITS.map(log::asked);
            let mixed = Mixed::new(&engine_host, of_program)?;
            let (source, sink) = (mixed.a.filled(16, 44)?, mixed.b.buffer(8)?);
            // The message is too long for its receive: both ends fail, and warn.
            mixed.b.receive(2, &[sink.whole()])?;
            mixed.a.post(1, SEND, &[source.whole()])?;
            assert!(mixed.a.sends.next_is(1, Status::RemoteInvalidRequest));
            assert!(mixed.b.receives.next_is(2, Status::ReceiveLength));
            flush_work(mixed.a.device());
            let mut asked = LIMITS.map(log::asked);
            for (now, before) in asked.iter_mut().zip(before) {
                *now -= before;
            }
            kunit_assert_eq!(asked, messages);
        }
        Ok(())
    }
}
