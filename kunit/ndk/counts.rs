// SPDX-License-Identifier: GPL-2.0

//! The limits of a device on its objects; the objects of all faces count.

#[kernel::macros::kunit_tests(ndk_kunit_ndk_counts)]
mod tests {
    use kernel::prelude::*;

    use crate::{
        engine::{
            device::{
                Quota,
                TakenPlaces, //
            },
            domain::Domain, //
        },
        ndk::{
            cq::CqUser,
            life::ObjectType,
            srq::SrqSizes,
            status::NtStatus,
            tests::{
                completion::{
                    create,
                    AutoClose, //
                },
                host::{
                    HostAttr,
                    SIZES, //
                },
                pair::Pair, //
            }, //
        }, //
    };

    /// The result of a creation.
    type Made<T> = Result<Result<AutoClose<T>, NtStatus>>;

    /// Checks a limit that leaves room for one object: one creation succeeds, and further ones are
    /// refused; after the object is closed, one succeeds again.
    fn has_a_limit<T: ObjectType>(pair: &Pair, quota: Quota, make: impl Fn() -> Made<T>) -> Result {
        let _taken = TakenPlaces::leaving(&pair.test_host.device, quota, 1);
        for _ in 0..2 {
            let mut last = make()?.map_err(|_| EINVAL)?;
            for _ in 0..2 {
                match make()? {
                    Err(NtStatus::INSUFFICIENT_RESOURCES) => (),
                    Err(_) | Ok(_) => return Err(ERANGE),
                }
            }
            last.close_and_wait()?;
        }
        Ok(())
    }

    #[test]
    fn of_each_kind_there_are_as_many_as_the_device_has_and_no_more() -> Result {
        let pair = Pair::unconnected(&HostAttr::PLAIN, SIZES, SIZES)?;
        let (adapter, side) = (&pair.test_host.adapter, &pair.a);
        has_a_limit(&pair, Quota::Domains, || {
            Ok(adapter.create_pd().map(AutoClose::new))
        })?;
        has_a_limit(&pair, Quota::CompletionQueues, || {
            let user: CqUser = KBox::new(|_| (), GFP_KERNEL)?;
            create(|done| adapter.create_cq(4, None, user, done))
        })?;
        has_a_limit(&pair, Quota::SharedReceives, || {
            let sizes = SrqSizes {
                depth: 4,
                sges: 1,
                threshold: 0,
            };
            create(|done| side.pd.create_srq(sizes, None, done))
        })?;
        has_a_limit(&pair, Quota::QueuePairs, || {
            let queues = (&*side.receives.cq, &*side.requests.cq);
            create(|done| side.pd.create_qp(queues, None, 0xA, SIZES, done))
        })
    }

    #[test]
    fn what_another_face_has_made_counts_as_well() -> Result {
        let pair = Pair::unconnected(&HostAttr::PLAIN, SIZES, SIZES)?;
        let device = &pair.test_host.device;
        let _taken = TakenPlaces::leaving(device, Quota::Domains, 1);
        let other = Domain::new(device.clone(), GFP_KERNEL)?;
        let refused = pair.test_host.adapter.create_pd().map(AutoClose::new).err();
        kunit_assert_eq!(refused, Some(NtStatus::INSUFFICIENT_RESOURCES));
        other.close();
        assert!(pair
            .test_host
            .adapter
            .create_pd()
            .map(AutoClose::new)
            .is_ok());
        Ok(())
    }
}
