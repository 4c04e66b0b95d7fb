// SPDX-License-Identifier: GPL-2.0

//! The memory table under fire: peers on every processor use a token while its owner ends it.
//!
//! In each round the owner makes a token valid, waits until peers are at work under it, ends it,
//! and waits for the end that the engine reports. From then on the memory is the owner's alone: it
//! is filled with [`SECRET`], and for a while no byte of it may change, and no peer may ever see
//! one of those bytes.

use kernel::{
    prelude::*,
    sync::{
        atomic::{
            ordering::{
                Acquire,
                Release, //
            },
            Atomic, //
        },
        Arc, //
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
    engine::memory::{
        slot::{
            DomainId,
            RegAttr,
            RegisterError, //
        },
        spans::SpanList,
        tests::RawBuffer,
        Denied,
        MemoryTable,
        User, //
    },
    rdma::values::{
        access::AccessFlag,
        token::Token, //
    }, //
};

const DOMAIN: DomainId = 3;
const QP: u64 = 5;
const BASE: u64 = 0x4000_0000_0101;

const PEER: User = User {
    domain: DOMAIN,
    qp: Some(QP),
};

/// The most rounds of one race.
const ROUNDS: u64 = 20_000;

/// Accesses that a peer makes in one turn.
const BURST: u32 = 8;

/// The region: odd pieces of the buffer, and their bytes.
const PIECES: [(usize, usize); 4] = [(1, 999), (1003, 2000), (4000, 1), (4096, 4000)];
const LEN: u64 = 7000;
const SIZE: usize = 8192;

/// A step with which the owner ends the validity of a token.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ending {
    /// Its own invalidation of a fast-register region.
    Invalidate,
    /// The invalidation that a peer asked for.
    RemoteInvalidate,
    /// The removal of a region that is valid as long as it exists.
    Remove,
    /// The removal of a fast-register region while it is valid.
    RemoveFast,
    /// The invalidation of a window.
    Unbind,
    /// The removal of the region below a window.
    RemoveParent,
}

/// The place of a race.
struct Arena {
    table: Pin<KBox<MemoryTable>>,
    memory: RawBuffer,
    ink: RawBuffer,
    /// The token in force, as far as peers know.
    token: Atomic<u32>,
    /// The number of accesses; each one gets another range.
    tries: Tally,
    writes: Tally,
    reads: Tally,
    /// Accesses that saw a byte of [`SECRET`].
    leaks: Tally,
    /// Accesses refused for another reason than the token, or that ended too early.
    odd: Tally,
}

/// The result of a race.
#[derive(Clone, Copy, Debug)]
struct Score {
    rounds: u64,
    /// Rounds in which accesses were running when the token ended; `None` where the end waits for
    /// them before it returns.
    contended: Option<u64>,
    writes: u64,
    reads: u64,
    /// Changes of memory that had to stand still.
    changed: u64,
    leaks: u64,
    odd: u64,
}

impl Score {
    /// Returns true if there was a race, and it did no harm.
    fn is_clean(&self) -> bool {
        let raced = self.rounds >= LEAST && self.contended != Some(0);
        raced && self.changed == 0 && self.leaks == 0 && self.odd == 0
    }
}

impl Arena {
    fn new() -> Result<Arc<Self>> {
        let arena = Self {
            table: KBox::pin_init(MemoryTable::new(), GFP_KERNEL)?,
            memory: RawBuffer::new(SIZE)?,
            ink: RawBuffer::new(SIZE)?,
            token: Atomic::new(0),
            tries: Tally::new(),
            writes: Tally::new(),
            reads: Tally::new(),
            leaks: Tally::new(),
            odd: Tally::new(),
        };
        arena.ink.fill(INK);
        Ok(Arc::new(arena, GFP_KERNEL)?)
    }

    /// A range of the region, another each time.
    fn next_range(&self) -> (u64, u64) {
        let n = self.tries.hit();
        let offset = n.wrapping_mul(7919) % LEN;
        let len = 1 + n.wrapping_mul(104_729) % (LEN - offset);
        (offset, len)
    }

    /// One access by a peer: writes ink, or reads into `copy`.
    fn strike(&self, copy: Option<&RawBuffer>) {
        let token = Token::from_raw(self.token.load(Acquire));
        let (offset, len) = self.next_range();
        let wanted = match copy {
            Some(_) => AccessFlag::RemoteRead,
            None => AccessFlag::RemoteWrite,
        };
        match self.table.access(token, PEER, wanted, BASE + offset, len) {
            Err(Denied::Token) => return,
            Err(_) => {
                self.odd.hit();
                return;
            }
            Ok(access) => {
                let mut at = 0;
                while at < len {
                    let run = access.run(at);
                    let n = match copy {
                        Some(copy) => copy.run().copy_from(run),
                        None => run.copy_from(self.ink.run()),
                    };
                    let n = n.unwrap_or(0);
                    // CAST: widening.
                    at += n as u64;
                    if n == 0 {
                        self.odd.hit();
                        break;
                    }
                    let seen = |copy: &RawBuffer| copy.count(0, n, |b| b == SECRET) > 0;
                    if copy.is_some_and(seen) {
                        self.leaks.hit();
                    }
                }
            }
        }
        match copy {
            Some(_) => self.reads.hit(),
            None => self.writes.hit(),
        };
    }

    /// The accesses of a peer in one turn.
    fn turn(self: &Arc<Self>) -> Result<impl Fn() + Send + Sync + 'static> {
        let arena = self.clone();
        let copy = RawBuffer::new(SIZE)?;
        Ok(move || {
            for n in 0..BURST {
                arena.strike(Some(&copy).filter(|_| n % 2 == 0));
            }
        })
    }

    /// Peers on two processors and in a thread.
    fn open(self: &Arc<Self>) -> Result<Threads> {
        let mut threads = Threads::new()?;
        let [here, there] = two_cpus();
        threads.on(there, self.turn()?)?;
        threads.at_call(here, self.turn()?)?;
        threads.thread(self.turn()?)?;
        Ok(threads)
    }

    fn attr(&self) -> RegAttr {
        RegAttr {
            domain: DOMAIN,
            rights: RIGHTS,
            base: BASE,
            len: LEN,
            binding: None,
        }
    }

    fn put_pieces(&self, list: &mut SpanList) -> Result {
        for (at, len) in PIECES {
            list.push(self.memory.part(at, len)?).map_err(|_| ENOSPC)?;
        }
        Ok(())
    }

    fn add_fixed(&self) -> Result<Token> {
        let mut list = SpanList::with_capacity(PIECES.len())?;
        self.put_pieces(&mut list)?;
        self.table.add_fixed(list, self.attr())
    }

    fn add_fast(&self) -> Result<Token> {
        let token = self.table.add_fast(DOMAIN, PIECES.len())?;
        let staged = self
            .table
            .stage(token.index(), |list| self.put_pieces(list));
        staged.ok_or(EINVAL)??;
        Ok(token)
    }

    /// Registers a fast-register region that is not in use.
    fn register(&self, token: Token) -> Result {
        let registered = self.table.register(token, self.attr());
        registered.map_err(|_| EINVAL)
    }

    fn bind(&self, window: Token, region: Token) -> Result {
        let rights = AccessFlag::RemoteRead | AccessFlag::RemoteWrite;
        let bound = self.table.bind(window, region, PEER, rights, BASE, LEN);
        bound.map_err(|_| EINVAL)
    }
}

/// The objects of the owner: the token that peers use, and the region below if that is a window.
struct Owned {
    token: Token,
    parent: Option<Token>,
}

fn next_key(token: Token) -> Token {
    Token::new(token.index(), token.key().wrapping_add(1)).unwrap_or(token)
}

/// Makes the first token.
fn begin(arena: &Arena, ending: Ending) -> Result<Owned> {
    let (token, parent) = match ending {
        Ending::Invalidate | Ending::RemoteInvalidate | Ending::RemoveFast => {
            let token = arena.add_fast()?;
            arena.register(token)?;
            (token, None)
        }
        Ending::Remove => (arena.add_fixed()?, None),
        Ending::Unbind | Ending::RemoveParent => {
            let parent = arena.add_fixed()?;
            let window = arena.table.add_window(DOMAIN, None)?;
            arena.bind(window, parent)?;
            (window, Some(parent))
        }
    };
    Ok(Owned { token, parent })
}

/// Ends the validity, and returns when the engine says that no access is running any more; true if
/// it had to wait, `None` if that cannot be seen.
fn end(arena: &Arena, owned: &Owned, ending: Ending) -> Result<Option<bool>> {
    let table = &arena.table;
    let token = owned.token;
    let revoked = match ending {
        Ending::Invalidate | Ending::Unbind => table.revoke(token, DOMAIN),
        Ending::RemoteInvalidate => table.revoke_remote(token, PEER),
        Ending::Remove | Ending::RemoveFast => {
            table.remove(token.index());
            return Ok(None);
        }
        Ending::RemoveParent => {
            table.remove(owned.parent.map_or(0, Token::index));
            return Ok(None);
        }
    };
    revoked.map_err(|_| EINVAL)?;
    let busy = !table.is_drained(token);
    wait_for(|| table.is_drained(token))?;
    Ok(Some(busy))
}

/// Makes the memory accessible again, under another token.
fn renew(arena: &Arena, owned: Owned, ending: Ending) -> Result<Owned> {
    match ending {
        Ending::Invalidate | Ending::RemoteInvalidate => {
            let token = next_key(owned.token);
            arena.register(token)?;
            Ok(Owned { token, ..owned })
        }
        Ending::Remove | Ending::RemoveFast => begin(arena, ending),
        Ending::Unbind => {
            let token = next_key(owned.token);
            arena.bind(token, owned.parent.ok_or(EINVAL)?)?;
            Ok(Owned { token, ..owned })
        }
        Ending::RemoveParent => {
            let parent = arena.add_fixed()?;
            arena
                .table
                .revoke(owned.token, DOMAIN)
                .map_err(|_| EINVAL)?;
            let drained = || arena.table.is_drained(owned.token);
            wait_for(drained)?;
            let token = next_key(owned.token);
            arena.bind(token, parent)?;
            Ok(Owned {
                token,
                parent: Some(parent),
            })
        }
    }
}

/// Lets peers and an owner race for the memory behind a token.
fn race(ending: Ending) -> Result<Score> {
    let arena = Arena::new()?;
    let mut threads = arena.open()?;
    let course = Course::new();
    let (mut rounds, mut contended, mut changed) = (0, None, 0);
    arena.memory.fill(PUBLIC);
    let mut owned = begin(&arena, ending)?;
    // At least one end has to wait, if waits can be seen.
    while rounds < ROUNDS && course.goes_on(rounds >= LEAST && contended != Some(0)) {
        let (writes, reads) = (arena.writes.get(), arena.reads.get());
        arena.token.store(owned.token.raw(), Release);
        wait_for(|| arena.writes.get() > writes && arena.reads.get() > reads)?;
        threads.nudge();
        linger(rounds);
        if let Some(waited) = end(&arena, &owned, ending)? {
            contended = Some(contended.unwrap_or(0) + u64::from(waited));
        }
        arena.memory.fill(SECRET);
        for _ in 0..LOOKS {
            changed += u64::from(!arena.memory.is(0, SIZE, SECRET));
        }
        arena.memory.fill(PUBLIC);
        owned = renew(&arena, owned, ending)?;
        rounds += 1;
    }
    threads.dismiss();
    let score = Score {
        rounds,
        contended,
        writes: arena.writes.get(),
        reads: arena.reads.get(),
        changed,
        leaks: arena.leaks.get(),
        odd: arena.odd.get(),
    };
    pr_info!("race: {:?} {:?}\n", ending, score);
    Ok(score)
}

/// A slot that changes its owner while a latecomer registers under the token of the former owner.
///
/// Returns the changes of the owner, the late registrations that found the slot still their own,
/// and the breaches, in which the latecomer got into the slot of the next owner.
fn late_registration() -> Result<(u64, u64, u64)> {
    const HEIR: DomainId = 4;
    let arena = Arena::new()?;
    let made = Arc::new(Tally::new(), GFP_KERNEL)?;
    let mut threads = Threads::new()?;
    {
        let (arena, made) = (arena.clone(), made.clone());
        threads.on(two_cpus()[1], move || {
            for _ in 0..BURST {
                let token = Token::from_raw(arena.token.load(Acquire));
                let registered = arena.table.register(token, arena.attr());
                if registered.is_ok() {
                    made.hit();
                }
            }
        })?;
    }
    let (mut rounds, mut breaches) = (0, 0);
    let course = Course::new();
    while rounds < ROUNDS && course.goes_on(rounds >= LEAST) {
        let token = arena.add_fast()?;
        arena.token.store(token.raw(), Release);
        linger(rounds);
        arena.table.remove(token.index());
        let heirs = arena.table.add_fast(HEIR, PIECES.len())?;
        let staged = arena
            .table
            .stage(heirs.index(), |list| arena.put_pieces(list));
        staged.ok_or(EINVAL)??;
        for _ in 0..LOOKS {
            let access = arena
                .table
                .access(token, PEER, AccessFlag::RemoteRead, BASE, 1);
            breaches += u64::from(heirs.index() == token.index() && access.is_ok());
        }
        let heirs_terms = RegAttr {
            domain: HEIR,
            ..arena.attr()
        };
        // Only a short attempt of the latecomer is in the heir's way.
        let mut registered = Err(RegisterError::Busy);
        wait_for(|| {
            registered = arena.table.register(heirs, heirs_terms);
            registered != Err(RegisterError::Busy)
        })?;
        breaches += u64::from(registered.is_err());
        arena.table.remove(heirs.index());
        rounds += 1;
    }
    threads.dismiss();
    let made = made.get();
    pr_info!(
        "race: slot handed on {} times, {} late registrations\n",
        rounds,
        made
    );
    Ok((rounds, made, breaches))
}

#[kernel::macros::kunit_tests(ndk_kunit_race_table)]
mod tests {
    use super::*;

    #[test]
    fn there_are_two_processors_to_race_on() {
        let [one, other] = two_cpus();
        assert!(one != other);
    }

    #[test]
    fn memory_stands_still_after_an_invalidation() -> Result {
        let score = race(Ending::Invalidate)?;
        assert!(score.writes >= score.rounds);
        assert!(score.is_clean());
        Ok(())
    }

    #[test]
    fn memory_stands_still_after_a_remote_invalidation() -> Result {
        let score = race(Ending::RemoteInvalidate)?;
        assert!(score.reads >= score.rounds);
        assert!(score.is_clean());
        Ok(())
    }

    #[test]
    fn memory_stands_still_after_a_removal() -> Result {
        let score = race(Ending::Remove)?;
        assert!(score.is_clean());
        Ok(())
    }

    #[test]
    fn memory_stands_still_after_the_removal_of_a_valid_fast_register_region() -> Result {
        let score = race(Ending::RemoveFast)?;
        assert!(score.is_clean());
        Ok(())
    }

    #[test]
    fn memory_stands_still_after_a_window_was_invalidated() -> Result {
        let score = race(Ending::Unbind)?;
        assert!(score.is_clean());
        Ok(())
    }

    #[test]
    fn memory_stands_still_after_the_region_of_a_window_was_removed() -> Result {
        let score = race(Ending::RemoveParent)?;
        assert!(score.is_clean());
        Ok(())
    }

    #[test]
    fn a_late_registration_never_opens_the_slot_of_the_next_owner() -> Result {
        let (rounds, _, breaches) = late_registration()?;
        assert!(rounds >= LEAST);
        kunit_assert_eq!(breaches, 0);
        Ok(())
    }
}
