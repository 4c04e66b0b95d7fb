// SPDX-License-Identifier: GPL-2.0
// host-test

//! Queue pair states, and which may follow which.
//!
//! The states are those of RDMAP queue pairs as the verbs name them. Two transitions differ from
//! the table of InfiniBand and are what iWARP consumers expect: `Init` may be repeated, and
//! `Connected` is entered by the provider when the connection is up, not by the consumer.
//!
//! ```text
//! Reset -> Init -> Ready -> Connected -> Lost -> Error
//!   any state -> Error          Error, Init, Ready -> Reset
//! ```
//!
//! `Lost` is for queue pairs whose owner asked for it: the peer is gone, and what was posted waits
//! until the owner cancels it (NDKPI). Others go from `Connected` to `Error` (verbs).

/// The state of a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// New: nothing may be posted.
    Reset = 0,
    /// Receives may be posted.
    Init = 1,
    /// As `Init`; a connection is being set up.
    Ready = 2,
    /// Both queues work.
    Connected = 3,
    /// Everything posted is cancelled.
    Error = 4,
    /// The peer is gone; what was posted waits for its owner.
    Lost = 5,
}

/// What may be done with a request that a consumer posts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// Not in this state.
    Refuse,
    /// Queue it; it runs when its turn comes.
    Queue,
    /// Queue it; it completes as flushed behind everything before it.
    Flush,
}

impl State {
    /// Every state, in the order of their numbers.
    #[cfg(any(test, ndk_kunit))]
    pub(crate) const ALL: [Self; 6] = [
        Self::Reset,
        Self::Init,
        Self::Ready,
        Self::Connected,
        Self::Error,
        Self::Lost,
    ];

    /// The number under which the state is kept in an atomic word.
    pub(crate) const fn number(self) -> u32 {
        // CAST: the number that stands with the state.
        self as u32
    }

    /// The state of a number that [`State::number`] gave; any other number is `Error`.
    pub(crate) const fn from_number(n: u32) -> Self {
        match n {
            0 => Self::Reset,
            1 => Self::Init,
            2 => Self::Ready,
            3 => Self::Connected,
            5 => Self::Lost,
            _ => Self::Error,
        }
    }

    /// The state in a word.
    pub(crate) const fn name(self) -> &'static core::ffi::CStr {
        match self {
            Self::Reset => c"reset",
            Self::Init => c"init",
            Self::Ready => c"ready",
            Self::Connected => c"connected",
            Self::Error => c"error",
            Self::Lost => c"lost",
        }
    }

    /// Returns true if the queue pair may go from this state to `next`.
    pub(crate) const fn may_become(self, next: Self) -> bool {
        use State::*;
        match (self, next) {
            (_, Error) => true,
            (Reset, Reset | Init) => true,
            (Init, Reset | Init | Ready | Connected) => true,
            (Ready, Reset | Ready | Connected) => true,
            (Connected, Connected | Lost) => true,
            (Error, Reset) => true,
            (Reset | Init | Ready | Error | Lost, Lost) => false,
            (Reset, Ready | Connected) | (Ready, Init) => false,
            (Connected, Reset | Init | Ready) | (Error, Init | Ready | Connected) => false,
            (Lost, Reset | Init | Ready | Connected) => false,
        }
    }

    /// What becomes of a request posted to the send queue.
    pub(crate) const fn admit_send(self) -> Admission {
        match self {
            Self::Reset | Self::Init | Self::Ready | Self::Lost => Admission::Refuse,
            Self::Connected => Admission::Queue,
            Self::Error => Admission::Flush,
        }
    }

    /// What becomes of a receive.
    pub(crate) const fn admit_receive(self) -> Admission {
        match self {
            Self::Reset => Admission::Refuse,
            Self::Init | Self::Ready | Self::Connected | Self::Lost => Admission::Queue,
            Self::Error => Admission::Flush,
        }
    }
}

#[cfg_attr(ndk_kunit, kernel::macros::kunit_tests(ndk_engine_qp_state))]
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
        for (from, row) in State::ALL.into_iter().zip(table) {
            for (to, want) in State::ALL.into_iter().zip(row) {
                assert!(from.may_become(to) == want);
            }
        }
    }

    #[test]
    fn error_can_be_entered_from_every_state_and_repeated() {
        for s in State::ALL {
            assert!(s.may_become(State::Error));
        }
    }

    #[test]
    fn sends_are_refused_before_the_connection_and_flushed_after_it() {
        assert!(State::Ready.admit_send() == Admission::Refuse);
        assert!(State::Lost.admit_send() == Admission::Refuse);
        assert!(State::Connected.admit_send() == Admission::Queue);
        assert!(State::Error.admit_send() == Admission::Flush);
    }

    #[test]
    fn receives_are_taken_from_init_on() {
        assert!(State::Reset.admit_receive() == Admission::Refuse);
        for s in [State::Init, State::Ready, State::Connected, State::Lost] {
            assert!(s.admit_receive() == Admission::Queue);
        }
        assert!(State::Error.admit_receive() == Admission::Flush);
    }

    #[test]
    fn numbers_and_states_match() {
        for s in State::ALL {
            assert!(State::from_number(s.number()) == s);
        }
        assert!(State::from_number(77) == State::Error);
    }
}
