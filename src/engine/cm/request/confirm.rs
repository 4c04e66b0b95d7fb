// SPDX-License-Identifier: GPL-2.0

//! The confirmation of an accept by the active side, if both sides want that (NDKPI).
//!
//! ```text
//! Decided --> Accepted --> Decided --> Connected    confirmed
//!                 |           \-----> Over         could not be connected
//!                 \-----------------> Over         abandoned, withdrawn, timed out
//!
//! connect ---------------------->  request
//!                                  accept / reject
//! reply(Ok)  <------------------
//! confirm / abandon ------------>                       (or withdraw, or timeout)
//!            <- both attached ->   established / not_established
//! ```
//!
//! Tests: `engine/cm/request/tests.rs`.

use super::{
    may_connect,
    Acceptance,
    ConnectError,
    ConnectRequest,
    Endpoint,
    RequestState, //
};
use crate::engine::prelude::*;

impl ConnectRequest {
    /// Notifies the active side of the accept, and sets the deadline of its confirmation.
    pub(super) fn wait_for_confirmation(
        self: &Arc<Self>,
        active: &Endpoint,
        acceptance: Acceptance,
        private_data: &[u8],
    ) -> Result<(), ConnectError> {
        if !may_connect(&acceptance.endpoint.qp) {
            return Err(ConnectError::NotReady);
        }
        let theirs = acceptance.active_limits;
        let mut pending = self.pending.lock();
        if matches!(pending.state, RequestState::Decided { abandoned: true }) {
            drop(pending);
            return Err(ConnectError::Aborted);
        }
        pending.state = RequestState::Accepted(acceptance);
        self.set_deadline(&mut pending, self.cm.timeouts.confirm_ms);
        drop(pending);
        if active.events.reply(Ok(theirs), private_data).is_err() {
            // The active side does not learn of the accept, and cannot confirm it.
            self.withdraw();
            self.active.refuse(Status::Aborted, &[]);
        }
        Ok(())
    }

    /// Confirms the accept, for the active side: both sides are connected, and the passive side is
    /// notified before the return. May sleep.
    ///
    /// If both sides were connected at the accept, this changes no state, and fails if the
    /// connection has ended since. After an error the request is over, unless there was no accept
    /// to confirm ([`ConnectError::NotReady`]).
    pub(crate) fn confirm(&self) -> Result<(), ConnectError> {
        let active = self.active.local().ok_or(ConnectError::NotReady)?;
        let Some(acceptance) = self.take_acceptance(RequestState::Decided { abandoned: false })
        else {
            let is_gone = active.is_gone();
            return match self.pending.lock().state {
                RequestState::Open | RequestState::Decided { .. } | RequestState::Accepted(_) => {
                    Err(ConnectError::NotReady)
                }
                RequestState::Over(why) => Err(why),
                RequestState::Connected if is_gone => Err(ConnectError::Aborted),
                RequestState::Connected => Ok(()),
            };
        };
        let attached = match may_connect(&active.qp) {
            true => self.attach(
                active,
                &acceptance,
                ConnectError::Aborted,
                ConnectError::NotReady,
            ),
            false => Err(ConnectError::NotReady),
        };
        match attached {
            Ok(()) => active.up(),
            Err(why) => {
                self.pending.lock().state = RequestState::Over(why);
                self.active.count_failure();
                acceptance.endpoint.events.not_established(Status::Aborted);
            }
        }
        attached
    }

    /// Takes the accept back, for the passive side. The passive side is notified as if the active
    /// side had given up; the confirmation of the active side fails. Not before the accept has
    /// returned.
    ///
    /// Returns false if no confirmation is due.
    pub(crate) fn withdraw(&self) -> bool {
        self.fail_acceptance(ConnectError::Aborted, Status::Aborted)
    }

    /// Ends the wait for the confirmation, and notifies the passive side. Returns false if no
    /// confirmation was due.
    pub(super) fn fail_acceptance(&self, why: ConnectError, status: Status) -> bool {
        let Some(acceptance) = self.take_acceptance(RequestState::Over(why)) else {
            return false;
        };
        self.active.count_failure();
        acceptance.endpoint.events.not_established(status);
        true
    }

    /// Takes the acceptance and sets the next state; `None` if no confirmation is due.
    fn take_acceptance(&self, next: RequestState) -> Option<Acceptance> {
        let mut pending = self.pending.lock();
        match core::mem::replace(&mut pending.state, next) {
            RequestState::Accepted(acceptance) => {
                drop(pending);
                self.timer.cancel();
                Some(acceptance)
            }
            other => {
                pending.state = other;
                None
            }
        }
    }
}
