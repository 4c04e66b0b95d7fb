// SPDX-License-Identifier: GPL-2.0

//! The fixtures of all suites, and the suites that cross modules.

pub(crate) mod buffer;
pub(crate) mod carrier_fixture;
pub(crate) mod connection_fixture;
mod context;
mod counting;
pub(crate) mod fake;
pub(crate) mod harness;
pub(crate) mod inject;
pub(crate) mod log;
pub(crate) mod other_context;
pub(crate) mod queues;
pub(crate) mod race;
pub(crate) mod requests;
mod resize;
pub(crate) mod wire;

use kernel::prelude::*;

use crate::sys::speed;

/// Tests that KUnit knows as slow. They repeat steps many times; other tests take the same steps a
/// few times, so that checkers that slow tests down see all steps without the slow tests.
const SLOW: [(&CStr, &CStr); 7] = [
    (
        c"ndk_engine_cm_listen",
        c"when_every_port_is_taken_the_next_one_is_the_one_that_is_given_back",
    ),
    (
        c"ndk_engine_cm_listen",
        c"a_port_where_the_device_listens_is_not_given_out",
    ),
    (
        c"ndk_kunit_ndk_connect",
        c"ndk_conn_04_port_0_takes_one_of_the_dynamic_ports_until_none_is_left",
    ),
    (
        c"ndk_kunit_ndk_listen",
        c"ndk_lstn_01_port_0_fails_when_every_port_is_in_use",
    ),
    (
        c"ndk_kunit_ndk_stress",
        c"ndk_arm_14_no_call_is_lost_between_poll_and_arm_in_a_million_rounds",
    ),
    (
        c"ndk_engine_cq",
        c"no_call_comes_after_the_close_again_and_again",
    ),
    (
        c"ndk_engine_cq_tests_moderation",
        c"a_close_ends_what_is_held_again_and_again",
    ),
];

/// Marks those tests as slow, while the module comes up.
pub(crate) fn mark_slow() -> Result {
    for (suite, test) in SLOW {
        if let Err(e) = speed::mark_slow(suite, test) {
            pr_err!("no test {:?} in {:?} to mark as slow\n", test, suite);
            return Err(e);
        }
    }
    Ok(())
}
