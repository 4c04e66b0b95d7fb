// SPDX-License-Identifier: GPL-2.0

//! The C form without memory: its handles and callbacks, through the dispatch tables.

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
        OpenListener,
        TestSide,
        READS, //
    }, //
};
use crate::{
    kunit::harness::{
        cases,
        wait_until, //
    },
    ndk::{
        abi::oom_tests as c,
        connector::Source,
        status::NtStatus, //
    },
    rdma::values::status::Status,
    sys::{
        fault::FailNth,
        mdl::Described, //
    }, //
};

const SUCCESS: i32 = NtStatus::SUCCESS.raw();
const PENDING: i32 = NtStatus::PENDING.raw();
const NO_MEMORY: i32 = NtStatus::INSUFFICIENT_RESOURCES.raw();

/// Runs a test on a host. A failed test leaks the host: its drop would wait for open C objects.
fn on_site(test: impl FnOnce(&TestHost) -> Result) -> Result {
    let test_host = TestHost::new()?;
    let result = test(&test_host);
    if result.is_err() {
        core::mem::forget(test_host);
    }
    result
}

/// The result of a creation.
type Made = Result<c::ObjectType, i32>;

/// Creates an object, with the fault, and waits for it.
fn create(strike: &mut Strike<'_>, call: impl FnOnce(&c::CallbackLog) -> c::Given) -> Result<Made> {
    let log = c::CallbackLog::new()?;
    strike.begin();
    let ((status, object), _) = strike.inline(|| call(&log));
    let made = match (status, object) {
        (PENDING, None) => match (log.wait()?, log.object()) {
            (SUCCESS, Some(object)) => Ok(object),
            (status, None) if status != SUCCESS => Err(status),
            // A success has an object, a failure has none.
            (_, _) => return Err(EPROTO),
        },
        (SUCCESS, Some(object)) => Ok(object),
        (status, None) if status != SUCCESS => Err(status),
        (_, _) => return Err(EPROTO),
    };
    strike.end();
    match log.calls() == u32::from(status == PENDING) {
        true => Ok(made),
        false => Err(EPROTO),
    }
}

/// The same as [`create`] without a fault.
fn made(
    test_host: &TestHost,
    call: impl FnOnce(&c::CallbackLog) -> c::Given,
) -> Result<c::ObjectType> {
    create(&mut Strike::none(test_host), call)?.map_err(|_| EIO)
}

/// Makes a request, with the fault, and waits for its end.
fn ended(strike: &mut Strike<'_>, call: impl FnOnce(&c::CallbackLog) -> i32) -> Result<i32> {
    let log = c::CallbackLog::new()?;
    strike.begin();
    let (status, _) = strike.inline(|| call(&log));
    let end = match status {
        PENDING => log.wait()?,
        status => status,
    };
    strike.end();
    match log.calls() == u32::from(status == PENDING) {
        true => Ok(end),
        false => Err(EPROTO),
    }
}

/// Closes an object, which needs no memory.
fn close(test_host: &TestHost, object: c::ObjectType) -> Result {
    let log = c::CallbackLog::new()?;
    let status = never(test_host, || match c::close(object, &log) {
        PENDING => log.wait(),
        status => Ok(status),
    })?;
    match status {
        SUCCESS => Ok(()),
        _ => Err(EPROTO),
    }
}

/// Lets a creation fail at each allocation, and closes its object.
fn creates(
    test_host: &TestHost,
    mut call: impl FnMut(&c::CallbackLog) -> c::Given,
) -> Result<Struck> {
    everywhere(test_host, |strike| match create(strike, &mut call)? {
        Ok(object) => close(test_host, object).map(|()| SUCCESS),
        Err(status) => Ok(status),
    })
}

/// Begins a step of a connection. Repeats a step that is refused for want of memory, and returns
/// true then.
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

/// The antecedents of a connection.
struct Base {
    adapter: c::ObjectType,
    pd: c::ObjectType,
    cq: c::ObjectType,
    listener: c::ObjectType,
    arrivals: Arc<c::CallbackLog>,
}

/// Connects two queue pairs in C and disconnects them, with the fault in the caller's context of
/// each call. Returns `NO_MEMORY` if a call failed.
fn connect(
    strike: &mut Strike<'_>,
    base: &Base,
    shared: Option<c::ObjectType>,
    ex: bool,
    [asked, accepted, completed, over]: &[Arc<c::CallbackLog>; 4],
) -> Result<i32> {
    let test_host = strike.test_host;
    let active = made(test_host, |log| c::create_qp(base.pd, base.cq, None, log))?;
    let passive = made(test_host, |log| c::create_qp(base.pd, base.cq, None, log))?;
    let ours = made(test_host, |log| c::create_connector(base.adapter, log))?;
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
    test_host.flush_work();
    struck |= step(strike, || c::complete(ours, ex, completed))?;
    fine &= completed.wait()? == SUCCESS && accepted.wait()? == SUCCESS;
    test_host.flush_work();
    struck |= step(strike, || c::disconnect(ours, over))?;
    fine &= over.wait()? == SUCCESS;
    test_host.flush_work();
    for log in [asked, accepted, completed, over] {
        fine &= log.calls() == 1;
    }
    for object in [ours, theirs, active, passive] {
        close(test_host, object)?;
    }
    match (fine, struck) {
        (false, _) => Err(EPROTO),
        (true, true) => Ok(NO_MEMORY),
        (true, false) => Ok(SUCCESS),
    }
}

#[kernel::macros::kunit_tests(ndk_kunit_ndk_oom_c)]
mod tests {
    use super::*;

    #[test]
    fn opening_fails_at_each_allocation() -> Result {
        if !has_faults()? {
            return Ok(());
        }
        on_site(|test_host| {
            let struck = everywhere(test_host, |strike| {
                strike.begin();
                let (given, _) = strike.inline(|| c::open(&test_host.context, NAME));
                strike.end();
                match given {
                    (SUCCESS, Some(adapter)) => never(test_host, || {
                        c::close_adapter(adapter);
                        Ok(SUCCESS)
                    }),
                    (status, None) if status != SUCCESS => Ok(status),
                    (_, _) => Err(EPROTO),
                }
            })?;
            // The handle, and the allocations of the Rust form.
            assert!(struck.is_by(4, 0, 0));
            Ok(())
        })
    }

    #[test]
    fn ndk_gen_07_creating_fails_inline_and_through_the_completion() -> Result {
        if !has_faults()? {
            return Ok(());
        }
        on_site(|test_host| {
            let (status, adapter) = c::open(&test_host.context, NAME);
            let adapter = adapter.filter(|_| status == SUCCESS).ok_or(EIO)?;
            // Outside of the counts: the first region allocates a table, which may be large.
            let pd = made(test_host, |log| c::create_pd(adapter, log))?;
            let first = made(test_host, |log| c::create_mw(pd, log))?;
            let cq = made(test_host, |log| c::create_cq(adapter, 64, log))?;
            let srq = made(test_host, |log| c::create_srq(pd, log))?;
            let arrivals = c::CallbackLog::new()?;
            // Inline: the handle comes on top of the allocations of the Rust form.
            assert!(creates(test_host, |t| c::create_pd(adapter, t))?.is_by(3, 0, 0));
            assert!(creates(test_host, |t| c::create_mr(pd, true, t))?.is_by(2, 0, 0));
            let struck = creates(test_host, |t| c::create_connector(adapter, t))?;
            assert!(struck.is_by(3, 0, 0));
            // The event as well.
            let struck = creates(test_host, |t| c::create_listener(adapter, &arrivals, t))?;
            assert!(struck.is_by(4, 0, 0));
            // Pending: handle and completion, and the work.
            assert!(creates(test_host, |t| c::create_mw(pd, t))?.is_by(3, 2, 0));
            let struck = creates(test_host, |t| {
                c::create_shared_endpoint(adapter, &here(0), t)
            })?;
            assert!(struck.is_by(3, 3, 0));
            // The event as well.
            assert!(creates(test_host, |t| c::create_cq(adapter, 16, t))?.is_by(4, 6, 1));
            assert!(creates(test_host, |t| c::create_srq(pd, t))?.is_by(4, 7, 2));
            assert!(creates(test_host, |t| c::create_qp(pd, cq, None, t))?.is_by(3, 9, 5));
            let struck = creates(test_host, |t| c::create_qp(pd, cq, Some(srq), t))?;
            assert!(struck.is_by(3, 10, 4));
            for object in [srq, cq, first, pd] {
                close(test_host, object)?;
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
        on_site(|test_host| {
            let (status, adapter) = c::open(&test_host.context, NAME);
            let adapter = adapter.filter(|_| status == SUCCESS).ok_or(EIO)?;
            let pd = made(test_host, |log| c::create_pd(adapter, log))?;
            let mr = made(test_host, |log| c::create_mr(pd, false, log))?;
            let buffer = PageBuffer::plain(2 * PAGE)?;
            let described = Described::new(&buffer.bytes)?;
            let struck = everywhere(test_host, |strike| {
                match ended(strike, |log| c::register(mr, &described, 100, log))? {
                    SUCCESS => ended(&mut Strike::none(test_host), |log| c::deregister(mr, log)),
                    status => Ok(status),
                }
            })?;
            // The completion and the work; the pieces, which survive one failure.
            assert!(struck.is_by(2, 1, 1));
            let struck = everywhere(test_host, |strike| {
                let fast = made(test_host, |log| c::create_mr(pd, true, log))?;
                let status = ended(strike, |log| c::initialize(fast, 4, log))?;
                close(test_host, fast)?;
                Ok(status)
            })?;
            assert!(struck.is_by(2, 2, 2));
            let cq = made(test_host, |log| c::create_cq(adapter, 8, log))?;
            let struck = everywhere(test_host, |strike| {
                ended(strike, |log| c::resize(cq, 16, log))
            })?;
            assert!(struck.is_by(2, 1, 1));
            let srq = made(test_host, |log| c::create_srq(pd, log))?;
            let struck = everywhere(test_host, |strike| {
                ended(strike, |log| c::modify(srq, 8, log))
            })?;
            assert!(struck.is_by(2, 2, 2));
            let arrivals = c::CallbackLog::new()?;
            let struck = everywhere(test_host, |strike| {
                let listener = made(test_host, |t| c::create_listener(adapter, &arrivals, t))?;
                let status = ended(strike, |log| c::listen(listener, &here(0), log))?;
                close(test_host, listener)?;
                Ok(status)
            })?;
            assert!(struck.is_by(2, 4, 0));
            for object in [srq, cq, mr, pd] {
                close(test_host, object)?;
            }
            c::close_adapter(adapter);
            Ok(())
        })
    }

    /// Faults in the work of a connection are those of the Rust form: `ndk_kunit_ndk_oom_connect`.
    #[test]
    fn each_step_of_a_connection_may_be_refused_and_made_again() -> Result {
        if !has_faults()? {
            return Ok(());
        }
        on_site(|test_host| {
            let (status, adapter) = c::open(&test_host.context, NAME);
            let adapter = adapter.filter(|_| status == SUCCESS).ok_or(EIO)?;
            let pd = made(test_host, |log| c::create_pd(adapter, log))?;
            let cq = made(test_host, |log| c::create_cq(adapter, 64, log))?;
            let arrivals = c::CallbackLog::new()?;
            let listener = made(test_host, |t| c::create_listener(adapter, &arrivals, t))?;
            let mut none = Strike::none(test_host);
            kunit_assert_eq!(
                ended(&mut none, |log| c::listen(listener, &here(0), log))?,
                SUCCESS
            );
            let shared = made(test_host, |t| {
                c::create_shared_endpoint(adapter, &here(0), t)
            })?;
            let base = Base {
                adapter,
                pd,
                cq,
                listener,
                arrivals,
            };
            for (shared, ex) in [(None, false), (Some(shared), true)] {
                let struck = everywhere(test_host, |strike| {
                    let log = [
                        c::CallbackLog::new()?,
                        c::CallbackLog::new()?,
                        c::CallbackLog::new()?,
                        c::CallbackLog::new()?,
                    ];
                    let connected = connect(strike, &base, shared, ex, &log);
                    if connected.is_err() {
                        // A pending call may still report to the logs.
                        core::mem::forget(log);
                    }
                    connected
                })?;
                // An accept takes the most: data, event, completion and work.
                assert!(struck.is_by(4, 0, 0));
            }
            for object in [shared, listener, cq, pd] {
                close(test_host, object)?;
            }
            c::close_adapter(adapter);
            Ok(())
        })
    }

    /// A connect request is refused when there is no memory for the connector of its event.
    #[test]
    fn a_request_without_memory_for_its_connector_is_turned_away() -> Result {
        if !has_faults()? {
            return Ok(());
        }
        on_site(|test_host| {
            let test_side = TestSide::new(&test_host.adapter, 1, SIZES)?;
            let ours = test_host
                .adapter
                .create_connector()
                .map(AutoClose::new)
                .map_err(log_status)?;
            for n in cases([1, 2]) {
                let open_listener = OpenListener::new(&test_host.adapter)?;
                let arrivals = c::CallbackLog::new()?;
                let slot = CallbackValue::new()?;
                let to = (Source::Address(here(0)), open_listener.at);
                let asking = ours.connect(&test_side.qp, to, READS, KVec::new(), slot.callback()?);
                assert!(asking.is_ok());
                let theirs = open_listener.arrivals.wait().ok_or(ETIMEDOUT)?;
                let mut struck = false;
                c::notify_request(&arrivals, theirs, |notify| {
                    let guard = FailNth::new(n);
                    notify();
                    struck = guard.as_ref().is_some_and(FailNth::struck);
                })?;
                // The event allocates the handle only.
                kunit_assert_eq!(struck, n == 1);
                kunit_assert_eq!(arrivals.calls(), u32::from(n != 1));
                if let Some(theirs) = arrivals.object() {
                    close(test_host, theirs)?;
                }
                kunit_assert_eq!(slot.wait(), Some(NtStatus::of(Status::Refused)));
            }
            Ok(())
        })
    }
}
