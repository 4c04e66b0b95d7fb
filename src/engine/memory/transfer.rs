// SPDX-License-Identifier: GPL-2.0

//! Copies of the bytes of a message: source, sink, and the copy between them.
//!
//! A [`Payload`] is one side of a message: a gather or scatter list, a range of a region that the
//! peer named, or inline bytes. It is opened for one bounded part of the message at a time, as a
//! [`Segment`], under which the memory stays accessible. So an invalidation waits for one part at
//! most, and the next part of a transfer meets the checks again.
//!
//! Tests: `engine/memory/tests/access.rs`.

use super::{
    Access,
    Denied,
    User, //
};
use crate::{
    engine::device::RdmaDevice,
    rdma::values::{
        access::AccessFlags,
        token::Token,
        work::RemoteAddr, //
    },
    sys::{
        requests::List,
        span::{
            CopyFault,
            Run, //
        }, //
    }, //
};

/// A device, the user of its memory, and the use.
#[derive(Clone, Copy)]
pub(crate) struct MemoryUsage<'a> {
    pub(crate) device: &'a RdmaDevice,
    pub(crate) user: User,
    /// The user may name the kernel's own memory, too: `Domain::is_trusted`.
    pub(crate) is_trusted: bool,
    pub(crate) wanted: AccessFlags,
}

/// One side of a message.
#[derive(Clone, Copy)]
pub(crate) enum Payload<'a> {
    /// Local memory, element by element.
    List(MemoryUsage<'a>, &'a List),
    /// A range that the peer named, of that length.
    Named(MemoryUsage<'a>, RemoteAddr, u64),
    /// Bytes that were taken when the request was posted.
    Inline(&'a [u8]),
}

/// Memory that may be touched as long as this exists: one element of a list, or one range.
pub(crate) enum Memory<'a> {
    Whole(Run<'a>),
    Registered(Access<'a>),
    Bytes(&'a [u8]),
}

/// A part of a payload that may be touched now; it covers the message from `begin` to `end`.
pub(crate) struct Segment<'a> {
    memory: Memory<'a>,
    begin: u64,
    end: u64,
    /// The index of the next element of the list.
    next: usize,
    /// The search hint for the next run.
    hint: usize,
}

/// The side that refused an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccessError {
    Source(Denied),
    Sink(Denied),
}

impl From<CopyFault> for AccessError {
    fn from(fault: CopyFault) -> Self {
        match fault {
            CopyFault::Source => Self::Source(Denied::Bounds),
            CopyFault::Sink => Self::Sink(Denied::Bounds),
        }
    }
}

impl<'a> Memory<'a> {
    /// The memory of element `number` of a local list.
    #[inline]
    pub(crate) fn local(
        usage: MemoryUsage<'a>,
        list: &'a List,
        number: usize,
    ) -> Result<Self, Denied> {
        let sge = list.get(number).ok_or(Denied::Bounds)?;
        if sge.token() == Token::LOCAL_MEMORY && usage.is_trusted {
            return Ok(Self::Whole(list.memory(number).ok_or(Denied::Bounds)?));
        }
        let at = RemoteAddr {
            addr: sge.addr(),
            token: sge.token(),
        };
        Self::named(usage, at, sge.len().into())
    }

    /// A range of a region, local or named by the peer.
    pub(crate) fn named(usage: MemoryUsage<'a>, at: RemoteAddr, len: u64) -> Result<Self, Denied> {
        let regions = &usage.device.regions;
        let access = regions.access(at.token, usage.user, usage.wanted, at.addr, len);
        access.map(Self::Registered)
    }

    /// The contiguous memory from byte `at` on; empty for inline bytes, which are not consumer
    /// memory.
    #[inline]
    fn run(&self, at: u64, hint: &mut usize) -> Run<'_> {
        match self {
            // CAST: 64-bit kernel addresses.
            Self::Whole(run) => run.part(at as usize, usize::MAX),
            Self::Registered(access) => access.run_near(at, hint),
            Self::Bytes(_) => Run::EMPTY,
        }
    }
}

impl<'a> Payload<'a> {
    /// Opens the part that holds byte `at` of the message.
    #[inline]
    pub(crate) fn open(&self, at: u64) -> Result<Segment<'a>, Denied> {
        self.open_from(0, 0, at)
    }

    /// Opens the part that holds byte `at`; element `first` of a list begins with byte `begin`, not
    /// behind `at`.
    #[inline(always)]
    fn open_from(&self, first: usize, begin: u64, at: u64) -> Result<Segment<'a>, Denied> {
        let (memory, end) = match *self {
            Self::List(usage, list) => return open_element(usage, list, (first, begin), at),
            Self::Named(usage, remote, len) => (Memory::named(usage, remote, len)?, len),
            // CAST: widening.
            Self::Inline(bytes) => (Memory::Bytes(bytes), bytes.len() as u64),
        };
        Ok(Segment {
            memory,
            begin: 0,
            end,
            next: 0,
            hint: 0,
        })
    }

    /// Checks that all of the first `len` bytes may be used now.
    #[inline]
    pub(crate) fn check(&self, len: u64) -> Result<(), Denied> {
        let Self::List(usage, list) = *self else {
            // Inline bytes that could not be taken are missing; a named range is one part.
            return match len > self.len() {
                true => Err(Denied::Bounds),
                false if len == 0 => Ok(()),
                false => self.open(0).map(|_| ()),
            };
        };
        let mut left = len;
        for (number, sge) in list.iter().enumerate() {
            if left == 0 {
                break;
            }
            if sge.len() != 0 {
                Memory::local(usage, list, number)?;
            }
            left = left.saturating_sub(sge.len().into());
        }
        match left {
            0 => Ok(()),
            _ => Err(Denied::Bounds),
        }
    }

    /// The number of bytes that the payload has room for.
    pub(crate) fn len(&self) -> u64 {
        match *self {
            // OVERFLOW: a list has far fewer than 2^32 elements.
            Self::List(_, list) => list.iter().map(|s| u64::from(s.len())).sum(),
            Self::Named(_, _, len) => len,
            // CAST: widening.
            Self::Inline(bytes) => bytes.len() as u64,
        }
    }
}

#[inline(always)]
fn open_element<'a>(
    usage: MemoryUsage<'a>,
    list: &'a List,
    (first, mut begin): (usize, u64),
    at: u64,
) -> Result<Segment<'a>, Denied> {
    for (number, sge) in list.iter().enumerate().skip(first) {
        let end = begin + u64::from(sge.len());
        if at < end {
            return Ok(Segment {
                memory: Memory::local(usage, list, number)?,
                begin,
                end,
                next: number + 1,
                hint: 0,
            });
        }
        begin = end;
    }
    Err(Denied::Bounds)
}

impl Segment<'_> {
    /// The state before the first part of a payload.
    const NOTHING: Self = Self {
        memory: Memory::Bytes(&[]),
        begin: 0,
        end: 0,
        next: 0,
        hint: 0,
    };

    /// The contiguous memory from byte `at` of the message on.
    ///
    /// Empty where this part does not reach, and for inline bytes, which are not consumer memory.
    #[inline]
    fn run(&mut self, at: u64) -> Run<'_> {
        (self.memory).run(at.wrapping_sub(self.begin), &mut self.hint)
    }

    /// The bytes from byte `at` of the message on, `most` at most.
    fn part(&mut self, at: u64, most: usize) -> Part<'_> {
        if let Memory::Bytes(bytes) = &self.memory {
            // CAST: an index into a slice in memory.
            let skip = at.wrapping_sub(self.begin) as usize;
            let bytes = bytes.get(skip..).unwrap_or_default();
            return Part::Inline(bytes.get(..most).unwrap_or(bytes));
        }
        Part::Memory(self.run(at).part(0, most))
    }

    /// Copies from byte `at` of the message into `to`; returns the number of bytes.
    #[inline]
    fn read(&mut self, at: u64, to: Run<'_>) -> Result<usize, CopyFault> {
        match &self.memory {
            Memory::Bytes(bytes) => {
                // CAST: an index into a slice in memory.
                let skip = at.wrapping_sub(self.begin) as usize;
                to.write(bytes.get(skip..).unwrap_or_default())
            }
            Memory::Whole(_) | Memory::Registered(_) => to.copy_from(self.run(at)),
        }
    }
}

/// Copies bytes `[from, until)` of a message; returns the first byte not copied.
///
/// Memory is held for the whole call: the caller bounds `until - from`.
pub(crate) fn copy(
    source: &Payload<'_>,
    sink: &Payload<'_>,
    from: u64,
    until: u64,
) -> Result<u64, AccessError> {
    let mut at = from;
    let (mut read, mut write) = (Segment::NOTHING, Segment::NOTHING);
    while at < until {
        if at >= read.end {
            read = source
                .open_from(read.next, read.end, at)
                .map_err(AccessError::Source)?;
        }
        if at >= write.end {
            write = sink
                .open_from(write.next, write.end, at)
                .map_err(AccessError::Sink)?;
        }
        let most = usize::try_from(until - at).unwrap_or(usize::MAX);
        let to = write.run(at).part(0, most);
        if to.is_empty() {
            return Err(AccessError::Sink(Denied::Bounds));
        }
        match read.read(at, to)? {
            0 => return Err(AccessError::Source(Denied::Bounds)),
            // CAST: widening.
            moved => at += moved as u64,
        }
    }
    Ok(at)
}

/// Consecutive bytes of a source.
#[derive(Clone, Copy)]
pub(crate) enum Part<'a> {
    Memory(Run<'a>),
    /// Bytes that were taken when the request was posted.
    Inline(&'a [u8]),
}

/// Gives the bytes `[from, until)` of a message to `take`, part by part; returns the first byte that
/// was not taken. `take` returns the number of bytes that it has used: fewer than it got end the call.
///
/// Memory is held for the whole call: the caller bounds `until - from`.
pub(crate) fn gather(
    source: &Payload<'_>,
    from: u64,
    until: u64,
    mut take: impl FnMut(Part<'_>) -> Result<usize, CopyFault>,
) -> Result<u64, Denied> {
    let mut at = from;
    let mut read = Segment::NOTHING;
    while at < until {
        if at >= read.end {
            read = source.open_from(read.next, read.end, at)?;
        }
        let most = usize::try_from(until - at).unwrap_or(usize::MAX);
        let (given, taken) = match read.part(at, most) {
            Part::Memory(run) => (run.len(), take(Part::Memory(run))),
            Part::Inline(bytes) => (bytes.len(), take(Part::Inline(bytes))),
        };
        if given == 0 {
            return Err(Denied::Bounds);
        }
        let taken = taken.map_err(|_| Denied::Bounds)?;
        // CAST: widening.
        at += taken as u64;
        if taken < given {
            break;
        }
    }
    Ok(at)
}

/// Has `put` fill the bytes `[from, until)` of a message, part by part; as [`gather`].
pub(crate) fn scatter(
    sink: &Payload<'_>,
    from: u64,
    until: u64,
    mut put: impl FnMut(Run<'_>) -> Result<usize, CopyFault>,
) -> Result<u64, Denied> {
    gather(sink, from, until, |part| match part {
        Part::Memory(run) => put(run),
        // Nothing is received into bytes of a request.
        Part::Inline(_) => Ok(0),
    })
}

/// Copies the first `len` bytes, which both have. The caller bounds `len`.
#[inline]
pub(crate) fn copy_whole(from: &Memory<'_>, to: &Memory<'_>, len: u64) -> Result<(), AccessError> {
    let (mut at, mut read, mut write) = (0, 0, 0);
    if let (Memory::Whole(from), Memory::Whole(to)) = (from, to) {
        // The path of most messages, without a search.
        let most = usize::try_from(len).unwrap_or(usize::MAX);
        // CAST: widening.
        at = to.part(0, most).copy_from(from.part(0, most))? as u64;
    }
    while at < len {
        let most = usize::try_from(len - at).unwrap_or(usize::MAX);
        let sink = to.run(at, &mut write).part(0, most);
        if sink.is_empty() {
            return Err(AccessError::Sink(Denied::Bounds));
        }
        match sink.copy_from(from.run(at, &mut read))? {
            0 => return Err(AccessError::Source(Denied::Bounds)),
            // CAST: widening.
            moved => at += moved as u64,
        }
    }
    Ok(())
}

/// Inverts byte `at` of a message in the sink, if it may still be touched.
pub(crate) fn corrupt(sink: &Payload<'_>, at: u64) {
    if let Ok(mut segment) = sink.open(at) {
        segment.run(at).invert_first();
    }
}

/// Executes an RDMA atomic on the eight bytes of `payload`, and returns the old value.
///
/// `Ok(None)` when they are not eight aligned bytes.
pub(crate) fn atomic(
    payload: &Payload<'_>,
    operate: impl FnOnce(Run<'_>) -> Option<u64>,
) -> Result<Option<u64>, Denied> {
    Ok(operate(payload.open(0)?.run(0)))
}
