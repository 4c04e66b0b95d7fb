// SPDX-License-Identifier: GPL-2.0
// host-test

//! Queue pairs: their states, which state may follow which, and their sizes.
//!
//! The states are those of RDMAP queue pairs as the verbs name them. Two transitions differ from
//! the table of InfiniBand, as iWARP consumers expect: `Init` may be repeated, and `Rts` is entered
//! by the provider when the connection is up, not by the consumer.
//!
//! ```text
//! Reset -> Init -> Rtr -> Rts -> Lost -> Err
//!   any state -> Err            Err, Init, Rtr -> Reset
//! ```
//!
//! `Lost` is for queue pairs whose owner asked for it: the peer is gone, and posted requests wait
//! until the owner cancels them (NDKPI). Other queue pairs go from `Rts` to `Err` (verbs).
//!
//! SQD and SQE of the verbs are no states here: a change to SQD asks for a graceful close, and SQE
//! is not for connections.

/// The state of a queue pair. C: `enum ib_qp_state`, without SQD and SQE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QpState {
    /// New: no request may be posted.
    Reset = 0,
    /// Receives may be posted.
    Init = 1,
    /// As `Init`; a connection is being set up.
    Rtr = 2,
    /// Connected: both queues work.
    Rts = 3,
    /// All posted requests are cancelled.
    Err = 6,
    /// The peer is gone; posted requests wait for the owner. Only NDKPI has this state.
    Lost = 7,
}

/// The fate of a request that a consumer posts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// Refused in this state.
    Refuse,
    /// Queued; the request runs in its turn.
    Queue,
    /// Queued; the request completes as flushed, behind all earlier requests.
    Flush,
}

impl QpState {
    /// Every state, in the order of their numbers.
    pub(crate) const ALL: [Self; 6] = [
        Self::Reset,
        Self::Init,
        Self::Rtr,
        Self::Rts,
        Self::Err,
        Self::Lost,
    ];

    /// The number under which the state is kept in an atomic word.
    pub(crate) const fn number(self) -> u32 {
        // CAST: the number that stands with the state.
        self as u32
    }

    /// The state of a number that [`QpState::number`] gave; any other number is `Err`.
    pub(crate) const fn from_number(n: u32) -> Self {
        match n {
            0 => Self::Reset,
            1 => Self::Init,
            2 => Self::Rtr,
            3 => Self::Rts,
            7 => Self::Lost,
            _ => Self::Err,
        }
    }

    /// The state in a word.
    pub(crate) const fn name(self) -> &'static core::ffi::CStr {
        match self {
            Self::Reset => c"reset",
            Self::Init => c"init",
            Self::Rtr => c"ready",
            Self::Rts => c"connected",
            Self::Err => c"error",
            Self::Lost => c"lost",
        }
    }

    /// Returns true if the queue pair may go from this state to `next`.
    pub(crate) const fn may_become(self, next: Self) -> bool {
        use QpState::*;
        match (self, next) {
            (_, Err) => true,
            (Reset, Reset | Init) => true,
            (Init, Reset | Init | Rtr | Rts) => true,
            (Rtr, Reset | Rtr | Rts) => true,
            (Rts, Rts | Lost) => true,
            (Err, Reset) => true,
            (Reset | Init | Rtr | Err | Lost, Lost) => false,
            (Reset, Rtr | Rts) | (Rtr, Init) => false,
            (Rts, Reset | Init | Rtr) | (Err, Init | Rtr | Rts) => false,
            (Lost, Reset | Init | Rtr | Rts) => false,
        }
    }

    /// The fate of a request posted to the send queue.
    pub(crate) const fn admit_send(self) -> Admission {
        match self {
            Self::Reset | Self::Init | Self::Rtr | Self::Lost => Admission::Refuse,
            Self::Rts => Admission::Queue,
            Self::Err => Admission::Flush,
        }
    }

    /// The fate of a receive.
    pub(crate) const fn admit_receive(self) -> Admission {
        match self {
            Self::Reset => Admission::Refuse,
            Self::Init | Self::Rtr | Self::Rts | Self::Lost => Admission::Queue,
            Self::Err => Admission::Flush,
        }
    }
}

/// The sizes of a queue pair. C: `struct ib_qp_cap`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QpCaps {
    /// Requests outstanding on the send queue.
    pub(crate) send_wr: u32,
    /// Requests outstanding on the receive queue.
    pub(crate) recv_wr: u32,
    /// Elements of a send or a write.
    pub(crate) send_sge: u32,
    /// Elements of a receive.
    pub(crate) recv_sge: u32,
    /// Elements of a read or an atomic. C has no such field.
    pub(crate) read_sge: u32,
    /// Bytes that a request may carry inline.
    pub(crate) inline_data: u32,
}

impl QpCaps {
    /// No room at all.
    pub(crate) const NONE: Self = Self {
        send_wr: 0,
        recv_wr: 0,
        send_sge: 0,
        recv_sge: 0,
        read_sge: 0,
        inline_data: 0,
    };

    /// Returns true if no size is above that of `most`. Consumers do not ask for elements of a
    /// read.
    pub(crate) const fn is_within(&self, most: &Self) -> bool {
        self.send_wr <= most.send_wr
            && self.recv_wr <= most.recv_wr
            && self.send_sge <= most.send_sge
            && self.recv_sge <= most.recv_sge
            && self.inline_data <= most.inline_data
    }
}

#[cfg_attr(ndk_kunit, kernel::macros::kunit_tests(ndk_rdma_values_qp))]
#[cfg(any(test, ndk_kunit))]
mod tests {
    use super::*;

    #[test]
    fn the_whole_transition_table() {
        // Rows: from; columns: to; in the order of `ALL`.
        let table = [
            [true, true, false, false, true, false],
            [true, true, true, true, true, false],
            [true, false, true, true, true, false],
            [false, false, false, true, true, true],
            [true, false, false, false, true, false],
            [false, false, false, false, true, false],
        ];
        for (from, row) in QpState::ALL.into_iter().zip(table) {
            for (to, want) in QpState::ALL.into_iter().zip(row) {
                assert_eq!(from.may_become(to), want);
            }
        }
    }

    #[test]
    fn error_can_be_entered_from_every_state_and_repeated() {
        for s in QpState::ALL {
            assert!(s.may_become(QpState::Err));
        }
    }

    #[test]
    fn sends_are_refused_before_the_connection_and_flushed_after_it() {
        assert_eq!(QpState::Rtr.admit_send(), Admission::Refuse);
        assert_eq!(QpState::Lost.admit_send(), Admission::Refuse);
        assert_eq!(QpState::Rts.admit_send(), Admission::Queue);
        assert_eq!(QpState::Err.admit_send(), Admission::Flush);
    }

    #[test]
    fn receives_are_taken_from_init_on() {
        assert_eq!(QpState::Reset.admit_receive(), Admission::Refuse);
        for s in [QpState::Init, QpState::Rtr, QpState::Rts, QpState::Lost] {
            assert_eq!(s.admit_receive(), Admission::Queue);
        }
        assert_eq!(QpState::Err.admit_receive(), Admission::Flush);
    }

    #[test]
    fn numbers_and_states_match() {
        for s in QpState::ALL {
            assert_eq!(QpState::from_number(s.number()), s);
        }
        assert_eq!(QpState::from_number(77), QpState::Err);
    }
}
