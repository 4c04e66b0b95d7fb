// SPDX-License-Identifier: GPL-2.0

//! Connections without memory, on either side.
//!
//! Each step of a connection is refused at once, or fails later, on the side that has no memory.
//! The failure is then reported to the other side, and the same active connector connects the same
//! two queue pairs when there is memory again.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    completion::{
        log_status,
        AutoClose,
        CallbackValue, //
    },
    host::{
        here,
        TestHost,
        SIZES, //
    },
    oom::{
        each,
        has_faults,
        never,
        once,
        Strike, //
    },
    pair::{
        OpenListener,
        Pair,
        TestSide,
        READS, //
    }, //
};
use crate::{
    kunit::harness::wait_until,
    ndk::{
        call::DoneFn,
        connector::{
            Connector,
            Source, //
        },
        status::{
            Answer,
            NtStatus,
            Progress, //
        }, //
    },
    rdma::values::status::Status, //
};

/// The status of each step that an attempt reached.
struct Attempt {
    connect: NtStatus,
    /// The passive side's connector and the end of its accept.
    passive: Option<(AutoClose<Connector>, NtStatus)>,
    complete: Option<NtStatus>,
}

impl Attempt {
    fn is_up(&self) -> bool {
        let accepted = self.passive.as_ref().map(|(_, status)| *status);
        self.complete == Some(NtStatus::SUCCESS) && accepted == Some(NtStatus::SUCCESS)
    }

    /// Returns true if both sides know that there is no connection.
    fn is_off(&self) -> bool {
        let accepted = self.passive.as_ref().map(|(_, status)| *status);
        let active = match self.complete {
            None => self.connect,
            Some(status) => status,
        };
        active != NtStatus::SUCCESS && accepted != Some(NtStatus::SUCCESS)
    }

    /// Returns true if a failed attempt has a possible outcome. The side without memory has
    /// `INSUFFICIENT_RESOURCES`; the other side is refused, or loses the connection.
    fn is_explained(&self) -> bool {
        const NO_MEMORY: NtStatus = NtStatus::INSUFFICIENT_RESOURCES;
        const REFUSED: NtStatus = NtStatus::of(Status::Refused);
        const ABORTED: NtStatus = NtStatus::CONNECTION_ABORTED;
        let accepted = self.passive.as_ref().map(|(_, status)| *status);
        let outcome = (self.connect, accepted, self.complete);
        [
            // No memory for the request, on the active or on the passive side.
            (NO_MEMORY, None, None),
            (REFUSED, None, None),
            // No memory for the accept, on the passive side.
            (REFUSED, Some(NO_MEMORY), None),
            // No memory for the answer, on the active side.
            (ABORTED, Some(ABORTED), None),
            // No memory for the confirmation, on the active side.
            (NtStatus::SUCCESS, Some(ABORTED), Some(NO_MEMORY)),
        ]
        .contains(&outcome)
    }

    fn close(self) -> Result {
        let Some((mut theirs, _)) = self.passive else {
            return Ok(());
        };
        match theirs.close_and_wait()? {
            true => Ok(()),
            false => Err(ETIMEDOUT),
        }
    }
}

fn data() -> Result<KVec<u8>> {
    Ok(KVec::from_elem(7, 40, GFP_KERNEL)?)
}

/// Makes a step that pends. A step that is refused for want of memory has no effect, and is
/// repeated.
fn step(
    strike: &mut Strike<'_>,
    slot: &Arc<CallbackValue<NtStatus>>,
    mut call: impl FnMut(KVec<u8>, DoneFn<NtStatus>) -> Answer,
) -> Result {
    let (bytes, done) = (data()?, slot.callback()?);
    let (mut answer, was_struck) = strike.inline(|| call(bytes, done));
    match answer {
        Err(NtStatus::INSUFFICIENT_RESOURCES) if was_struck => {
            answer = call(data()?, slot.callback()?);
        }
        _ => strike.survived |= was_struck,
    }
    match answer {
        Ok(Progress::Pending) => Ok(()),
        Ok(Progress::Done) => Err(EPROTO),
        Err(status) => Err(log_status(status)),
    }
}

/// Attempts to connect two sides.
fn attempt(
    strike: &mut Strike<'_>,
    ours: &AutoClose<Connector>,
    (active, passive): (&TestSide, &TestSide),
    source: impl Fn() -> Source,
) -> Result<Attempt> {
    let test_host = strike.test_host;
    let open_listener = OpenListener::new(&test_host.adapter)?;
    let (connected, accepted, completed) = (
        CallbackValue::new()?,
        CallbackValue::new()?,
        CallbackValue::new()?,
    );
    strike.begin();
    step(strike, &connected, |bytes, done| {
        ours.connect(&active.qp, (source(), open_listener.at), READS, bytes, done)
    })?;
    wait_until(|| connected.calls.get() + open_listener.arrivals.calls.get() > 0);
    // The work of one step ends before the next one begins: the fault is in one of the two.
    test_host.flush_work();
    let theirs = match open_listener.arrivals.calls.get() {
        0 => None,
        _ => Some(open_listener.incoming()?),
    };
    if let Some(theirs) = &theirs {
        step(strike, &accepted, |bytes, done| {
            theirs.accept(&passive.qp, READS, bytes, None, done)
        })?;
    }
    let connect = connected.wait().ok_or(ETIMEDOUT)?;
    test_host.flush_work();
    let mut complete = None;
    if connect == NtStatus::SUCCESS {
        step(strike, &completed, |_, done| {
            ours.complete_connect(None, done)
        })?;
        complete = Some(completed.wait().ok_or(ETIMEDOUT)?);
    }
    let passive = match theirs {
        Some(theirs) => Some((theirs, accepted.wait().ok_or(ETIMEDOUT)?)),
        None => None,
    };
    strike.end();
    once(&connected, 1)?;
    once(&accepted, u32::from(passive.is_some()))?;
    once(&completed, u32::from(complete.is_some()))?;
    Ok(Attempt {
        connect,
        passive,
        complete,
    })
}

/// Returns true if a message goes from one side to the other.
fn works(active: &TestSide, passive: &TestSide) -> Result<bool> {
    passive.receive(1, &[])?;
    active.send(2, &[], 0)?;
    Ok(active.requests.next_is(2, NtStatus::SUCCESS)
        && passive.receives.next_is(1, NtStatus::SUCCESS))
}

/// Connects with a fault, and again without one if that failed. False if a fault did no harm.
fn connects(strike: &mut Strike<'_>, source: impl Fn() -> Source) -> Result<bool> {
    let test_host = strike.test_host;
    let test_sides = (
        TestSide::new(&test_host.adapter, 1, SIZES)?,
        TestSide::new(&test_host.adapter, 2, SIZES)?,
    );
    let test_sides = (&test_sides.0, &test_sides.1);
    let mut ours = test_host
        .adapter
        .create_connector()
        .map(AutoClose::new)
        .map_err(log_status)?;
    let mut tried = attempt(strike, &ours, test_sides, &source)?;
    // A refused step was repeated: that attempt succeeds.
    let failed = !tried.is_up();
    if failed {
        let outcome = (tried.connect, tried.complete);
        if !tried.is_off() || !tried.is_explained() || !strike.struck {
            let accepted = tried.passive.as_ref().map(|(_, status)| *status);
            kunit_note!("outcome {:?}, {:?}", outcome, accepted);
            return Err(EPROTO);
        }
        tried.close()?;
        tried = attempt(&mut Strike::none(test_host), &ours, test_sides, &source)?;
        if !tried.is_up() {
            kunit_note!("not up after {:?}", outcome);
            return Err(EPROTO);
        }
    }
    if !works(test_sides.0, test_sides.1)? || !ours.close_and_wait()? {
        return Err(EPROTO);
    }
    tried.close()?;
    Ok(!strike.survived && (failed || !strike.fails_later()))
}

#[kernel::macros::kunit_tests(ndk_kunit_ndk_oom_connect)]
mod tests {
    use super::*;

    #[test]
    fn connecting_fails_at_each_allocation_of_either_side() -> Result {
        if !has_faults()? {
            return Ok(());
        }
        let test_host = TestHost::new()?;
        let struck = each(&test_host, |strike| {
            connects(strike, || Source::Address(here(0)))
        })?;
        // Address and route; the connect request; the passive side's connector; the acceptance; the
        // answer; the transport.
        assert!(struck.is_by(1, 22, 0));
        Ok(())
    }

    #[test]
    fn connecting_over_a_shared_endpoint_fails_at_each_allocation() -> Result {
        if !has_faults()? {
            return Ok(());
        }
        let test_host = TestHost::new()?;
        let mut none = Strike::none(&test_host);
        let adapter = &test_host.adapter;
        let shared = none.create(|done| adapter.create_shared_endpoint(here(0), done))?;
        let shared = shared.map_err(|_| EIO)?;
        let struck = each(&test_host, |strike| {
            connects(strike, || Source::shared(&shared))
        })?;
        assert!(struck.is_by(1, 20, 0));
        Ok(())
    }

    /// Disconnecting, rejecting, and their events at the peer need no memory.
    #[test]
    fn disconnecting_and_rejecting_need_no_memory() -> Result {
        if !has_faults()? {
            return Ok(());
        }
        let pair = Pair::new()?;
        let (test_host, slot) = (&pair.test_host, CallbackValue::new()?);
        let (ours, done) = (pair.a.connector()?, slot.callback()?);
        never(test_host, || {
            if !matches!(ours.disconnect(done), Ok(Progress::Pending)) {
                return Err(EPROTO);
            }
            let status = slot.wait().ok_or(ETIMEDOUT)?;
            kunit_assert_eq!(status, NtStatus::SUCCESS);
            assert!(wait_until(|| pair.b.disconnects.get() == 1));
            Ok(())
        })?;
        let test_side = TestSide::new(&test_host.adapter, 1, SIZES)?;
        let ours = test_host
            .adapter
            .create_connector()
            .map(AutoClose::new)
            .map_err(log_status)?;
        let slot = CallbackValue::new()?;
        let to = (Source::Address(here(0)), pair.open_listener.at);
        let asked = ours.connect(&test_side.qp, to, READS, data()?, slot.callback()?);
        assert!(matches!(asked, Ok(Progress::Pending)));
        // The first request was that of the pair, and its event stays.
        assert!(wait_until(|| pair.open_listener.arrivals.calls.get() == 2));
        let theirs = pair.open_listener.incoming()?;
        never(test_host, || {
            theirs.reject(&[]).map_err(log_status)?;
            let status = slot.wait().ok_or(ETIMEDOUT)?;
            kunit_assert_eq!(status, NtStatus::of(Status::Refused));
            Ok(())
        })
    }
}
