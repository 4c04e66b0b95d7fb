// SPDX-License-Identifier: GPL-2.0

//! Abstractions for an RDMA provider in safe Rust: a `kernel::rdma`, if there were one.
//!
//! 1. Choose the payload type of each verbs object and implement the object's
//!    operations on it ([`CqOperations`], [`QpOperations`] and so on); name the types
//!    in an implementation of [`Operations`] on a type without values.
//! 2. Embed a [`LinkRegistration`] in the module type. `rdma link add` then makes
//!    a [`Device`] over a network device, and the core calls the operations.
//! 3. Store the requests that `post_send` and `post_recv` read from their chains
//!    ([`SendChain`], [`RecvChain`]), and return completions from `poll_cq`
//!    through [`WcWriter`].
//! 4. Call consumers back through [`CqUpcall`], [`QpUpcall`], [`SrqUpcall`] and
//!    [`CmId`], from softirq or process context and with no lock held. Only the
//!    upcall for a completion of a queue that the core polls ([`CqInit`]) may be
//!    made in any context and under any lock.
//!
//! | here                                   | C                                          |
//! |----------------------------------------|--------------------------------------------|
//! | [`Operations`], `OperationsVTable`     | `struct ib_device_ops`                     |
//! | [`LinkRegistration`]                   | `struct rdma_link_ops`, netdevice notifier |
//! | `Object`: [`Device`], [`Pd`] and so on | `struct ib_device`, `struct ib_pd`         |
//! | [`SendChain`], [`RecvChain`]           | `struct ib_send_wr`, `struct ib_recv_wr`   |
//! | [`WcWriter`]                           | `struct ib_wc`                             |
//! | [`Extents`]                            | `struct scatterlist` in `map_mr_sg`        |
//! | [`CmId`]                               | `struct iw_cm_id`                          |
//!
//! Requests, completions, rights and states are the plain values of [`values`],
//! which the faces and the engine use, too.
//!
//! User space: `user.rs`. Not supported: port types other than iWARP, queue pair
//! types other than RC, memory windows.
//!
//! C headers: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h),
//! [`include/rdma/iw_cm.h`](srctree/include/rdma/iw_cm.h),
//! [`include/rdma/rdma_netlink.h`](srctree/include/rdma/rdma_netlink.h)

mod cm;
mod cm_ops;
mod completion;
mod cq;
mod details;
mod device;
mod identity;
mod link;
mod link_type;
mod memory;
mod mr;
mod names;
mod object;
mod ops;
mod port;
mod prelude;
mod qp;
mod recv;
mod srq;
mod table;
#[cfg(ndk_kunit)]
mod tests;
mod trampoline;
mod types;
mod upcall;
mod user;
pub(crate) mod values;
mod work;

pub(crate) use self::{
    cm::{
        CmId,
        CmInfo,
        ConnParams,
        RequestId, //
    },
    cm_ops::{
        CmOperations,
        ListenerOperations, //
    },
    completion::WcWriter,
    cq::{
        CqInit,
        CqOperations,
        Notify, //
    },
    details::Details,
    device::{
        Device,
        DeviceOperations, //
    },
    link::LinkRegistration,
    link_type::LinkType,
    memory::Extents,
    mr::MrOperations,
    object::{
        Pd,
        PdOperations, //
    },
    ops::Operations,
    qp::{
        QpInit,
        QpOperations, //
    },
    recv::RecvChain,
    srq::{
        SrqAttributes,
        SrqChange,
        SrqOperations, //
    },
    types::{
        DeviceAttributes,
        QpAttributes,
        QpChange,
        QpTarget, //
    },
    upcall::{
        CqUpcall,
        PortUpcall,
        QpUpcall,
        SrqUpcall, //
    },
    user::{
        memory::UmemPieces,
        share::UserData, //
    },
    work::SendChain, //
};
