// SPDX-License-Identifier: GPL-2.0

//! Kernel facilities that the kernel crate has no abstraction for.
//!
//! Each file is one facility and says which C header it stands for. An interface is
//! safe unless it relies on a promise of the caller (the address of a consumer's
//! memory, a pointer of C): then its constructor is an unsafe function that names
//! the promise. Only this module, [`crate::rdma`], [`crate::bindings`] and the
//! `abi` of [`crate::ndk`] have unsafe code.
//!
//! | file          | contents                                                        |
//! |---------------|-----------------------------------------------------------------|
//! | [`addr`]      | `sockaddr_storage` to and from [`core::net::SocketAddr`]        |
//! | [`cpu`]       | processor numbers, per-processor counters                       |
//! | [`event`]     | a completion that softirq may signal                            |
//! | [`gate`]      | access that ends before its object goes                         |
//! | [`global`]    | the one value of its kind in the module                         |
//! | [`hrtimer`]   | the same as [`timer`], of fine resolution                       |
//! | [`inject`]    | the faults that a device was told to make                       |
//! | `jump_label`  | static branches                                                 |
//! | [`log`]       | the rate limit of kernel log messages                           |
//! | [`mdl`]       | memory by descriptor chains and by pages                        |
//! | [`name`]      | names by value, for objects that may be renamed                 |
//! | [`netdev`]    | network devices held by reference, and their events             |
//! | [`param`]     | module parameters that are numbers                              |
//! | [`random`]    | random numbers                                                  |
//! | [`requests`]  | queues of requests, and the memory that these name              |
//! | [`ring`]      | bounded queues                                                  |
//! | [`sge`]       | elements of scatter and gather lists                            |
//! | [`shared`]    | queues in memory that a program maps                            |
//! | [`softirq`]   | bottom half sections, bottom half and process work queues       |
//! | [`span`]      | checked ranges of kernel memory                                 |
//! | [`tcp`]       | TCP sockets with events                                         |
//! | [`time`]      | the monotonic clock                                             |
//! | `tests`       | the clock, memory, faults, warnings and reports of tests        |
//! | [`trace`]     | tracepoints                                                     |
//! | [`timer`]     | timers that hold a reference to the object that contains them   |
//! | [`unaligned`] | C values at any address                                         |

// Addresses and lengths of memory are `u64` to the consumer and `usize` to the machine.
const _: () = assert!(usize::BITS == 64, "ndk needs a 64-bit kernel");

// First: the modules below use its macro.
#[cfg(ndk_kunit)]
#[macro_use]
pub(crate) mod tests;

pub(crate) mod addr;
pub(crate) mod cpu;
pub(crate) mod event;
pub(crate) mod gate;
pub(crate) mod global;
pub(crate) mod hrtimer;
pub(crate) mod inject;
#[cfg(any(CONFIG_TRACEPOINTS, CONFIG_FAULT_INJECTION_DEBUG_FS))]
mod jump_label;
pub(crate) mod log;
pub(crate) mod mdl;
pub(crate) mod name;
pub(crate) mod netdev;
pub(crate) mod param;
pub(crate) mod random;
pub(crate) mod requests;
pub(crate) mod ring;
pub(crate) mod sge;
pub(crate) mod shared;
pub(crate) mod softirq;
pub(crate) mod span;
pub(crate) mod tcp;
pub(crate) mod time;
pub(crate) mod timer;
pub(crate) mod trace;
pub(crate) mod unaligned;

#[cfg(ndk_kunit)]
pub(crate) use self::tests::{
    clock,
    fault,
    over_tcp,
    report,
    speed,
    warning, //
};
