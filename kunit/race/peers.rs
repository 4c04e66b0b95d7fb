// SPDX-License-Identifier: GPL-2.0

//! Two peers at work on a region from two processors while its owner ends their access, through
//! queue pairs and the transport of one host.
//!
//! ```text
//!   stream 0   active end ---- writes, reads ----> passive end \
//!   stream 1   active end ---- writes, reads ----> passive end -- region of the owner
//!   control    friend     ---- sends, is read ---> owner       /
//! ```
//!
//! In each round the owner registers the region under the next key and lets the streams work.
//! Then it ends their access in one of the ways of [`Ending`]. As soon as it has the completion,
//! or the call has returned, the memory is its own: no byte may change, and none may get out.
//! The streams break on the way, as they should, and are made anew for the next round.

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
    race_harness::{
        linger,
        two_cpus,
        wait_for,
        Course,
        Tally,
        Threads,
        LEAST,
        LOOKS, //
    },
    INK,
    PUBLIC,
    RIGHTS,
    SECRET, //
};
use crate::{
    engine::{
        cq::CompletionQueue,
        domain::Domain,
        memory::{
            spans::SpanList,
            tests::RawBuffer, //
        },
        qp::QueuePair, //
    },
    kunit::{
        harness::{
            connect,
            connect_pair,
            End,
            EndAttr,
            EngineHost,
            RNR_MS, //
        },
        queues::Queue, //
    },
    rdma::values::{
        completion::Wc,
        status::Status,
        token::Token,
        work::{
            RemoteAddr,
            SendFlag,
            SendOp,
            SendWith, //
        }, //
    },
    sys::sge::Sge, //
};

const BASE: u64 = 0x6000_0000_0303;

/// The region: odd pieces of the buffer, and their bytes.
const PIECES: [(usize, usize); 4] = [(1, 4095), (5000, 1), (6000, 2000), (8192, 24_000)];
const LEN: u32 = 30_096;
const SIZE: usize = 32_768;

/// The most rounds of one race.
const ROUNDS: u64 = 10_000;

/// Requests that a stream has under way.
const DEPTH: u32 = 6;

/// A step with which the owner ends access, and the event that shows the end.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ending {
    /// A local invalidation over the control connection; its completion.
    LocalInvalidate,
    /// A local invalidation through the passive end of the one stream that there is; its
    /// completion, flushed or not.
    OwnInvalidate,
    /// A send with invalidate from the friend; the completion of the receive.
    SendInvalidate,
    /// A read from the friend that invalidates its sink, which is the region; its completion.
    ReadInvalidate,
    /// The removal of the region; its return.
    Remove,
    /// Both queues of the passive ends in error and drained, the region valid as before.
    Drain,
    /// The passive ends destroyed, the region valid as before.
    Destroy,
}

impl Ending {
    fn streams(self) -> usize {
        match self {
            Self::OwnInvalidate => 1,
            _ => 2,
        }
    }

    /// Returns true if the token is invalid afterwards.
    fn revokes(self) -> bool {
        !matches!(self, Self::Drain | Self::Destroy)
    }
}

/// The active end of a stream, as its worker uses it.
#[derive(Clone)]
struct Feed {
    qp: Arc<QueuePair>,
    cq: Arc<CompletionQueue>,
}

/// One stream: works on the region as long as it has a queue pair.
#[pin_data]
struct Stream {
    #[pin]
    feed: SpinLockIrq<Option<Feed>>,
    /// The token in force.
    token: Arc<Atomic<u32>>,
    ink: RawBuffer,
    sink: RawBuffer,
    posted: Tally,
    writes: Tally,
    reads: Tally,
    /// Requests that ended in another way than success, a refusal or a flush.
    odd: Tally,
    leaks: Tally,
}

impl Stream {
    fn new(token: Arc<Atomic<u32>>) -> Result<Arc<Self>> {
        let (ink, sink) = (RawBuffer::new(SIZE)?, RawBuffer::new(SIZE)?);
        ink.fill(INK);
        let init = pin_init!(Self {
            feed <- new_spinlock_irq!(None),
            token,
            ink,
            sink,
            posted: Tally::new(),
            writes: Tally::new(),
            reads: Tally::new(),
            odd: Tally::new(),
            leaks: Tally::new(),
        });
        Arc::pin_init(init, GFP_KERNEL)
    }

    fn request(&self, n: u64) -> (SendOp, Sge) {
        // CAST: below `LEN`.
        let offset = (n.wrapping_mul(7919) % u64::from(LEN)) as u32;
        let most = u64::from(LEN - offset);
        // CAST: at most `LEN`.
        let len = 1 + (n.wrapping_mul(104_729) % most) as u32;
        let there = RemoteAddr {
            addr: BASE + u64::from(offset),
            token: Token::from_raw(self.token.load(Acquire)),
        };
        match n % 3 {
            0 => (
                SendOp::Read {
                    from: there,
                    invalidate: None,
                },
                self.sink.sge(0, len),
            ),
            _ => (
                SendOp::Write {
                    to: there,
                    imm: None,
                },
                self.ink.sge(0, len),
            ),
        }
    }

    /// Takes the completions, and posts as long as there is room.
    fn turn(&self) {
        let Some(feed) = self.feed.lock().clone() else {
            return;
        };
        feed.cq.poll(64, |entry| {
            match entry.status {
                Status::Success if entry.context.raw() % 3 == 0 => self.reads.hit(),
                Status::Success => self.writes.hit(),
                Status::Flushed | Status::RemoteAccess => 0,
                _ => self.odd.hit(),
            };
        });
        if self.sink.count(0, SIZE, |b| b == SECRET) > 0 {
            self.leaks.hit();
            self.sink.fill(0);
        }
        for _ in 0..DEPTH {
            let n = self.posted.hit();
            let (work, sge) = self.request(n);
            let sges = core::iter::once(sge);
            if feed.qp.post(n, work, SendFlag::Signaled, sges).is_err() {
                break;
            }
            feed.qp.ring_doorbell();
        }
    }
}

/// The result of a race.
#[derive(Clone, Copy, Debug)]
struct Score {
    rounds: u64,
    /// Rounds in which the completion was a success.
    completed: u64,
    writes: u64,
    reads: u64,
    changed: u64,
    leaks: u64,
    odd: u64,
}

impl Score {
    fn is_clean(&self) -> bool {
        self.rounds >= LEAST && self.changed == 0 && self.leaks == 0 && self.odd == 0
    }
}

/// All that takes part, but for the streams' workers.
struct Scene {
    streams: KVec<Arc<Stream>>,
    /// The present active and passive ends of the streams.
    ends: KVec<(End, End)>,
    friend: End,
    owner: End,
    memory: Arc<RawBuffer>,
    scratch: Arc<RawBuffer>,
    region: Token,
    token: Arc<Atomic<u32>>,
    attr: EndAttr,
    // Dropped last.
    engine_host: EngineHost,
}

impl Scene {
    fn new(ending: Ending) -> Result<Self> {
        let engine_host = EngineHost::new(RNR_MS)?;
        let mut attr = EndAttr::deep(DEPTH + 2, 4);
        // A worker that is late looks at its queue only after many posts.
        attr.send_entries = 1024;
        let (friend, owner) = (
            engine_host.end(&EndAttr::PLAIN)?,
            engine_host.end(&EndAttr::PLAIN)?,
        );
        connect(connect_pair, &friend, &owner)?;
        let token = Arc::new(Atomic::new(0), GFP_KERNEL)?;
        let mut streams = KVec::new();
        for _ in 0..ending.streams() {
            streams.push(Stream::new(token.clone())?, GFP_KERNEL)?;
        }
        let memory = Arc::new(RawBuffer::new(SIZE)?, GFP_KERNEL)?;
        let region = add_region(&owner.domain, &memory)?;
        Ok(Self {
            streams,
            ends: KVec::new(),
            friend,
            owner,
            memory,
            scratch: Arc::new(RawBuffer::new(SIZE)?, GFP_KERNEL)?,
            region,
            token,
            attr,
            engine_host,
        })
    }

    /// Lets the first stream work in softirq on another processor, the second in a thread.
    fn start(&self) -> Result<Threads> {
        let mut threads = Threads::new()?;
        for (n, stream) in self.streams.iter().enumerate() {
            let stream = stream.clone();
            match n {
                0 => threads.on(two_cpus()[1], move || stream.turn())?,
                _ => threads.thread(move || stream.turn())?,
            }
        }
        Ok(threads)
    }

    /// Makes the streams anew.
    fn connect_streams(&mut self) -> Result {
        for stream in &self.streams {
            let active = self
                .engine_host
                .end_in(&self.friend.domain, &self.attr, None)?;
            let passive = self
                .engine_host
                .end_in(&self.owner.domain, &self.attr, None)?;
            connect(connect_pair, &active, &passive)?;
            let feed = Feed {
                qp: active.qp.clone(),
                cq: active.sends.cq.clone(),
            };
            self.ends.push((active, passive), GFP_KERNEL)?;
            *stream.feed.lock() = Some(feed);
        }
        Ok(())
    }

    /// Takes the streams down.
    fn drop_streams(&mut self) {
        for stream in &self.streams {
            let feed = stream.feed.lock().take();
            drop(feed);
        }
        self.ends.clear();
    }

    fn next_key(&mut self) {
        let key = self.region.key().wrapping_add(1);
        self.region = Token::new(self.region.index(), key).unwrap_or(self.region);
    }

    /// Registers the region under its present token, and notifies the streams.
    fn open(&self) -> Result {
        let work = SendOp::RegMr {
            token: self.region,
            base: BASE,
            len: u64::from(LEN),
            rights: RIGHTS,
            staged: None,
        };
        post(&self.owner, work, &[])?;
        succeeded(next(&self.owner.sends)?)?;
        self.token.store(self.region.raw(), Release);
        Ok(())
    }

    /// Waits until each stream has both written and read.
    fn wait_for_work(&self) -> Result {
        for stream in &self.streams {
            let (writes, reads) = (stream.writes.get(), stream.reads.get());
            wait_for(|| stream.writes.get() > writes && stream.reads.get() > reads)?;
        }
        Ok(())
    }

    /// Ends access; returns true if the completion that reports the end is a success.
    fn end(&mut self, ending: Ending) -> Result<bool> {
        let token = self.region;
        let invalidate = SendOp::LocalInv {
            token,
            must_be_valid: true,
        };
        match ending {
            Ending::LocalInvalidate => {
                post(&self.owner, invalidate, &[])?;
                succeeded(next(&self.owner.sends)?)?;
            }
            Ending::OwnInvalidate => return self.invalidate_in_stream(invalidate),
            Ending::SendInvalidate => self.be_invalidated()?,
            Ending::ReadInvalidate => {
                let from = RemoteAddr {
                    addr: self.scratch.addr(0),
                    token: Token::LOCAL_MEMORY,
                };
                let work = SendOp::Read {
                    // The read has no bytes, so no memory of the friend is accessed.
                    from,
                    invalidate: Some(token),
                };
                post(&self.owner, work, &[])?;
                succeeded(next(&self.owner.sends)?)?;
            }
            Ending::Remove => self.owner.device().regions.remove(token.index()),
            Ending::Drain => self.drain()?,
            Ending::Destroy => {
                for (_, passive) in &self.ends {
                    passive.qp.destroy();
                }
            }
        }
        Ok(true)
    }

    fn invalidate_in_stream(&self, invalidate: SendOp) -> Result<bool> {
        let (_, passive) = self.ends.first().ok_or(EINVAL)?;
        post(passive, invalidate, &[])?;
        let entry = next(&passive.sends)?;
        match entry.status {
            Status::Success => Ok(true),
            Status::Flushed => Ok(false),
            _ => Err(EIO),
        }
    }

    /// The friend invalidates the region with a message.
    fn be_invalidated(&self) -> Result {
        let token = self.region;
        self.owner.receive(7, &[self.scratch.sge(0, 64)])?;
        let work = SendOp::Send {
            with: SendWith::Inv(token),
        };
        post(&self.friend, work, &[self.scratch.sge(64, 64)])?;
        let entry = next(&self.owner.receives)?;
        succeeded(entry)?;
        if entry.context.raw() != 7 || entry.with != SendWith::Inv(token) {
            return Err(EIO);
        }
        succeeded(next(&self.friend.sends)?)
    }

    /// Drains the passive ends as `ib_drain_qp()` does.
    fn drain(&self) -> Result {
        let marker = SendOp::Write {
            to: RemoteAddr {
                addr: 0,
                token: Token::from_raw(0),
            },
            imm: None,
        };
        for (_, passive) in &self.ends {
            passive.qp.fail();
            post(passive, marker, &[])?;
            passive.receive(9, &[])?;
            for queue in [&passive.sends, &passive.receives] {
                let entry = next(queue)?;
                if entry.status != Status::Flushed {
                    return Err(EIO);
                }
            }
        }
        Ok(())
    }

    /// Makes the region ready for the next round.
    fn renew(&mut self, ending: Ending) -> Result {
        if ending == Ending::Remove {
            self.region = add_region(&self.owner.domain, &self.memory)?;
            return Ok(());
        }
        if !ending.revokes() || ending == Ending::OwnInvalidate {
            // The region is still valid, or may be if its invalidation was flushed.
            let work = SendOp::LocalInv {
                token: self.region,
                must_be_valid: false,
            };
            post(&self.owner, work, &[])?;
            succeeded(next(&self.owner.sends)?)?;
        }
        self.next_key();
        Ok(())
    }

    /// Returns the number of changes of the owner's memory while it has to stand still.
    fn watch(&self) -> u64 {
        self.memory.fill(SECRET);
        (0..LOOKS).fold(0, |changed, _| {
            changed + u64::from(!self.memory.is(0, SIZE, SECRET))
        })
    }

    fn sum(&self, of: impl Fn(&Stream) -> &Tally) -> u64 {
        self.streams.iter().map(|s| of(s).get()).sum()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.drop_streams();
        let regions = &self.owner.device().regions;
        regions.remove(self.region.index());
    }
}

fn add_region(domain: &Domain, memory: &RawBuffer) -> Result<Token> {
    let regions = &domain.device().regions;
    let token = regions.add_fast(domain.id(), PIECES.len())?;
    let staged = regions.stage(token.index(), |list: &mut SpanList| -> Result {
        for (at, len) in PIECES {
            list.push(memory.part(at, len)?).map_err(|_| ENOSPC)?;
        }
        Ok(())
    });
    staged.ok_or(EINVAL)??;
    Ok(token)
}

fn post(end: &End, work: SendOp, sges: &[Sge]) -> Result {
    end.post(1, work, sges)
}

/// The next completion; waits for it.
fn next(queue: &Queue) -> Result<Wc> {
    let mut found = None;
    wait_for(|| {
        found = queue.poll();
        found.is_some()
    })?;
    found.ok_or(ETIMEDOUT)
}

fn succeeded(entry: Wc) -> Result {
    match entry.status {
        Status::Success => Ok(()),
        status => {
            kunit_note!("race: {:?} ended with {:?}", entry.opcode, status);
            Err(EIO)
        }
    }
}

/// Lets streams and an owner race for the memory of a region.
fn race(ending: Ending) -> Result<Score> {
    let mut scene = Scene::new(ending)?;
    let mut threads = scene.start()?;
    let (mut rounds, mut completed, mut changed) = (0, 0, 0);
    let course = Course::new();
    while rounds < ROUNDS && course.goes_on(rounds >= LEAST) {
        scene.memory.fill(PUBLIC);
        scene.open()?;
        scene.connect_streams()?;
        scene.wait_for_work()?;
        linger(rounds);
        completed += u64::from(scene.end(ending)?);
        changed += scene.watch();
        scene.drop_streams();
        changed += scene.watch();
        scene.renew(ending)?;
        rounds += 1;
    }
    threads.dismiss();
    let score = Score {
        rounds,
        completed,
        writes: scene.sum(|s| &s.writes),
        reads: scene.sum(|s| &s.reads),
        changed,
        leaks: scene.sum(|s| &s.leaks),
        odd: scene.sum(|s| &s.odd),
    };
    pr_info!("race: {:?} {:?}\n", ending, score);
    Ok(score)
}

/// An initiator that is drained: the memory that its requests named stands still.
///
/// Returns the rounds, and the number of changes of the sink of its reads afterwards.
fn drained_initiator() -> Result<(u64, u64)> {
    let mut scene = Scene::new(Ending::Drain)?;
    let mut threads = scene.start()?;
    scene.memory.fill(PUBLIC);
    scene.open()?;
    let (mut rounds, mut changed) = (0, 0);
    let course = Course::new();
    while rounds < ROUNDS && course.goes_on(rounds >= LEAST) {
        scene.connect_streams()?;
        scene.wait_for_work()?;
        linger(rounds);
        for (stream, (active, _)) in scene.streams.iter().zip(&scene.ends) {
            let feed = stream.feed.lock().take();
            active.qp.fail();
            // The marker is behind everything that the worker posts in its present turn.
            drop(feed);
            let mut drained = false;
            wait_for(|| {
                let marker = SendOp::Send {
                    with: SendWith::Nothing,
                };
                let flags = SendFlag::Signaled;
                let none = core::iter::empty::<Sge>();
                let _ = active.qp.post(u64::MAX, marker, flags, none);
                active
                    .sends
                    .cq
                    .poll(64, |e| drained |= e.context.raw() == u64::MAX);
                drained
            })?;
            stream.sink.fill(0x77);
            for _ in 0..LOOKS {
                changed += u64::from(!stream.sink.is(0, SIZE, 0x77));
            }
        }
        scene.drop_streams();
        rounds += 1;
    }
    threads.dismiss();
    pr_info!("race: drained initiator, {} rounds\n", rounds);
    Ok((rounds, changed))
}

#[kernel::macros::kunit_tests(ndk_kunit_race_peers)]
mod tests {
    use super::*;

    #[test]
    fn memory_stands_still_when_a_local_invalidation_completes() -> Result {
        let score = race(Ending::LocalInvalidate)?;
        assert!(score.is_clean());
        kunit_assert_eq!(score.completed, score.rounds);
        assert!(score.writes >= score.rounds);
        assert!(score.reads >= score.rounds);
        Ok(())
    }

    #[test]
    fn memory_stands_still_when_the_streams_own_invalidation_ends() -> Result {
        let score = race(Ending::OwnInvalidate)?;
        assert!(score.is_clean());
        Ok(())
    }

    #[test]
    fn memory_stands_still_when_a_receive_with_invalidate_completes() -> Result {
        let score = race(Ending::SendInvalidate)?;
        assert!(score.is_clean());
        kunit_assert_eq!(score.completed, score.rounds);
        Ok(())
    }

    #[test]
    fn memory_stands_still_when_a_read_with_invalidate_completes() -> Result {
        let score = race(Ending::ReadInvalidate)?;
        assert!(score.is_clean());
        kunit_assert_eq!(score.completed, score.rounds);
        Ok(())
    }

    #[test]
    fn memory_stands_still_when_its_region_is_removed() -> Result {
        let score = race(Ending::Remove)?;
        assert!(score.is_clean());
        Ok(())
    }

    #[test]
    fn memory_stands_still_when_the_queue_pair_is_drained() -> Result {
        let score = race(Ending::Drain)?;
        assert!(score.is_clean());
        Ok(())
    }

    #[test]
    fn memory_stands_still_when_the_queue_pair_is_destroyed() -> Result {
        let score = race(Ending::Destroy)?;
        assert!(score.is_clean());
        Ok(())
    }

    #[test]
    fn the_sink_of_a_read_stands_still_when_the_initiator_is_drained() -> Result {
        let (rounds, changed) = drained_initiator()?;
        assert!(rounds >= LEAST);
        kunit_assert_eq!(changed, 0);
        Ok(())
    }
}
