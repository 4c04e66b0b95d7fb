// SPDX-License-Identifier: GPL-2.0

//! The C form without memory: its handles and callbacks, through the dispatch tables.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    completion::{
        notified,
        Own,
        Slot, //
    },
    host::{
        here,
        TestHost,
        NAME,
        SIZES, //
    },
    memory::{
        PageBuffer,
        PAGE, //
    },
    oom::{
        everywhere,
        has_faults,
        never,
        Strike,
        Struck, //
    },
    pair::{
        Door,
        Party,
        READS, //
    }, //
};
use crate::{
    engine::status::Status,
    kunit::harness::wait_until,
    ndk::{
        abi::oom_tests as c,
        connector::Source,
        status::NtStatus, //
    },
    sys::{
        fault::FailNth,
        mdl::Described, //
    }, //
};

const SUCCESS: i32 = NtStatus::SUCCESS.raw();
const PENDING: i32 = NtStatus::PENDING.raw();
const NO_MEMORY: i32 = NtStatus::INSUFFICIENT_RESOURCES.raw();

/// Runs a test on a site, which is left alone if the test failed: it would wait for objects in C
/// that nobody closes.
fn on_site(test: impl FnOnce(&TestHost) -> Result) -> Result {
    let site = TestHost::new()?;
    let result = test(&site);
    if result.is_err() {
        core::mem::forget(site);
    }
    result
}

/// What became of a creation.
type Made = Result<c::ObjectType, i32>;

/// Creates an object, with the fault, and waits for it.
fn create(strike: &mut Strike<'_>, call: impl FnOnce(&c::Told) -> c::Given) -> Result<Made> {
    let notified = c::Told::new()?;
    strike.begin();
    let ((status, object), _) = strike.inline(|| call(&notified));
    let made = match (status, object) {
        (PENDING, None) => match (notified.wait()?, notified.object()) {
            (SUCCESS, Some(object)) => Ok(object),
            (status, None) if status != SUCCESS => Err(status),
            // No status without an object, no object without a status.
            (_, _) => return Err(EPROTO),
        },
        (SUCCESS, Some(object)) => Ok(object),
        (status, None) if status != SUCCESS => Err(status),
        (_, _) => return Err(EPROTO),
    };
    strike.end();
    match notified.calls() == u32::from(status == PENDING) {
        true => Ok(made),
        false => Err(EPROTO),
    }
}

/// The same without a fault.
fn made(site: &TestHost, call: impl FnOnce(&c::Told) -> c::Given) -> Result<c::ObjectType> {
    create(&mut Strike::none(site), call)?.map_err(|_| EIO)
}

/// Makes a request, with the fault, and waits for its end.
fn ended(strike: &mut Strike<'_>, call: impl FnOnce(&c::Told) -> i32) -> Result<i32> {
    let notified = c::Told::new()?;
    strike.begin();
    let (status, _) = strike.inline(|| call(&notified));
    let end = match status {
        PENDING => notified.wait()?,
        status => status,
    };
    strike.end();
    match notified.calls() == u32::from(status == PENDING) {
        true => Ok(end),
        false => Err(EPROTO),
    }
}

/// Closes an object, which needs no memory.
fn close(site: &TestHost, object: c::ObjectType) -> Result {
    let notified = c::Told::new()?;
    let status = never(site, || match c::close(object, &notified) {
        PENDING => notified.wait(),
        status => Ok(status),
    })?;
    match status {
        SUCCESS => Ok(()),
        _ => Err(EPROTO),
    }
}

/// Lets a creation fail everywhere, and its object close.
fn creates(site: &TestHost, mut call: impl FnMut(&c::Told) -> c::Given) -> Result<Struck> {
    everywhere(site, |strike| match create(strike, &mut call)? {
        Ok(object) => close(site, object).map(|()| SUCCESS),
        Err(status) => Ok(status),
    })
}

/// Begins a step of a connection; one that is refused for want of memory is made again.
fn step(strike: &mut Strike<'_>, mut call: impl FnMut() -> i32) -> Result<bool> {
    let (mut status, was_struck) = strike.inline(&mut call);
    let was_refused = was_struck && status == NO_MEMORY;
    if was_refused {
        status = call();
    }
    match status {
        PENDING => Ok(was_refused),
        _ => Err(EPROTO),
    }
}

/// What the objects of a connection are made of.
struct Base {
    adapter: c::ObjectType,
    pd: c::ObjectType,
    cq: c::ObjectType,
    listener: c::ObjectType,
    arrivals: Arc<c::Told>,
}

/// Connects two queue pairs in C and disconnects them; each call fails in its caller's context if
/// it is to. `NO_MEMORY` if one did.
fn connect(
    strike: &mut Strike<'_>,
    base: &Base,
    shared: Option<c::ObjectType>,
    ex: bool,
    [asked, accepted, completed, over]: &[Arc<c::Told>; 4],
) -> Result<i32> {
    let site = strike.site;
    let active = made(site, |notified| {
        c::create_qp(base.pd, base.cq, None, notified)
    })?;
    let passive = made(site, |notified| {
        c::create_qp(base.pd, base.cq, None, notified)
    })?;
    let ours = made(site, |notified| c::create_connector(base.adapter, notified))?;
    let before = base.arrivals.calls();
    let at = c::address(base.listener).ok_or(EINVAL)?;
    let ends = (&here(0), &at);
    let mut struck = step(strike, || c::connect(ours, active, shared, ends, asked))?;
    if !wait_until(|| base.arrivals.calls() == before + 1) {
        return Err(ETIMEDOUT);
    }
    let theirs = base.arrivals.object().ok_or(EPROTO)?;
    struck |= step(strike, || c::accept(theirs, passive, ex, accepted))?;
    let mut fine = asked.wait()? == SUCCESS;
    site.flush_work();
    struck |= step(strike, || c::complete(ours, ex, completed))?;
    fine &= completed.wait()? == SUCCESS && accepted.wait()? == SUCCESS;
    site.flush_work();
    struck |= step(strike, || c::disconnect(ours, over))?;
    fine &= over.wait()? == SUCCESS;
    site.flush_work();
    for notified in [asked, accepted, completed, over] {
        fine &= notified.calls() == 1;
    }
    for object in [ours, theirs, active, passive] {
        close(site, object)?;
    }
    match (fine, struck) {
        (false, _) => Err(EPROTO),
        (true, true) => Ok(NO_MEMORY),
        (true, false) => Ok(SUCCESS),
    }
}

#[kernel::macros::kunit_tests(ndk_ndk_tests_oom_c)]
mod tests {
    use super::*;

    #[test]
    fn opening_fails_at_each_allocation() -> Result {
        if !has_faults()? {
            return Ok(());
        }
        on_site(|site| {
            let struck = everywhere(site, |strike| {
                strike.begin();
                let (given, _) = strike.inline(|| c::open(&site.context, NAME));
                strike.end();
                match given {
                    (SUCCESS, Some(adapter)) => never(site, || {
                        c::close_adapter(adapter);
                        Ok(SUCCESS)
                    }),
                    (status, None) if status != SUCCESS => Ok(status),
                    (_, _) => Err(EPROTO),
                }
            })?;
            // The handle, and what the Rust form takes.
            assert!(struck.is_by(4, 0, 0));
            Ok(())
        })
    }

    #[test]
    fn ndk_gen_07_creating_fails_inline_and_through_the_completion() -> Result {
        if !has_faults()? {
            return Ok(());
        }
        on_site(|site| {
            let (status, adapter) = c::open(&site.context, NAME);
            let adapter = adapter.filter(|_| status == SUCCESS).ok_or(EIO)?;
            // Here only: its first region is made of a table that may be large.
            let pd = made(site, |notified| c::create_pd(adapter, notified))?;
            let first = made(site, |notified| c::create_mw(pd, notified))?;
            let cq = made(site, |notified| c::create_cq(adapter, 64, notified))?;
            let srq = made(site, |notified| c::create_srq(pd, notified))?;
            let arrivals = c::Told::new()?;
            // At once: the handle comes on top of what the Rust form takes.
            assert!(creates(site, |t| c::create_pd(adapter, t))?.is_by(3, 0, 0));
            assert!(creates(site, |t| c::create_mr(pd, true, t))?.is_by(2, 0, 0));
            let struck = creates(site, |t| c::create_connector(adapter, t))?;
            assert!(struck.is_by(3, 0, 0));
            // And the event.
            let struck = creates(site, |t| c::create_listener(adapter, &arrivals, t))?;
            assert!(struck.is_by(4, 0, 0));
            // Later: handle and completion, and the work.
            assert!(creates(site, |t| c::create_mw(pd, t))?.is_by(3, 2, 0));
            let struck = creates(site, |t| c::create_shared_endpoint(adapter, &here(0), t))?;
            assert!(struck.is_by(3, 3, 0));
            // And the event.
            assert!(creates(site, |t| c::create_cq(adapter, 16, t))?.is_by(4, 5, 1));
            assert!(creates(site, |t| c::create_srq(pd, t))?.is_by(4, 6, 2));
            assert!(creates(site, |t| c::create_qp(pd, cq, None, t))?.is_by(3, 7, 5));
            assert!(creates(site, |t| c::create_qp(pd, cq, Some(srq), t))?.is_by(3, 6, 4));
            for object in [srq, cq, first, pd] {
                close(site, object)?;
            }
            c::close_adapter(adapter);
            Ok(())
        })
    }

    #[test]
    fn ndk_gen_07_requests_fail_inline_and_through_the_completion() -> Result {
        if !has_faults()? {
            return Ok(());
        }
        on_site(|site| {
            let (status, adapter) = c::open(&site.context, NAME);
            let adapter = adapter.filter(|_| status == SUCCESS).ok_or(EIO)?;
            let pd = made(site, |notified| c::create_pd(adapter, notified))?;
            let mr = made(site, |notified| c::create_mr(pd, false, notified))?;
            let buffer = PageBuffer::plain(2 * PAGE)?;
            let described = Described::new(&buffer.bytes)?;
            let struck = everywhere(site, |strike| {
                match ended(strike, |notified| {
                    c::register(mr, &described, 100, notified)
                })? {
                    SUCCESS => ended(&mut Strike::none(site), |notified| {
                        c::deregister(mr, notified)
                    }),
                    status => Ok(status),
                }
            })?;
            // The completion and the work; the pieces, which survive one failure.
            assert!(struck.is_by(2, 1, 1));
            let struck = everywhere(site, |strike| {
                let fast = made(site, |notified| c::create_mr(pd, true, notified))?;
                let status = ended(strike, |notified| c::initialize(fast, 4, notified))?;
                close(site, fast)?;
                Ok(status)
            })?;
            assert!(struck.is_by(2, 2, 2));
            let cq = made(site, |notified| c::create_cq(adapter, 8, notified))?;
            let struck = everywhere(site, |strike| {
                ended(strike, |notified| c::resize(cq, 16, notified))
            })?;
            assert!(struck.is_by(2, 1, 1));
            let srq = made(site, |notified| c::create_srq(pd, notified))?;
            let struck = everywhere(site, |strike| {
                ended(strike, |notified| c::modify(srq, 8, notified))
            })?;
            assert!(struck.is_by(2, 2, 2));
            let arrivals = c::Told::new()?;
            let struck = everywhere(site, |strike| {
                let listener = made(site, |t| c::create_listener(adapter, &arrivals, t))?;
                let status = ended(strike, |notified| c::listen(listener, &here(0), notified))?;
                close(site, listener)?;
                Ok(status)
            })?;
            assert!(struck.is_by(2, 4, 0));
            for object in [srq, cq, mr, pd] {
                close(site, object)?;
            }
            c::close_adapter(adapter);
            Ok(())
        })
    }

    /// What fails in the work of a connection fails as in the Rust form: `ndk_face_oom_connect`.
    #[test]
    fn each_step_of_a_connection_may_be_refused_and_made_again() -> Result {
        if !has_faults()? {
            return Ok(());
        }
        on_site(|site| {
            let (status, adapter) = c::open(&site.context, NAME);
            let adapter = adapter.filter(|_| status == SUCCESS).ok_or(EIO)?;
            let pd = made(site, |notified| c::create_pd(adapter, notified))?;
            let cq = made(site, |notified| c::create_cq(adapter, 64, notified))?;
            let arrivals = c::Told::new()?;
            let listener = made(site, |t| c::create_listener(adapter, &arrivals, t))?;
            let mut none = Strike::none(site);
            assert_eq!(
                ended(&mut none, |notified| c::listen(
                    listener,
                    &here(0),
                    notified
                ))?,
                SUCCESS
            );
            let shared = made(site, |t| c::create_shared_endpoint(adapter, &here(0), t))?;
            let base = Base {
                adapter,
                pd,
                cq,
                listener,
                arrivals,
            };
            for (shared, ex) in [(None, false), (Some(shared), true)] {
                let struck = everywhere(site, |strike| {
                    let notified = [
                        c::Told::new()?,
                        c::Told::new()?,
                        c::Told::new()?,
                        c::Told::new()?,
                    ];
                    let connected = connect(strike, &base, shared, ex, &notified);
                    if connected.is_err() {
                        // What is pending may still report them.
                        core::mem::forget(notified);
                    }
                    connected
                })?;
                // An accept takes the most: data, event, completion and work.
                assert!(struck.is_by(4, 0, 0));
            }
            for object in [shared, listener, cq, pd] {
                close(site, object)?;
            }
            c::close_adapter(adapter);
            Ok(())
        })
    }

    /// Who asks is refused when there is no memory for the connector that the event brings.
    #[test]
    fn a_request_without_memory_for_its_connector_is_turned_away() -> Result {
        if !has_faults()? {
            return Ok(());
        }
        on_site(|site| {
            let party = Party::new(&site.adapter, 1, SIZES)?;
            let ours = site
                .adapter
                .create_connector()
                .map(Own::new)
                .map_err(notified)?;
            for n in [1, 2] {
                let door = Door::new(&site.adapter)?;
                let arrivals = c::Told::new()?;
                let slot = Slot::new()?;
                let to = (Source::Address(here(0)), door.at);
                let asking = ours.connect(&party.qp, to, READS, KVec::new(), slot.callback()?);
                assert!(asking.is_ok());
                let theirs = door.arrivals.wait().ok_or(ETIMEDOUT)?;
                let mut struck = false;
                c::notify_request(&arrivals, theirs, |notify| {
                    let guard = FailNth::new(n);
                    notify();
                    struck = guard.as_ref().is_some_and(FailNth::struck);
                })?;
                // The handle is all that is made for the event.
                assert_eq!(struck, n == 1);
                assert_eq!(arrivals.calls(), u32::from(n != 1));
                if let Some(theirs) = arrivals.object() {
                    close(site, theirs)?;
                }
                assert!(slot.wait() == Some(NtStatus::of(Status::Refused)));
            }
            Ok(())
        })
    }
}
