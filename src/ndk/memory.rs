// SPDX-License-Identifier: GPL-2.0

//! [`Mr`], [`Mw`], fast registrations and logical addresses: memory as a consumer of this face
//! names it.
//!
//! A region is for one of two uses. A normal region is registered and deregistered by calls; its
//! local and its remote token are the same. A fast-register region is initialized once and
//! registered by work requests; its local token stays (FREG-11), and each registration has a new
//! remote token (FREG-10).
//!
//! Lock order: the send queue of a queue pair, then the state of a region or the bindings of a
//! window.

mod window;

use kernel::sync::atomic::{
    ordering::Acquire,
    Atomic, //
};

pub(crate) use window::Mw;

use super::{
    adapter::Limits,
    pd::Pd,
    prelude::*, //
};
use crate::{
    engine::{
        domain::Domain,
        inject::SiteKind,
        limits::{
            MAX_MESSAGE,
            MAX_SGES, //
        },
        memory::{
            mapping::Prepared,
            slot::RegAttr,
            spans::SpanList, //
        }, //
    },
    ndk::abi::numbers::mr_flags::*,
    rdma::values::{
        access::{
            AccessFlag,
            AccessFlags, //
        },
        token::Token, //
    },
    sys::{
        mdl::{
            MdlChain,
            Pages,
            PAGE_SIZE, //
        },
        sge::{
            Elements,
            Posted, //
        },
        span,
        unaligned::Room, //
    }, //
};

/// A region.
#[pin_data]
pub(crate) struct Mr {
    domain: Arc<Domain>,
    limits: Limits,
    fast: bool,
    /// Windows that are bound to the region, or may be.
    windows: Atomic<u32>,
    #[pin]
    state: SpinLockIrq<MrState>,
}

/// The state of a region.
#[derive(Clone, Copy)]
enum MrState {
    /// Neither registered nor initialized.
    Idle,
    /// A call is pending.
    Busy,
    /// Registered as a normal region.
    Normal(Normal),
    /// Initialized for fast registration.
    Fast(Fast),
}

#[derive(Clone, Copy)]
struct Normal {
    token: Token,
    base: u64,
    len: u64,
    rights: AccessFlags,
}

#[derive(Clone, Copy)]
struct Fast {
    /// The token of the owner.
    own: Token,
    /// The token of the last registration that was posted.
    remote: Token,
    pages: u32,
    may_be_remote: bool,
}

/// The pages of a registration, looked up.
pub(super) struct PreparedPages<'a> {
    /// The token of the region.
    own: Token,
    prepared: Prepared<'a>,
}

impl ObjectType for Mr {
    fn end_sleeps(&self) -> bool {
        !matches!(*self.state.lock(), MrState::Idle)
    }

    fn end(&self) {
        let state = core::mem::replace(&mut *self.state.lock(), MrState::Idle);
        let token = match state {
            MrState::Idle | MrState::Busy => return,
            MrState::Normal(normal) => normal.token,
            MrState::Fast(fast) => fast.own,
        };
        self.domain.device().regions.remove(token.index());
    }
}

/// The rights of `flags`, by the bits of remote read, of local write, and the deciding bit of
/// remote write, which needs local write (FREG-07).
pub(super) fn rights_of(
    flags: u32,
    [read, local, remote]: [u32; 3],
) -> Result<AccessFlags, NtStatus> {
    let set = [
        (read, AccessFlag::RemoteRead),
        (local, AccessFlag::LocalWrite),
        (remote, AccessFlag::RemoteWrite),
    ];
    let set = set.into_iter().filter(|(flag, _)| flags & flag != 0);
    let rights = set.fold(AccessFlags::empty(), |all, (_, right)| all | right);
    NtStatus::INVALID_PARAMETER.unless(rights.is_consistent())?;
    Ok(rights)
}

impl Object<Pd> {
    /// `CreateMr`; completes at once.
    pub(crate) fn create_mr(self: &Arc<Self>, fast: bool) -> Created<Mr> {
        let mr = Mr::new(self.domain.clone(), *self.adapter.limits(), fast);
        self.successor(mr, GFP_ATOMIC)
    }
}

impl Mr {
    /// A region that is not registered.
    fn new(domain: Arc<Domain>, limits: Limits, fast: bool) -> impl PinInit<Self> {
        pin_init!(Self {
            domain,
            limits,
            fast,
            windows: Atomic::new(0),
            state <- new_spinlock_irq!(MrState::Idle),
        })
    }

    /// The token for elements of lists; a token without rights until there is one (MR-08).
    pub(crate) fn local_token(&self) -> Token {
        self.tokens().0
    }

    /// The token for the peer; without rights until a registration gives some (MR-09).
    pub(crate) fn remote_token(&self) -> Token {
        self.tokens().1
    }

    /// The local and the remote token.
    fn tokens(&self) -> (Token, Token) {
        match *self.state.lock() {
            MrState::Idle | MrState::Busy => (Token::from_raw(0), Token::from_raw(0)),
            MrState::Normal(normal) => (normal.token, normal.token),
            MrState::Fast(fast) => (fast.own, fast.remote),
        }
    }

    /// The token with which the owner ends a fast registration of any key.
    pub(super) fn invalidation_token(&self, domain: &Domain) -> Result<Token, NtStatus> {
        match *self.state.lock() {
            MrState::Fast(fast) if self.domain.id() == domain.id() => Ok(fast.own),
            _ => Err(NtStatus::INVALID_PARAMETER),
        }
    }

    /// Looks the pages of a registration up, before any lock of a queue is taken: there may be
    /// thousands. Any context.
    pub(super) fn prepare(
        &self,
        what: &FastRegistration<'_>,
    ) -> Result<PreparedPages<'_>, NtStatus> {
        let pages = what.check()?;
        let MrState::Fast(fast) = *self.state.lock() else {
            return Err(NtStatus::INVALID_PARAMETER);
        };
        NtStatus::INVALID_PARAMETER.when(pages > fast.pages)?;
        let regions = &self.domain.device().regions;
        // CAST: widening.
        let prepared = regions.prepare(fast.own.index(), pages as usize);
        let mut prepared = prepared.map_err(no_memory)?;
        let list = prepared.list().ok_or(NtStatus::INTERNAL_ERROR)?;
        let offset = u64::from(what.offset);
        let all = what.pages.each_span(offset, |span| list.push(span).is_ok());
        NtStatus::INVALID_PARAMETER.unless(all)?;
        Ok(PreparedPages {
            own: fast.own,
            prepared,
        })
    }

    /// Posts a registration through `post`, with its token and the number of the staged pages
    /// (FREG-01 to FREG-12).
    pub(super) fn register_by(
        &self,
        domain: &Domain,
        pages: Result<PreparedPages<'_>, NtStatus>,
        wanted: AccessFlags,
        post: impl FnOnce(Token, u32) -> Result<(), NtStatus>,
    ) -> Result<(), NtStatus> {
        let mut state = self.state.lock();
        let MrState::Fast(fast) = &mut *state else {
            return Err(NtStatus::INVALID_PARAMETER);
        };
        NtStatus::INVALID_PARAMETER.when(self.domain.id() != domain.id())?;
        let is_invalid = |why: &NtStatus| *why == NtStatus::INVALID_PARAMETER;
        NtStatus::INVALID_PARAMETER.when(pages.as_ref().err().is_some_and(is_invalid))?;
        NtStatus::ACCESS_VIOLATION.when(wanted.is_remote() && !fast.may_be_remote)?;
        let PreparedPages { own, prepared } = pages?;
        // The region was initialized anew after the lookup of the pages.
        NtStatus::INVALID_PARAMETER.when(own.raw() != fast.own.raw())?;
        let key = fast.remote.key().wrapping_add(1);
        let token = Token::new(fast.own.index(), key).ok_or(NtStatus::INTERNAL_ERROR)?;
        let number = prepared.stage().ok_or(NtStatus::INVALID_PARAMETER)?;
        let posted = post(token, number);
        match posted {
            Ok(()) => fast.remote = token,
            Err(_) => {
                let regions = &self.domain.device().regions;
                regions.drop_staged(token.index(), number);
            }
        }
        posted
    }
}

impl Object<Mr> {
    /// `RegisterMr`: makes the first `len` bytes of the chain a region.
    pub(crate) fn register(
        self: &Arc<Self>,
        chain: MdlChain,
        len: u64,
        flags: u32,
        done: DoneFn<NtStatus>,
    ) -> Answer {
        let deciding = REMOTE_WRITE & !LOCAL_WRITE;
        NtStatus::INVALID_PARAMETER
            .when(flags & !(REMOTE_WRITE | REMOTE_READ | RDMA_READ_SINK) != 0)?;
        let rights = rights_of(flags, [REMOTE_READ, LOCAL_WRITE, deciding])?;
        NtStatus::INVALID_PARAMETER
            .when(len == 0 || len > self.limits.registration || len > chain.len())?;
        NtStatus::INVALID_PARAMETER.unless(chain.is_contiguous(len))?;
        self.begin(false)?;
        self.change(MrState::Idle, done, move |this| {
            Ok(MrState::Normal(Normal {
                token: this.add(&chain, len, rights)?,
                base: chain.base(),
                len,
                rights,
            }))
        })
    }

    fn add(&self, chain: &MdlChain, len: u64, rights: AccessFlags) -> Result<Token> {
        let mut spans = SpanList::with_capacity(chain.pieces())?;
        chain.each_span(len, |span| spans.push(span).map_err(|_| ENOMEM))?;
        let attr = RegAttr {
            domain: self.domain.id(),
            rights,
            base: chain.base(),
            len,
            binding: None,
        };
        let device = self.domain.device();
        device.may_make(SiteKind::Region)?;
        device.regions.add_fixed(spans, attr)
    }

    fn begin(&self, fast: bool) -> Result<(), NtStatus> {
        let mut state = self.state.lock();
        NtStatus::INVALID_DEVICE_REQUEST
            .when(self.fast != fast || !matches!(*state, MrState::Idle))?;
        *state = MrState::Busy;
        Ok(())
    }

    /// Brings a region that is busy to the state that `work` gives; to the state `before` if that
    /// fails, or cannot even begin.
    fn change(
        self: &Arc<Self>,
        before: MrState,
        done: DoneFn<NtStatus>,
        work: impl FnOnce(&Self) -> Result<MrState> + Send + 'static,
    ) -> Answer {
        let answer = self.defer(done, move |this| {
            let made = work(this).map_err(no_memory);
            *this.state.lock() = *made.as_ref().unwrap_or(&before);
            made.map(drop).into()
        });
        if answer.is_err() {
            *self.state.lock() = before;
        }
        answer
    }

    /// `DeregisterMr`: ends what `RegisterMr` began; refused while windows are bound.
    pub(crate) fn deregister(self: &Arc<Self>, done: DoneFn<NtStatus>) -> Answer {
        let mut state = self.state.lock();
        let MrState::Normal(normal) = *state else {
            return Err(NtStatus::INVALID_DEVICE_REQUEST);
        };
        NtStatus::INVALID_DEVICE_REQUEST.when(self.windows.load(Acquire) != 0)?;
        *state = MrState::Busy;
        drop(state);
        self.change(MrState::Normal(normal), done, move |this| {
            let regions = &this.domain.device().regions;
            regions.remove(normal.token.index());
            Ok(MrState::Idle)
        })
    }

    /// `InitializeFastRegisterMr`: makes room for registrations of up to `pages` pages.
    pub(crate) fn initialize(
        self: &Arc<Self>,
        pages: u32,
        may_be_remote: bool,
        done: DoneFn<NtStatus>,
    ) -> Answer {
        NtStatus::INVALID_PARAMETER.when(pages == 0)?;
        NtStatus::IMPLEMENTATION_LIMIT.when(pages > self.limits.pages)?;
        self.begin(true)?;
        self.change(MrState::Idle, done, move |this| {
            let device = this.domain.device();
            device.may_make(SiteKind::Region)?;
            let regions = &device.regions;
            // CAST: widening.
            let own = regions.add_fast_steady(this.domain.id(), pages as usize)?;
            Ok(MrState::Fast(Fast {
                own,
                remote: own,
                pages,
                may_be_remote,
            }))
        })
    }
}

/// The result of `BuildLAM`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lam {
    /// The number of pages.
    pub(crate) pages: u32,
    /// The offset of the range in the first page.
    pub(crate) offset: u32,
}

/// The reason why a mapping was not built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LamError {
    /// The buffer is too small for this many pages.
    TooSmall(u32),
    /// The range is empty, or not a contiguous part of the chain.
    Invalid,
}

/// `BuildLAM`: writes the logical addresses of the pages of the first `len` bytes of the chain.
///
/// A logical address is the address under which the kernel maps the page for good. The call maps no
/// memory, so a mapping needs no release. Any context.
pub(crate) fn build_lam(
    chain: &MdlChain,
    len: u64,
    mut out: Room<'_, u64>,
) -> Result<Lam, LamError> {
    if len == 0 || len > chain.len() || !chain.is_contiguous(len) {
        return Err(LamError::Invalid);
    }
    let offset = chain.base() % PAGE_SIZE;
    let pages = offset
        .checked_add(len)
        .ok_or(LamError::Invalid)?
        .div_ceil(PAGE_SIZE);
    let pages = u32::try_from(pages).map_err(|_| LamError::Invalid)?;
    // CAST: widening.
    if out.len() < pages as usize {
        return Err(LamError::TooSmall(pages));
    }
    let mut at = 0..pages as usize;
    let fits = chain.each_page(len, |page| at.next().is_some_and(|at| out.put(at, page)));
    if !fits {
        return Err(LamError::Invalid);
    }
    Ok(Lam {
        pages,
        // CAST: below the size of a page.
        offset: offset as u32,
    })
}

/// The pages and the place of a fast registration.
pub(crate) struct FastRegistration<'a> {
    pub(crate) pages: Pages<'a>,
    /// The offset of the region in the first page.
    pub(crate) offset: u32,
    pub(crate) len: u64,
    pub(crate) base: u64,
}

impl FastRegistration<'_> {
    /// The number of pages, if place and length fit them (FREG-02 to FREG-05).
    fn check(&self) -> Result<u32, NtStatus> {
        let offset = u64::from(self.offset);
        let pages = u32::try_from(self.pages.count()).map_err(|_| NtStatus::INVALID_PARAMETER)?;
        // OVERFLOW: 2^32 pages of 64 KiB have 2^48 bytes.
        let room = (u64::from(pages) * PAGE_SIZE).checked_sub(offset);
        let fits = offset < PAGE_SIZE
            && self.base % PAGE_SIZE == offset
            && room.is_some_and(|room| self.len <= room)
            && self.base.checked_add(self.len).is_some();
        NtStatus::INVALID_PARAMETER.unless(fits && pages > 0)?;
        Ok(pages)
    }
}

/// Returns the list for the engine: an element with an invalid logical address gets a token without
/// rights, so that the request fails in its turn (POST-09). Inline data has no token (SEND-09).
///
/// The elements are checked here, once and before any lock is taken: an element may be gigabytes
/// long. Bytes beyond the longest message are not checked, as no message touches them; nor are
/// elements beyond the sixty-fourth, which no queue takes.
pub(super) fn checked(posted: Posted<impl Elements>, is_inline: bool) -> Posted<impl Elements> {
    const _: () = assert!(MAX_SGES <= u64::BITS);
    let (mut wrong, mut left) = (0u64, MAX_MESSAGE);
    for (at, sge) in (0..u64::BITS).zip(posted.sges()) {
        let len = left.min(sge.len().into());
        left -= len;
        let is_privileged = sge.token() == Token::LOCAL_MEMORY && !is_inline;
        if is_privileged && !span::is_memory(sge.addr(), len) {
            wrong |= 1 << at;
        }
    }
    posted.only(move |at| {
        let at = u32::try_from(at).ok();
        at.and_then(|at| wrong.checked_shr(at))
            .is_some_and(|rest| rest & 1 == 0)
    })
}
