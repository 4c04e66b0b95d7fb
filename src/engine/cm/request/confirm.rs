// SPDX-License-Identifier: GPL-2.0

//! The time between the passive side's yes and the active side's confirmation (NDKPI).
//!
//! ```text
//! connect ---------------------->  request
//!                                  accept / reject
//! reply(Ok)  <------------------
//! confirm / abandon ------------>                       (or withdraw, or nothing in time)
//!            <- both attached ->   established / not_established
//! ```
//!
//! Tests: `engine/cm/request/tests.rs`.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    Acceptance,
    ConnectError,
    ConnectRequest,
    Stage, //
};
use crate::engine::{
    qp::{
        state::State,
        QueuePair, //
    },
    status::Status, //
};

impl ConnectRequest {
    /// The passive side takes back what it accepted; false when it does not wait any more. It is
    /// told as if the active side had given up, and the active side hears of it when it confirms.
    /// Not before the accept has returned.
    pub(crate) fn withdraw(&self) -> bool {
        self.end_wait(ConnectError::Gone, Status::Aborted)
    }

    /// Tells the active side, whose confirmation is waited for.
    pub(super) fn wait(
        self: &Arc<Self>,
        acceptance: Acceptance,
        private_data: &[u8],
    ) -> Result<(), ConnectError> {
        if !may_connect(&acceptance.side.qp) {
            return Err(ConnectError::NotReady);
        }
        let theirs = acceptance.theirs;
        let mut state = self.state.lock();
        if matches!(state.stage, Stage::Decided { abandoned: true }) {
            drop(state);
            return Err(ConnectError::Gone);
        }
        state.stage = Stage::Accepted(acceptance);
        self.set_deadline(&mut state, self.cm.timeouts.confirm_ms);
        drop(state);
        if self.params.events.reply(Ok(theirs), private_data).is_err() {
            // The active side never hears that there is something to confirm.
            self.withdraw();
            self.answer_no(Status::Aborted, &[]);
        }
        Ok(())
    }

    /// The active side says that it wants the connection that it was notified of: both are
    /// connected, and the passive side is notified so before this returns. May sleep.
    ///
    /// Where the passive side was connected when it accepted, this only returns true if the
    /// connection is still there. After an error nothing comes of the request any more, but for
    /// [`ConnectError::NotReady`] where there was nothing to confirm.
    pub(crate) fn confirm(&self) -> Result<(), ConnectError> {
        let Some(acceptance) = self.take_acceptance(Stage::Decided { abandoned: false }) else {
            return self.outcome();
        };
        let attached = match may_connect(&self.params.qp) {
            true => self.attach(&acceptance, ConnectError::Gone, ConnectError::NotReady),
            false => Err(ConnectError::NotReady),
        };
        match attached {
            Ok(()) => self.active.up(),
            Err(why) => {
                self.state.lock().stage = Stage::Over(why);
                self.count_failure();
                acceptance.side.events.not_established(Status::Aborted);
            }
        }
        attached
    }

    /// What a confirmation that has nothing to decide is notified.
    fn outcome(&self) -> Result<(), ConnectError> {
        let is_gone = self.active.is_gone();
        match self.state.lock().stage {
            Stage::Open | Stage::Decided { .. } | Stage::Accepted(_) => Err(ConnectError::NotReady),
            Stage::Over(why) => Err(why),
            Stage::Connected if is_gone => Err(ConnectError::Gone),
            Stage::Connected => Ok(()),
        }
    }

    /// Takes what the passive side accepted with, for who sees to what follows; there is one.
    fn take_acceptance(&self, next: Stage) -> Option<Acceptance> {
        let mut state = self.state.lock();
        match core::mem::replace(&mut state.stage, next) {
            Stage::Accepted(acceptance) => {
                drop(state);
                self.timer.cancel();
                Some(acceptance)
            }
            other => {
                state.stage = other;
                None
            }
        }
    }

    /// Ends the wait for the active side and tells the passive one; whoever comes second ends
    /// nothing.
    pub(super) fn end_wait(&self, why: ConnectError, status: Status) -> bool {
        let Some(acceptance) = self.take_acceptance(Stage::Over(why)) else {
            return false;
        };
        self.count_failure();
        acceptance.side.events.not_established(status);
        true
    }
}

/// Returns true if the queue pair is in a state in which it can be connected.
fn may_connect(qp: &QueuePair) -> bool {
    matches!(qp.state(), State::Init | State::Ready)
}
