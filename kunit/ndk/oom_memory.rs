// SPDX-License-Identifier: GPL-2.0

//! Regions, windows and queues without memory, and requests on them.

use kernel::prelude::*;

use super::{
    completion::{
        log_status,
        AutoClose, //
    },
    host::{
        pd,
        TestHost, //
    },
    memory::{
        PageBuffer,
        PAGE, //
    },
    oom::{
        everywhere,
        has_faults,
        never,
        Strike, //
    },
    pair::Pair, //
};
use crate::{
    kunit::harness::cases,
    ndk::{
        abi::numbers::{
            mr_flags,
            op_flags, //
        },
        memory::FastRegistration,
        srq::SrqSizes,
        status::NtStatus, //
    },
    sys::mdl::{
        test_pages,
        Described, //
    }, //
};

const SUCCESS: i32 = NtStatus::SUCCESS.raw();

/// The status of a post.
fn raw(posted: Result<(), NtStatus>) -> i32 {
    posted.map_or_else(NtStatus::raw, |()| SUCCESS)
}

/// Waits for the invalidation with context 99; `posted` is the answer to its post.
fn tidy(pair: &Pair, posted: Result<(), NtStatus>) -> Result {
    posted.map_err(log_status)?;
    match pair.a.requests.next_is(99, NtStatus::SUCCESS) {
        true => Ok(()),
        false => Err(EPROTO),
    }
}

#[kernel::macros::kunit_tests(ndk_kunit_ndk_oom_memory)]
mod tests {
    use super::*;

    #[test]
    fn ndk_gen_07_registering_fails_inline_and_through_its_completion() -> Result {
        if !has_faults()? {
            return Ok(());
        }
        let test_host = TestHost::new()?;
        let domain = pd(&test_host.adapter)?;
        // The pieces of few pages are described in less than a page, those of many in several
        // pages.
        for pages in cases([4, 1024]) {
            let buffer = PageBuffer::plain(pages * PAGE)?;
            let described = Described::new(&buffer.bytes)?;
            // CAST: widening.
            let len = buffer.bytes.len() as u64;
            let mr = domain
                .create_mr(false)
                .map(AutoClose::new)
                .map_err(log_status)?;
            let struck = everywhere(&test_host, |strike| {
                let status = strike.request(|done| mr.register(described.mdl(), len, 1, done))?;
                if status != SUCCESS {
                    kunit_assert_eq!(mr.local_token().raw(), 0);
                    return Ok(status);
                }
                assert!(mr.local_token().raw() != 0);
                let mut none = Strike::none(strike.test_host);
                none.request(|done| mr.deregister(done))
            })?;
            assert!(struck.is_by(1, 1, 1));
        }
        Ok(())
    }

    /// A deregistration that fails for want of memory leaves the region registered.
    #[test]
    fn deregistering_fails_at_each_allocation() -> Result {
        if !has_faults()? {
            return Ok(());
        }
        let test_host = TestHost::new()?;
        let domain = pd(&test_host.adapter)?;
        let buffer = PageBuffer::plain(PAGE)?;
        let mr = domain
            .create_mr(false)
            .map(AutoClose::new)
            .map_err(log_status)?;
        let struck = everywhere(&test_host, |strike| {
            if mr.local_token().raw() == 0 {
                kunit_assert_eq!(
                    buffer.register(&mr, mr_flags::LOCAL_WRITE)?,
                    NtStatus::SUCCESS
                );
            }
            let status = strike.request(|done| mr.deregister(done))?;
            let is_idle = mr.local_token().raw() == 0;
            kunit_assert_eq!(is_idle, status == SUCCESS);
            Ok(status)
        })?;
        assert!(struck.is_by(1, 0, 0));
        Ok(())
    }

    #[test]
    fn initializing_fails_at_each_allocation() -> Result {
        if !has_faults()? {
            return Ok(());
        }
        let test_host = TestHost::new()?;
        let domain = pd(&test_host.adapter)?;
        for pages in cases([4, 1024]) {
            let struck = everywhere(&test_host, |strike| {
                let mr = domain
                    .create_mr(true)
                    .map(AutoClose::new)
                    .map_err(log_status)?;
                let status = strike.request(|done| mr.initialize(pages, true, done))?;
                if status != SUCCESS {
                    // The same region may be tried again.
                    let mut none = Strike::none(strike.test_host);
                    kunit_assert_eq!(
                        none.request(|done| mr.initialize(pages, true, done))?,
                        SUCCESS
                    );
                }
                Ok(status)
            })?;
            assert!(struck.is_by(1, 2, 2));
        }
        Ok(())
    }

    /// A queue that could not be resized keeps its depth and works.
    #[test]
    fn resizing_queues_fails_at_each_allocation() -> Result {
        if !has_faults()? {
            return Ok(());
        }
        let test_host = TestHost::new()?;
        let domain = pd(&test_host.adapter)?;
        let sizes = SrqSizes {
            depth: 8,
            sges: 1,
            threshold: 0,
        };
        for depth in cases([16, 2048]) {
            let queue = test_host.queue(8)?;
            let struck = everywhere(&test_host, |strike| {
                let status = strike.request(|done| queue.cq.resize(depth, done))?;
                if status == SUCCESS {
                    let mut none = Strike::none(strike.test_host);
                    kunit_assert_eq!(none.request(|done| queue.cq.resize(8, done))?, SUCCESS);
                }
                Ok(status)
            })?;
            assert!(struck.is_by(1, 1, 1));
            // Posted receives stay in their queue: each run has its own queue.
            let struck = everywhere(&test_host, |strike| {
                let mut none = Strike::none(strike.test_host);
                let srq = none.create(|done| domain.create_srq(sizes, None, done))?;
                let srq = srq.map_err(|_| EIO)?;
                let status = strike.request(|done| srq.modify(depth, 0, done))?;
                // Room for exactly eight receives, unless the queue was resized.
                let posts = (0..9).take_while(|_| srq.receive(0, [].into_iter()).is_ok());
                kunit_assert_eq!(posts.count(), if status == SUCCESS { 9 } else { 8 });
                Ok(status)
            })?;
            assert!(struck.is_by(1, 2, 2));
        }
        Ok(())
    }

    /// The second registration that waits has no list of its own yet.
    #[test]
    fn fast_registering_fails_at_each_allocation() -> Result {
        if !has_faults()? {
            return Ok(());
        }
        let pair = Pair::new()?;
        let (qp, test_host) = (&pair.a.qp, &pair.test_host);
        let flags = op_flags::ALLOW_LOCAL_WRITE;
        let hidden = op_flags::SILENT_SUCCESS | op_flags::DEFER;
        let struck = everywhere(test_host, |strike| {
            let buffer = PageBuffer::fast(&pair.a.pd, 2 * PAGE, false)?;
            let mr = buffer.mr()?;
            let pages = buffer.pages()?;
            let what = FastRegistration {
                pages: test_pages(&pages),
                offset: 0,
                // CAST: widening.
                len: buffer.bytes.len() as u64,
                base: buffer.addr(),
            };
            let chain = |last: u64| {
                qp.fast_register(1, mr, &what, flags | hidden)?;
                qp.invalidate_mr(2, mr, hidden)?;
                qp.fast_register(last, mr, &what, flags)
            };
            let (posted, _) = strike.inline(|| chain(3));
            if posted.is_err() {
                // The accepted requests are carried out, and the same region serves again.
                test_host.flush_work();
                assert!(pair.a.requests.poll().is_none());
                chain(3).map_err(log_status)?;
            }
            assert!(pair.a.requests.next_is(3, NtStatus::SUCCESS));
            tidy(&pair, qp.invalidate_mr(99, mr, 0))?;
            Ok(raw(posted))
        })?;
        // A place for each of the two staged mappings, and the second mapping, which is made in
        // atomic context and so not tried twice.
        assert!(struck.is_by(3, 0, 0));
        Ok(())
    }

    #[test]
    fn binding_fails_at_each_allocation() -> Result {
        if !has_faults()? {
            return Ok(());
        }
        let pair = Pair::new()?;
        let (qp, test_host) = (&pair.a.qp, &pair.test_host);
        let buffer = pair.a.buffer(PAGE, mr_flags::REMOTE_WRITE)?;
        let mr = buffer.mr()?;
        let range = (buffer.addr(), 100);
        let struck = everywhere(test_host, |strike| {
            let mut none = Strike::none(strike.test_host);
            let window = none.create(|done| pair.a.pd.create_mw(done))?;
            let window = window.map_err(|_| EIO)?;
            let before = window.remote_token();
            let bind = || qp.bind(1, mr, &window, range, op_flags::ALLOW_REMOTE_READ);
            let (posted, _) = strike.inline(bind);
            if posted.is_err() {
                kunit_assert_eq!(window.remote_token(), before);
                assert!(pair.a.requests.stays_empty());
                bind().map_err(log_status)?;
            }
            assert!(pair.a.requests.next_is(1, NtStatus::SUCCESS));
            assert!(window.remote_token() != before);
            tidy(&pair, qp.invalidate_mw(99, &window, 0))?;
            Ok(raw(posted))
        })?;
        assert!(struck.is_by(1, 0, 0));
        // No window is bound to the region.
        let mut none = Strike::none(test_host);
        test_host.flush_work();
        kunit_assert_eq!(none.request(|done| mr.deregister(done))?, SUCCESS);
        Ok(())
    }

    /// Messages, one-sided transfers and their results need no memory.
    #[test]
    fn posting_and_polling_need_no_memory() -> Result {
        if !has_faults()? {
            return Ok(());
        }
        let pair = Pair::new()?;
        let source = pair.a.buffer(PAGE, mr_flags::LOCAL_WRITE)?;
        let sink = pair
            .b
            .buffer(PAGE, mr_flags::REMOTE_WRITE | mr_flags::REMOTE_READ)?;
        let (from, to, far) = (source.sge(0, 100)?, sink.sge(0, 100)?, sink.remote(200)?);
        never(&pair.test_host, || {
            pair.b.requests.cq.arm(1);
            pair.b.receive(1, &[to])?;
            pair.a.send(2, &[from], 0)?;
            assert!(pair.a.requests.next_is(2, NtStatus::SUCCESS));
            assert!(pair.b.receives.next_is(1, NtStatus::SUCCESS));
            let list = [from];
            let sges = || list.iter().copied();
            pair.a.qp.write(3, sges(), far, 0).map_err(log_status)?;
            assert!(pair.a.requests.next_is(3, NtStatus::SUCCESS));
            pair.a.qp.read(4, sges(), far, 0).map_err(log_status)?;
            assert!(pair.a.requests.next_is(4, NtStatus::SUCCESS));
            pair.a.receive(5, &[from])?;
            pair.a.qp.flush();
            assert!(pair.a.receives.next_is(5, NtStatus::CANCELLED));
            Ok(())
        })
    }
}
