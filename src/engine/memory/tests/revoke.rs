// SPDX-License-Identifier: GPL-2.0

//! Invalidation by the owner and by the peer: permission, refusal, and the last access.

use kernel::prelude::*;

use super::*;
use crate::{
    engine::memory::{
        slot::{
            Kind,
            Slot, //
        },
        RevokeError, //
    },
    kunit::harness::cases, //
};

/// The object in a slot at the time of an invalidation.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stands {
    FastNew,
    FastValid,
    FastInvalid,
    FastDraining,
    Fixed,
    WindowNew,
    WindowBound,
    WindowInvalid,
    Gone,
}

const STANDS: [Stands; 9] = [
    Stands::FastNew,
    Stands::FastValid,
    Stands::FastInvalid,
    Stands::FastDraining,
    Stands::Fixed,
    Stands::WindowNew,
    Stands::WindowBound,
    Stands::WindowInvalid,
    Stands::Gone,
];

impl Stands {
    /// Returns true if the owner may invalidate the object.
    fn is_revocable(self) -> bool {
        !matches!(self, Self::Fixed | Self::Gone)
    }

    /// Returns true if there is a registration to invalidate.
    fn is_valid(self) -> bool {
        matches!(self, Self::FastValid | Self::WindowBound | Self::Fixed)
    }
}

/// Makes a slot of the wanted kind and state.
fn make(store: &Store, what: Stands) -> Result<Token> {
    let window = || -> Result<Token> {
        let region = store.fixed(64, ALL)?;
        let window = store.table.add_window(OWN, None)?;
        let bound = store.table.bind(window, region, PEER, ALL, BASE, 64);
        bound.map_err(|_| EINVAL)?;
        Ok(window)
    };
    let end = |token: Token| store.table.revoke(token, OWN).map_err(|_| EINVAL);
    Ok(match what {
        Stands::FastNew => store.fast(1)?,
        Stands::FastValid => store.registered(64, ALL)?,
        Stands::FastInvalid | Stands::FastDraining => {
            let token = store.registered(64, ALL)?;
            end(token)?;
            token
        }
        Stands::Fixed => store.fixed(64, ALL)?,
        Stands::WindowNew => store.table.add_window(OWN, None)?,
        Stands::WindowBound => window()?,
        Stands::WindowInvalid => {
            let token = window()?;
            end(token)?;
            token
        }
        Stands::Gone => {
            let token = store.fixed(64, ALL)?;
            store.table.remove(token.index());
            token
        }
    })
}

#[kernel::macros::kunit_tests(ndk_engine_memory_tests_revoke)]
mod tests {
    use super::*;

    #[test]
    fn what_an_owner_may_invalidate() -> Result {
        for what in cases(STANDS) {
            for domain in cases([OWN, OTHER]) {
                for by in cases([0, 1, 128, 255]) {
                    let store = Store::new(64)?;
                    let token = make(&store, what)?;
                    let asked = bumped(token, by);
                    let want = if domain != OWN || !what.is_revocable() {
                        Err(RevokeError::NotAllowed)
                    } else if !what.is_valid() {
                        Err(RevokeError::AlreadyInvalid)
                    } else if by != 0 {
                        Err(RevokeError::NotAllowed)
                    } else {
                        Ok(())
                    };
                    kunit_assert_eq!(store.table.revoke(asked, domain), want);
                    kunit_assert_eq!(store.takes(token), what.is_valid() && want.is_err());
                }
            }
        }
        Ok(())
    }

    #[test]
    fn what_a_peer_may_invalidate() -> Result {
        for what in cases(STANDS) {
            for user in cases([PEER, OTHER_PEER, STRANGER, OWNER]) {
                for by in cases([0, 1, 128, 255]) {
                    let store = Store::new(64)?;
                    let token = make(&store, what)?;
                    let asked = bumped(token, by);
                    let own_window = what != Stands::WindowBound || user.qp == PEER.qp;
                    let legal = by == 0
                        && user.domain == OWN
                        && what.is_revocable()
                        && what.is_valid()
                        && own_window;
                    let want = if legal {
                        Ok(())
                    } else {
                        Err(RevokeError::NotAllowed)
                    };
                    kunit_assert_eq!(store.table.revoke_remote(asked, user), want);
                    kunit_assert_eq!(store.takes(token), what.is_valid() && want.is_err());
                }
            }
        }
        Ok(())
    }

    #[test]
    fn a_refusal_changes_nothing() -> Result {
        for what in cases([Stands::FastValid, Stands::Fixed, Stands::WindowBound]) {
            let store = Store::new(64)?;
            let token = make(&store, what)?;
            let wrong = bumped(token, 1);
            assert!(store.table.revoke(wrong, OWN).is_err());
            assert!(store.table.revoke(token, OTHER).is_err());
            assert!(store.table.revoke_remote(wrong, PEER).is_err());
            assert!(store.table.revoke_remote(token, STRANGER).is_err());
            kunit_assert_eq!(store.put(token, BASE, &[1; 64]), Ok(()));
            assert!(store.buffer.is(0, 64, 1));
            for wanted in cases((0..16).map(AccessFlags::from_bits)) {
                assert!(store.table.access(token, PEER, wanted, BASE, 64).is_ok());
            }
            let beyond = store.table.access(token, PEER, READ, BASE, 65);
            assert!(matches!(beyond, Err(Denied::Bounds)));
            kunit_assert_eq!(store.denial(wrong), Some(Denied::Token));
        }
        Ok(())
    }

    #[test]
    fn a_revocation_ends_access_at_once_and_is_drained_with_the_last() -> Result {
        let store = Store::new(64)?;
        let token = store.registered(64, ALL)?;
        let access = || {
            store
                .table
                .access(token, PEER, AccessFlag::RemoteWrite, BASE, 64)
        };
        let (first, second) = (access(), access());
        assert!(first.is_ok());
        assert!(second.is_ok());
        kunit_assert_eq!(store.table.revoke(token, OWN), Ok(()));
        assert!(matches!(access(), Err(Denied::Token)));
        assert!(!store.table.is_drained(token));
        drop(first);
        assert!(!store.table.is_drained(token));
        // The second access goes on undisturbed.
        assert!(second
            .as_ref()
            .is_ok_and(|a| a.run(0).write(&[3; 64]) == Ok(64)));
        assert!(store.buffer.is(0, 64, 3));
        drop(second);
        assert!(store.table.is_drained(token));
        assert!(matches!(access(), Err(Denied::Token)));
        Ok(())
    }

    #[test]
    fn a_second_revocation_does_not_hide_that_the_first_is_not_drained() -> Result {
        let store = Store::new(64)?;
        let token = store.registered(64, ALL)?;
        let access = store.table.access(token, PEER, READ, BASE, 64);
        assert!(access.is_ok());
        kunit_assert_eq!(store.table.revoke_remote(token, PEER), Ok(()));
        let again = store.table.revoke(token, OWN);
        kunit_assert_eq!(again, Err(RevokeError::AlreadyInvalid));
        assert!(!store.table.is_drained(token));
        kunit_assert_eq!(
            store.table.revoke_remote(token, PEER),
            Err(RevokeError::NotAllowed)
        );
        assert!(!store.table.is_drained(token));
        drop(access);
        assert!(store.table.is_drained(token));
        Ok(())
    }

    #[test]
    fn a_slot_does_not_change_hands_between_the_check_and_the_end() -> Result {
        let store = Store::new(64)?;
        for unused in cases([false, true]) {
            for steady in cases([false, true]) {
                let own = match steady {
                    true => store.table.add_fast_steady(OWN, 1)?,
                    false => store.fast(1)?,
                };
                store.stage(own, &[(0, 64)])?;
                let token = bumped(own, u8::from(steady));
                assert!(store.register(token, ALL, 64));
                let slot = store.table.slot(own.index()).ok_or(EINVAL)?;
                // As if another task removed the region in between.
                let mut is_gone = true;
                let may = |slot: &Slot| {
                    is_gone = slot.release();
                    true
                };
                let ended = match unused {
                    true => slot.close_unused_as_owner(own.key(), may),
                    false => slot.close_as_owner(own.key(), may) == Some(Ok(())),
                };
                // The removal closed the gate, and goes on after this call.
                assert!(!ended);
                assert!(!is_gone);
                assert!(slot.is(OWN, Kind::Fast));
                store.table.remove(own.index());
                assert!(!slot.is(OWN, Kind::Fast));
            }
        }
        Ok(())
    }

    #[test]
    fn who_may_not_end_what_is_valid_does_not_end_it() -> Result {
        let store = Store::new(64)?;
        let token = store.registered(64, ALL)?;
        let slot = store.table.slot(token.index()).ok_or(EINVAL)?;
        assert!(slot.close_as_owner(token.key(), |_| false).is_none());
        assert!(!slot.close_unused_as_owner(token.key(), |_| false));
        assert!(store.takes(token));
        assert!(slot.close_unused_as_owner(token.key(), |slot| slot.is(OWN, Kind::Fast)));
        assert!(!store.takes(token));
        assert!(store.table.is_drained(token));
        Ok(())
    }

    #[test]
    fn an_older_revocation_counts_as_drained_once_the_region_is_valid_again() -> Result {
        let store = Store::new(64)?;
        let token = store.registered(64, ALL)?;
        kunit_assert_eq!(store.table.revoke(token, OWN), Ok(()));
        let next = bumped(token, 1);
        assert!(store.register(next, ALL, 64));
        let access = store.table.access(next, PEER, READ, BASE, 64);
        assert!(access.is_ok());
        assert!(store.table.is_drained(token));
        drop(access);
        store.table.remove(token.index());
        assert!(store.table.is_drained(token));
        assert!(store.table.is_drained(next));
        Ok(())
    }
}
