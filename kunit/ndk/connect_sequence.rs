// SPDX-License-Identifier: GPL-2.0

//! [`Steps`]: a connection of two sides, step by step.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    completion::{
        log_status,
        AutoClose,
        CallbackValue, //
    },
    host::here,
    pair::{
        Pair,
        READS, //
    }, //
};
use crate::ndk::{
    connector::{
        Connector,
        Source, //
    },
    status::NtStatus, //
};

/// The two connectors, and the calls that are pending.
pub(super) struct Steps {
    pub(super) ours: AutoClose<Connector>,
    pub(super) theirs: AutoClose<Connector>,
    pub(super) connected: Arc<CallbackValue<NtStatus>>,
    pub(super) accepted: Arc<CallbackValue<NtStatus>>,
    pub(super) completed: Arc<CallbackValue<NtStatus>>,
}

impl Steps {
    /// `a` asks, and `b` has the request. May sleep.
    pub(super) fn ask(pair: &Pair) -> Result<Self> {
        let ours = pair.test_host.adapter.create_connector();
        let ours = ours.map(AutoClose::new).map_err(log_status)?;
        let connected = CallbackValue::new()?;
        let asking = ours.connect(
            &pair.a.qp,
            (Source::Address(here(0)), pair.open_listener.at),
            READS,
            KVec::new(),
            connected.callback()?,
        );
        asking.map_err(log_status)?;
        Ok(Self {
            ours,
            theirs: pair.open_listener.incoming()?,
            connected,
            accepted: CallbackValue::new()?,
            completed: CallbackValue::new()?,
        })
    }

    /// `b` accepts, and `a` has the answer: Connect is over, Accept is not.
    pub(super) fn accept(&self, pair: &Pair) -> Result {
        let user = pair.b.disconnect_user()?;
        let done = self.accepted.callback()?;
        let accepting = self
            .theirs
            .accept(&pair.b.qp, READS, KVec::new(), user, done);
        accepting.map_err(log_status)?;
        self.connected.came(NtStatus::SUCCESS)
    }

    /// `a` completes the connection.
    pub(super) fn complete(&self, pair: &Pair) -> Result {
        let user = pair.a.disconnect_user()?;
        let completing = self.ours.complete_connect(user, self.completed.callback()?);
        completing.map_err(log_status)?;
        self.completed.came(NtStatus::SUCCESS)?;
        self.accepted.came(NtStatus::SUCCESS)
    }

    /// Gives the connectors to the pair, which is connected now.
    pub(super) fn finish(self, pair: &mut Pair) {
        pair.a.connector = Some(self.ours);
        pair.b.connector = Some(self.theirs);
    }
}
