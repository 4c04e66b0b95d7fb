// SPDX-License-Identifier: GPL-2.0

//! Remote invalidation against a peer that writes from another processor (SINV-06).
//!
//! ```text
//!   stream    other processor, softirq --- writes ---> \
//!                                                       memory of the owner
//!   control   a --- sends with invalidation ---> b     /
//! ```
//!
//! In each round the owner registers the memory, lets the stream write, and has the token
//! invalidated by a message of the control connection. Once the owner sees the completion, no byte
//! may change. The invalidation breaks the stream, which is made anew.

use kernel::{
    new_spinlock_irq,
    prelude::*,
    sync::{
        atomic::{
            ordering::{
                Acquire,
                Release, //
            },
            Atomic, //
        },
        Arc,
        SpinLockIrq, //
    }, //
};

use super::{
    completion::{
        log_status,
        request,
        AutoClose, //
    },
    host::{
        qp,
        SIZES, //
    },
    memory::{
        PageBuffer,
        PAGE, //
    },
    pair::{
        connect,
        Pair,
        TestSide,
        READS, //
    },
    remote::{
        NOTHING,
        REMOTE_RESOURCES, //
    }, //
};
use crate::{
    engine::memory::tests::RawBuffer as Memory,
    kunit::race::race_harness::{
        linger,
        two_cpus,
        wait_for,
        Course,
        Tally,
        Threads,
        LEAST,
        LOOKS, //
    },
    ndk::{
        abi::numbers::{
            op_flags::*,
            operation, //
        },
        cq::Cq,
        life::Ref,
        memory::{
            FastRegistration,
            Mr, //
        },
        qp::Qp,
        status::NtStatus, //
    },
    rdma::values::{
        token::Token,
        work::RemoteAddr, //
    },
    sys::{
        mdl::test_pages,
        sge::Sge, //
    }, //
};

/// The byte that the owner writes into the memory after the completion.
const SECRET: u8 = 0xEE;
/// The byte that the stream writes.
const INK: u8 = 0xA5;

const SIZE: usize = 4 * PAGE;

/// The most rounds.
const ROUNDS: u64 = 1_000;

/// The active end of the stream, as the other processor uses it.
#[derive(Clone)]
struct Feed {
    qp: Ref<Qp>,
    cq: Ref<Cq>,
    to: RemoteAddr,
}

#[pin_data]
struct Stream {
    #[pin]
    feed: SpinLockIrq<Option<Feed>>,
    ink: Sge,
    posted: Tally,
    written: Tally,
    refused: Tally,
    /// Writes that ended with a status other than success, a refusal or a cancellation.
    errors: Tally,
    /// The number of completed turns.
    turns: Atomic<u32>,
}

impl Stream {
    /// Takes the results, and posts writes until one is refused, four at most. In softirq.
    fn turn(&self) {
        self.work();
        let turns = self.turns.load(Acquire);
        self.turns.store(turns.wrapping_add(1), Release);
    }

    fn work(&self) {
        let Some(feed) = self.feed.lock().clone() else {
            return;
        };
        feed.cq.results(64, |result| {
            match result.status {
                NtStatus::SUCCESS => self.written.hit(),
                REMOTE_RESOURCES => self.refused.hit(),
                NtStatus::CANCELLED => 0,
                _ => self.errors.hit(),
            };
        });
        for _ in 0..4 {
            let n = self.posted.hit();
            // Another piece each time, up to the end.
            // CAST: below the size.
            let offset = (n.wrapping_mul(7919) % u64::from(self.ink.len())) as u32;
            let len = self.ink.len() - offset;
            let sge = Sge::new(self.ink.addr(), len, self.ink.token());
            let to = RemoteAddr {
                addr: feed.to.addr + u64::from(offset),
                ..feed.to
            };
            if feed.qp.write(n, [sge].into_iter(), to, 0).is_err() {
                break;
            }
        }
    }
}

/// The result of a race.
#[derive(Debug)]
struct Score {
    rounds: u64,
    changed: u64,
    written: u64,
    refused: u64,
    errors: u64,
}

/// The objects of a race, except the worker.
struct Scene {
    stream: Arc<Stream>,
    active: TestSide,
    passive: TestSide,
    mr: AutoClose<Mr>,
    _ink: PageBuffer,
    pair: Pair,
    // Dropped last.
    memory: Memory,
}

impl Scene {
    fn new() -> Result<Self> {
        let pair = Pair::new()?;
        let active = TestSide::new(&pair.test_host.adapter, 0xC, SIZES)?;
        let passive = TestSide::new(&pair.test_host.adapter, 0xD, SIZES)?;
        let mut ink = active.buffer(SIZE, 0)?;
        ink.bytes.fill(INK);
        let mr = pair
            .b
            .pd
            .create_mr(true)
            .map(AutoClose::new)
            .map_err(log_status)?;
        // CAST: a test's size.
        let pages = (SIZE / PAGE) as u32;
        match request(|done| mr.initialize(pages, true, done))? {
            NtStatus::SUCCESS => (),
            status => return Err(log_status(status)),
        }
        // CAST: a test's size.
        let sge = ink.sge(0, SIZE as u32)?;
        let stream = Arc::pin_init(
            pin_init!(Stream {
                feed <- new_spinlock_irq!(None),
                ink: sge,
                posted: Tally::new(),
                written: Tally::new(),
                refused: Tally::new(),
                errors: Tally::new(),
                turns: Atomic::new(0),
            }),
            GFP_KERNEL,
        )?;
        Ok(Self {
            stream,
            active,
            passive,
            mr,
            memory: Memory::new(SIZE)?,
            _ink: ink,
            pair,
        })
    }

    /// Registers the memory; returns its token.
    fn open(&self) -> Result<Token> {
        let mut pages = KVec::new();
        for at in 0..SIZE / PAGE {
            pages.push(self.memory.addr(at * PAGE), GFP_KERNEL)?;
        }
        let what = FastRegistration {
            pages: test_pages(&pages),
            offset: 0,
            // CAST: widening.
            len: SIZE as u64,
            base: self.memory.addr(0),
        };
        let owner = &self.pair.b;
        let posted = owner
            .qp
            .fast_register(1, &self.mr, &what, ALLOW_REMOTE_WRITE);
        posted.map_err(log_status)?;
        match owner.requests.next_is(1, NtStatus::SUCCESS) {
            true => Ok(self.mr.remote_token()),
            false => Err(EIO),
        }
    }

    /// Makes the stream anew and lets it write under `token`.
    fn start(&mut self, token: Token) -> Result {
        let adapter = &self.pair.test_host.adapter;
        let (active, passive) = (&mut self.active, &mut self.passive);
        active.qp = qp(&active.pd, &active.receives, &active.requests, 0xC, SIZES)?;
        passive.qp = qp(
            &self.pair.b.pd,
            &passive.receives,
            &passive.requests,
            0xD,
            SIZES,
        )?;
        let (ours, theirs) = connect(
            adapter,
            &self.pair.open_listener,
            (active, READS),
            (passive, READS),
        )?;
        active.connector = Some(ours);
        passive.connector = Some(theirs);
        *self.stream.feed.lock() = Some(Feed {
            qp: (*active.qp).clone(),
            cq: (*active.requests.cq).clone(),
            to: RemoteAddr {
                addr: self.memory.addr(0),
                token,
            },
        });
        Ok(())
    }

    /// Ends the stream, and waits until its worker does not use it any more.
    fn stop(&mut self) -> Result {
        let feed = self.stream.feed.lock().take();
        drop(feed);
        let turns = self.stream.turns.load(Acquire);
        wait_for(|| self.stream.turns.load(Acquire).wrapping_sub(turns) >= 2)?;
        self.active.connector = None;
        self.passive.connector = None;
        Ok(())
    }

    /// Has the token invalidated; returns as soon as the completion is visible.
    fn be_invalidated(&self, token: Token) -> Result {
        let (a, b) = (&self.pair.a, &self.pair.b);
        b.receive(7, &[])?;
        let sent =
            a.qp.send_and_invalidate(8, NOTHING.into_iter(), SILENT_SUCCESS, token);
        sent.map_err(log_status)?;
        let mut found = None;
        wait_for(|| {
            found = b.receives.poll();
            found.is_some()
        })?;
        let got = found.ok_or(ETIMEDOUT)?;
        let fine = got.status == NtStatus::SUCCESS
            && got.operation == operation::RECEIVE_AND_INVALIDATE
            && got.output == token.raw();
        match fine {
            true => Ok(()),
            false => Err(EIO),
        }
    }

    /// Returns the number of looks that find the memory changed while it must not change.
    fn watch(&self) -> u64 {
        self.memory.fill(SECRET);
        (0..LOOKS).fold(0, |changed, _| {
            changed + u64::from(!self.memory.is(0, SIZE, SECRET))
        })
    }
}

fn race() -> Result<Score> {
    let mut scene = Scene::new()?;
    let mut threads = Threads::new()?;
    let stream = scene.stream.clone();
    threads.on(two_cpus()[1], move || stream.turn())?;
    let (mut rounds, mut changed) = (0, 0);
    let course = Course::new();
    while rounds < ROUNDS && course.goes_on(rounds >= LEAST) {
        scene.memory.fill(0);
        let token = scene.open()?;
        let before = scene.stream.written.get();
        scene.start(token)?;
        wait_for(|| scene.stream.written.get() > before)?;
        linger(rounds);
        scene.be_invalidated(token)?;
        changed += scene.watch();
        // The next write of the stream is refused.
        wait_for(|| scene.stream.refused.get() > rounds)?;
        scene.stop()?;
        changed += u64::from(!scene.memory.is(0, SIZE, SECRET));
        rounds += 1;
    }
    threads.dismiss();
    let stream = &scene.stream;
    let score = Score {
        rounds,
        changed,
        written: stream.written.get(),
        refused: stream.refused.get(),
        errors: stream.errors.get(),
    };
    pr_info!("race: {:?}\n", score);
    Ok(score)
}

#[kernel::macros::kunit_tests(ndk_kunit_ndk_send_invalidate_race)]
mod tests {
    use super::*;

    #[test]
    fn ndk_sinv_06_no_byte_changes_once_the_completion_is_visible() -> Result {
        let score = race()?;
        assert!(score.rounds >= LEAST);
        kunit_assert_eq!(score.changed, 0);
        kunit_assert_eq!(score.errors, 0);
        // In each round the stream has written, and was then refused.
        assert!(score.written >= score.rounds);
        assert!(score.refused >= score.rounds);
        Ok(())
    }

    #[test]
    fn ndk_sinv_06_the_token_is_void_when_the_completion_is_visible() -> Result {
        use crate::ndk::tests::remote::{
            beside,
            opened,
            write_one, //
        };
        for _ in 0..8 {
            let pair = Pair::new()?;
            let (other, _there) = beside(&pair)?;
            let memory = opened(&pair.b, 4096)?;
            let to = memory.remote(0)?;
            pair.b.receive(1, &[])?;
            let none = NOTHING.into_iter();
            let sent = pair.a.qp.send_and_invalidate(2, none, 0, to.token);
            // The write comes right after the completion is visible.
            let got = pair.b.receives.next()?;
            let status = write_one(&other, to)?;
            assert!(sent.is_ok());
            kunit_assert_eq!(got.output, to.token.raw());
            kunit_assert_eq!(status, REMOTE_RESOURCES);
            kunit_assert_eq!(memory.bytes[0], 0);
        }
        Ok(())
    }
}
