// SPDX-License-Identifier: GPL-2.0

//! The active side has the last word where both sides want that (NDKPI): what is accepted waits for
//! its confirmation.
//!
//! ```text
//! Decided --> Accepted --> Decided --> Connected    confirmed
//!                 |           \-----> Over         could not be connected
//!                 \-----------------> Over         abandoned, withdrawn, timed out
//!
//! connect ---------------------->  request
//!                                  accept / reject
//! reply(Ok)  <------------------
//! confirm / abandon ------------>                       (or withdraw, or nothing in time)
//!            <- both attached ->   established / not_established
//! ```
//!
//! Tests: `engine/cm/request/tests.rs`.

use super::{
    may_connect,
    Acceptance,
    ConnectError,
    ConnectRequest,
    RequestState, //
};
use crate::engine::prelude::*;

impl ConnectRequest {
    /// Notifies the active side, whose confirmation is waited for.
    pub(super) fn wait_for_confirmation(
        self: &Arc<Self>,
        acceptance: Acceptance,
        private_data: &[u8],
    ) -> Result<(), ConnectError> {
        if !may_connect(&acceptance.endpoint.qp) {
            return Err(ConnectError::NotReady);
        }
        let theirs = acceptance.theirs;
        let mut pending = self.pending.lock();
        if matches!(pending.state, RequestState::Decided { abandoned: true }) {
            drop(pending);
            return Err(ConnectError::Aborted);
        }
        pending.state = RequestState::Accepted(acceptance);
        self.set_deadline(&mut pending, self.cm.timeouts.confirm_ms);
        drop(pending);
        if self.params.events.reply(Ok(theirs), private_data).is_err() {
            // The active side never hears that there is something to confirm.
            self.withdraw();
            self.reply_failure(Status::Aborted, &[]);
        }
        Ok(())
    }

    /// The active side says that it wants the connection that it was notified of: both are
    /// connected, and the passive side is notified so before this returns. May sleep.
    ///
    /// Where the passive side was connected when it accepted, nothing changes: this is an error if
    /// the connection has ended since. After an error the request is over, except after
    /// [`ConnectError::NotReady`]: there was nothing to confirm.
    pub(crate) fn confirm(&self) -> Result<(), ConnectError> {
        let Some(acceptance) = self.take_acceptance(RequestState::Decided { abandoned: false })
        else {
            let is_gone = self.active.is_gone();
            return match self.pending.lock().state {
                RequestState::Open | RequestState::Decided { .. } | RequestState::Accepted(_) => {
                    Err(ConnectError::NotReady)
                }
                RequestState::Over(why) => Err(why),
                RequestState::Connected if is_gone => Err(ConnectError::Aborted),
                RequestState::Connected => Ok(()),
            };
        };
        let attached = match may_connect(&self.params.qp) {
            true => self.attach(&acceptance, ConnectError::Aborted, ConnectError::NotReady),
            false => Err(ConnectError::NotReady),
        };
        match attached {
            Ok(()) => self.active.up(),
            Err(why) => {
                self.pending.lock().state = RequestState::Over(why);
                self.count_failure();
                acceptance.endpoint.events.not_established(Status::Aborted);
            }
        }
        attached
    }

    /// The passive side takes back what it accepted. It is notified as if the active side had given
    /// up, and the active side learns it when it confirms. Not before the accept has returned.
    ///
    /// Returns false if it does not wait any more.
    pub(crate) fn withdraw(&self) -> bool {
        self.fail_pending(ConnectError::Aborted, Status::Aborted)
    }

    /// Ends the wait for the active side and notifies the passive one; whoever comes second ends
    /// nothing.
    pub(super) fn fail_pending(&self, why: ConnectError, status: Status) -> bool {
        let Some(acceptance) = self.take_acceptance(RequestState::Over(why)) else {
            return false;
        };
        self.count_failure();
        acceptance.endpoint.events.not_established(status);
        true
    }

    /// Takes what the passive side accepted with, for who sees to what follows; there is one.
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
