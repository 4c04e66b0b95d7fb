// SPDX-License-Identifier: GPL-2.0

//! The time between the passive side's yes and the active side's last word.
//!
//! Tests: `engine/cm/request/tests.rs`.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{AcceptError, Acceptance, AttachError, ConnectRequest, Stage};
use crate::{
    engine::{
        counters::Counter,
        qp::{
            state::State,
            QueuePair, //
        },
        status::Status, //
    },
    sys::time, //
};

/// Why the active side's confirmation came to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConfirmError {
    /// Either side has given up, or the connection between the two is gone.
    Gone,
    /// It came too late.
    TimedOut,
    /// There is nothing to confirm, or the queue pair cannot be connected.
    NotReady,
    /// No memory.
    NoMemory,
}

impl ConnectRequest {
    /// The passive side takes back what it accepted; false when it does not wait any more. It is
    /// told as if the active side had given up, and the active side hears of it when it confirms.
    /// Not before the accept has returned.
    pub(crate) fn withdraw(&self) -> bool {
        self.end_wait(ConfirmError::Gone, Status::Aborted)
    }

    /// Tells the active side, whose confirmation is waited for.
    pub(super) fn wait(
        self: &Arc<Self>,
        mut acceptance: Acceptance,
        private_data: &[u8],
    ) -> Result<(), AcceptError> {
        if !may_connect(acceptance.side.qp()) {
            return Err(AcceptError::NotReady);
        }
        let theirs = acceptance.theirs;
        let ms = self.cm.timeouts.confirm_ms;
        acceptance.until_ms = time::now_ms().saturating_add(ms.into());
        let mut stage = self.stage.lock();
        if matches!(*stage, Stage::Decided { abandoned: true }) {
            drop(stage);
            return Err(AcceptError::Gone);
        }
        *stage = Stage::Accepted(acceptance);
        self.timer.arm(self, ms);
        drop(stage);
        if self.ask.events.reply(Ok(theirs), private_data).is_err() {
            // The active side never hears that there is something to confirm.
            self.end_wait(ConfirmError::Gone, Status::Aborted);
            self.answer_no(Status::Aborted, &[]);
        }
        Ok(())
    }

    /// The active side says that it wants the connection that it was notified of: both are
    /// connected, and the passive side is notified so before this returns. May sleep.
    ///
    /// Where the passive side was connected when it accepted, this only returns true if the
    /// connection is still there. After an error nothing comes of the offer any more, but for
    /// [`ConfirmError::NotReady`] where there was nothing to confirm.
    pub(crate) fn confirm(&self) -> Result<(), ConfirmError> {
        let Some(acceptance) = self.take_acceptance(Stage::DECIDED) else {
            return self.outcome();
        };
        let ready = match may_connect(&self.ask.qp) {
            true => Ok(()),
            false => Err(ConfirmError::NotReady),
        };
        let attached = ready.and_then(|()| {
            self.attach(&acceptance).map_err(|why| match why {
                AttachError::NoMemory => ConfirmError::NoMemory,
                AttachError::Passive => ConfirmError::Gone,
                AttachError::Active => ConfirmError::NotReady,
            })
        });
        if let Err(why) = attached {
            *self.stage.lock() = Stage::Over(why);
            let device = self.ask.qp.device();
            device.count(Counter::ConnectFailures, 1);
            acceptance.side.events().not_established(Status::Aborted);
            return Err(why);
        }
        self.tell_passive(&acceptance);
        self.active.up();
        Ok(())
    }

    /// What a confirmation that has nothing to decide is notified.
    fn outcome(&self) -> Result<(), ConfirmError> {
        match &*self.stage.lock() {
            Stage::Open { .. } | Stage::Decided { .. } | Stage::Accepted(_) => {
                return Err(ConfirmError::NotReady)
            }
            Stage::Over(why) => return Err(*why),
            Stage::Connected => {}
        }
        match self.active.is_gone() {
            true => Err(ConfirmError::Gone),
            false => Ok(()),
        }
    }

    /// How long the active side may still be waited for, in milliseconds, if it is.
    ///
    /// A timer that was cancelled too late may come for nothing; time that is left starts it anew.
    pub(super) fn wait_on(self: &Arc<Self>) -> Option<u64> {
        let stage = self.stage.lock();
        let Stage::Accepted(acceptance) = &*stage else {
            return None;
        };
        let left = acceptance.until_ms.saturating_sub(time::now_ms());
        if left > 0 {
            // Under the lock, as in `answer_within`.
            self.timer
                .arm(self, u32::try_from(left).unwrap_or(u32::MAX));
        }
        Some(left)
    }

    /// Takes what the passive side accepted with, for who sees to what follows; there is one.
    fn take_acceptance(&self, next: Stage) -> Option<Acceptance> {
        let mut stage = self.stage.lock();
        if !matches!(*stage, Stage::Accepted(_)) {
            return None;
        }
        let old = core::mem::replace(&mut *stage, next);
        drop(stage);
        self.timer.cancel();
        match old {
            Stage::Accepted(acceptance) => Some(acceptance),
            Stage::Open { .. } | Stage::Decided { .. } | Stage::Connected | Stage::Over(_) => None,
        }
    }

    /// Ends the wait for the active side and tells the passive one; whoever comes second ends
    /// nothing.
    pub(super) fn end_wait(&self, why: ConfirmError, status: Status) -> bool {
        let acceptance = self.take_acceptance(Stage::Over(why));
        let Some(Acceptance { side, .. }) = acceptance else {
            return false;
        };
        let device = self.ask.qp.device();
        device.count(Counter::ConnectFailures, 1);
        side.events().not_established(status);
        true
    }
}

/// Returns true if the queue pair is in a state in which it can be connected.
fn may_connect(qp: &QueuePair) -> bool {
    matches!(qp.state(), State::Init | State::Ready)
}
