// SPDX-License-Identifier: GPL-2.0

//! Tracepoints: `/sys/kernel/tracing/events/ndk`, described in `bindings/trace.h`.
//!
//! A tracepoint that is off is a static branch: [`event`] evaluates its arguments behind that. Any
//! context.
//!
//! C header: [`include/linux/tracepoint.h`](srctree/include/linux/tracepoint.h)

use core::net::SocketAddr;

use kernel::{
    prelude::*,
    str::CStr, //
};

#[cfg(CONFIG_TRACEPOINTS)]
use super::jump_label::static_branch_unlikely;
use super::{
    addr,
    name::Name, //
};
#[cfg(CONFIG_TRACEPOINTS)]
use crate::bindings;
use crate::rdma::values::wc::{
    WcOpcode,
    WcStatus, //
};

/// An argument of a tracepoint, in the form that C takes.
#[cfg_attr(not(CONFIG_TRACEPOINTS), allow(dead_code))]
trait Argument {
    type Kept;
    type C;

    /// Returns the value that must live as long as the call.
    fn keep(self) -> Self::Kept;
    fn as_c(kept: &Self::Kept) -> Self::C;
}

macro_rules! arguments {
    ($($type:ty => $c:ty: $cast:expr),* $(,)?) => {$(
        impl Argument for $type {
            type Kept = Self;
            type C = $c;

            fn keep(self) -> Self {
                self
            }

            fn as_c(kept: &Self) -> $c {
                let cast: fn(Self) -> $c = $cast;
                cast(*kept)
            }
        }
    )*};
}

arguments! {
    u32 => u32: |n| n,
    u64 => u64: |n| n,
    bool => bool: |b| b,
    // CAST: the numbers of the variants.
    WcOpcode => u32: |opcode| opcode as u32,
    WcStatus => u32: |status| status as u32,
}

impl Argument for &'static CStr {
    type Kept = Self;
    type C = *const c_char;

    fn keep(self) -> Self {
        self
    }

    fn as_c(kept: &Self) -> *const c_char {
        kept.as_char_ptr()
    }
}

impl Argument for Name {
    type Kept = Self;
    type C = *const c_char;

    fn keep(self) -> Self {
        self
    }

    fn as_c(kept: &Self) -> *const c_char {
        kept.as_char_ptr()
    }
}

impl Argument for SocketAddr {
    type Kept = addr::Storage;
    type C = *const addr::Storage;

    fn keep(self) -> addr::Storage {
        addr::write(&self)
    }

    fn as_c(kept: &addr::Storage) -> *const addr::Storage {
        kept
    }
}

/// Gives the tracepoint `$name`, if it is on, the arguments that the expression returns. The
/// expression owns all variables that it names: a mutable reference is gone after it.
// A macro: a closure that is made before the branch is put in memory, listener or not. Out of line:
// in line the arguments cost registers even without a listener.
macro_rules! event {
    ($name:ident, $told:expr $(,)?) => {
        if ::kernel::macros::paste! { $crate::sys::trace::[< $name _is_on >]() } {
            (::kernel::macros::paste! { $crate::sys::trace::[< emit_ $name >] })(move || $told);
        }
    };
}
pub(crate) use event;

macro_rules! tracepoints {
    ($(
        $(#[$doc:meta])*
        fn $name:ident($($arg:ident: $type:ty),* $(,)?);
    )*) => {$(
        kernel::macros::paste! {
            #[doc = concat!("Returns true if `", stringify!($name), "` is on.")]
            /// Any context.
            #[inline(always)]
            pub(crate) fn [< $name _is_on >]() -> bool {
                #[cfg(CONFIG_TRACEPOINTS)]
                // SAFETY: The key is a static one, defined in C.
                unsafe {
                    static_branch_unlikely!(
                        bindings::[< __tracepoint_ndk_ $name >],
                        bindings::tracepoint,
                        key
                    )
                }
                #[cfg(not(CONFIG_TRACEPOINTS))]
                {
                    false
                }
            }
        }

        kernel::macros::paste! {
            $(#[$doc])*
            /// Takes the arguments from `told`. [`event`] calls this if the tracepoint is on. Any
            /// context.
            #[cold]
            #[inline(never)]
            pub(crate) fn [< emit_ $name >](told: impl FnOnce() -> ($($type,)*)) {
                #[cfg(CONFIG_TRACEPOINTS)]
                {
                    let ($($arg,)*) = told();
                    $(let $arg = Argument::keep($arg);)*
                    // SAFETY: The pointers are those of the kept values, which live until after the
                    // call.
                    unsafe {
                        bindings::[< rust_do_trace_ndk_ $name >](
                            $(<$type as Argument>::as_c(&$arg)),*
                        )
                    }
                }
                #[cfg(not(CONFIG_TRACEPOINTS))]
                let _ = told;
            }
        }
    )*};
}

tracepoints! {
    /// A request was accepted for the send queue.
    fn post_send(dev: Name, qp: u32, wr_id: u64, opcode: WcOpcode, length: u32);
    /// A receive was accepted; 0 in place of the queue pair for a shared queue.
    fn post_recv(dev: Name, qp: u32, wr_id: u64, num_sge: u32);
    /// A transport begins with a request.
    fn start(dev: Name, qp: u32, wr_id: u64, opcode: WcOpcode, length: u32);
    /// A message takes a receive.
    fn receive(dev: Name, qp: u32, wr_id: u64, num_sge: u32);
    /// A message finds no receive.
    fn rnr_wait(dev: Name, qp: u32, peer: u32);
    /// A completion goes to its queue.
    fn complete(
        dev: Name,
        qp: u32,
        cq: u32,
        wr_id: u64,
        opcode: WcOpcode,
        status: WcStatus,
        length: u32,
    );
    /// The consumer of a completion queue is called.
    fn notify(dev: Name, cq: u32, used: u32, failed: bool);
    /// A queue pair is connected.
    fn connect(dev: Name, qp: u32, peer: u32, src: SocketAddr, dst: SocketAddr);
    /// A queue pair has lost its connection.
    fn disconnect(dev: Name, qp: u32, by_peer: bool);
    /// A token was invalidated, or the invalidation was refused.
    fn invalidate(dev: Name, qp: u32, key: u32, remote: bool, refused: bool);
    /// Memory that a peer named was refused.
    fn access_refused(
        dev: Name,
        qp: u32,
        peer: u32,
        rkey: u32,
        addr: u64,
        length: u32,
        opcode: WcOpcode,
    );
    /// An injected fault hits.
    fn fault(dev: Name, qp: u32, name: &'static CStr, number: u32);
}
