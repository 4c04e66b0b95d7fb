// SPDX-License-Identifier: GPL-2.0

//! The operations of queue pairs, completion queues and shared receive queues, under their names in
//! `struct ib_device_ops`.

use super::OperationsVTable;
use crate::{
    rdma::{
        completion::WcWriter,
        cq::{
            self,
            Cq,
            CqOperations,
            Notify, //
        },
        details::Details,
        object::UserObject,
        prelude::*,
        qp::{
            self,
            Qp,
            QpOperations, //
        },
        srq::{
            self,
            Srq,
            SrqChange,
            SrqOperations, //
        },
        trampoline::Passed,
        types::QpChange,
        user::share::UserData,
        work::WrChain, //
    },
    sys::unaligned::Room, //
};

impl<T: Operations> OperationsVTable<T> {
    /// Serves `ib_alloc_cq()`, `ib_create_cq()` and `ibv_create_cq()`. May sleep. `EOPNOTSUPP` for
    /// flags.
    pub(super) fn create_cq(
        cq: NewObject<bindings::ib_cq, T::Cq>,
        attr: Passed<*const bindings::ib_cq_init_attr>,
        attrs: Passed<*mut bindings::uverbs_attr_bundle>,
    ) -> Result {
        // SAFETY: The core passes valid attributes, and the program's if a program makes the queue.
        let (attr, data) = unsafe {
            (
                attr.get().read_unaligned(),
                UserData::of_attributes(attrs.get()),
            )
        };
        cq::create::<T>(cq, &attr, &data)
    }

    /// Serves `rdma_set_cq_moderation()`; if either value is 0, no upcall is delayed. May sleep.
    pub(super) fn modify_cq(cq: &Cq<T>, count: u16, period_us: u16) -> Result {
        cq.modify(count, period_us)
    }

    /// Serves `ibv_resize_cq()`. Completions may be added during the call. May sleep. `EINVAL` if
    /// the queue holds more entries, or the number is beyond the limits.
    pub(super) fn resize_user_cq(cq: &Cq<T>, entries: c_uint, data: UserData) -> Result {
        let entries = cq.resize(entries, &data)?;
        cq.private().mapping.set(data.take_mapping());
        // CAST: A number of entries, below `i32::MAX` by the provider's own limit.
        // SAFETY: Readers of the number take no lock, and get the old or the new one.
        unsafe { (&raw mut (*cq.as_raw()).cqe).write_volatile(entries as c_int) };
        Ok(())
    }

    /// `ib_free_cq()` ends its own poll next, which an upcall would start again.
    pub(super) fn pre_destroy_cq(cq: &Cq<T>) -> Result {
        cq.pre_destroy();
        cq.private().close();
        Ok(())
    }

    /// Ends a queue after `pre_destroy_cq`, and the core's poll of the queue. May sleep.
    pub(super) fn post_destroy_cq(cq: OwnedObject<bindings::ib_cq, T::Cq>) {
        cq::wait_for_handlers::<T>(&cq);
        cq.destroy();
    }

    /// Destroys a queue that the core does not poll.
    pub(super) fn destroy_cq(cq: OwnedObject<bindings::ib_cq, T::Cq>, _data: UserData) -> Result {
        // The call never fails.
        let _ = Self::pre_destroy_cq(&cq);
        Self::post_destroy_cq(cq);
        Ok(())
    }

    /// Serves `ib_poll_cq()`: returns the number of completions written. Never fails. Any context.
    pub(super) fn poll_cq(cq: &Cq<T>, room: c_int, wc: Passed<*mut bindings::ib_wc>) -> c_int {
        // SAFETY: The consumer says that `wc` has that room.
        let mut out = unsafe { WcWriter::new(wc.get(), room) };
        cq.poll(&mut out);
        out.written()
    }

    /// Serves `ib_req_notify_cq()`: returns 1 if completions are pending and the flags ask for that
    /// report, else 0. Any context.
    pub(super) fn req_notify_cq(cq: &Cq<T>, flags: bindings::ib_cq_notify_flags) -> c_int {
        c_int::from(cq.req_notify(Notify::from_c(flags)))
    }

    /// Serves `ib_create_qp()`, and writes the granted sizes to `init`. May sleep. `EINVAL` without
    /// a completion queue, `EOPNOTSUPP` for flags and for types other than RC.
    pub(super) fn create_qp(
        qp: NewObject<bindings::ib_qp, T::Qp>,
        init: &mut Unaligned<bindings::ib_qp_init_attr>,
        data: UserData,
    ) -> Result {
        // SAFETY: For the call of `create`: the core passes the domain and the queues of the queue
        // pair, and keeps them as long as the queue pair.
        init.update(|init| unsafe { qp::create::<T>(qp, init, &data) })
    }

    /// Serves `ib_modify_qp()`, and notes the calling task for `iw_get_qp`. May sleep. `EINVAL` for
    /// an invalid state.
    pub(super) fn modify_qp(
        qp: &Qp<T>,
        attr: &mut Unaligned<bindings::ib_qp_attr>,
        mask: c_int,
        _data: UserData,
    ) -> Result {
        qp.private().note_change();
        qp.modify(&QpChange::from_c(attr, mask)?)
    }

    /// Serves `ib_query_qp()`: writes all attributes, regardless of the mask. Never fails.
    pub(super) fn query_qp(
        qp: &Qp<T>,
        attr: Room<'_, bindings::ib_qp_attr>,
        _mask: c_int,
        init: Room<'_, bindings::ib_qp_init_attr>,
    ) -> Result {
        let (now, made) = qp.query().to_c();
        attr.set(now);
        init.set(made);
        Ok(())
    }

    /// Serves `ib_destroy_qp()`: waits for the references of iw_cm. Never fails. May sleep.
    pub(super) fn destroy_qp(qp: OwnedObject<bindings::ib_qp, T::Qp>, _data: UserData) -> Result {
        qp.private().unpublish();
        qp.destroy();
        qp.private().end();
        Ok(())
    }

    /// Serves `rdma resource show qp -dd`. May sleep. `EMSGSIZE` if the message has no room.
    pub(super) fn fill_res_qp_entry(msg: Passed<*mut bindings::sk_buff>, qp: &Qp<T>) -> Result {
        // SAFETY: The core passes the message that it writes.
        unsafe { Details::fill(msg.get(), |details| qp.describe(details)) }
    }

    /// Serves `rdma resource show cq -dd`. May sleep. `EMSGSIZE` if the message has no room.
    pub(super) fn fill_res_cq_entry(msg: Passed<*mut bindings::sk_buff>, cq: &Cq<T>) -> Result {
        // SAFETY: The core passes the message that it writes.
        unsafe { Details::fill(msg.get(), |details| cq.describe(details)) }
    }

    /// Serves `ib_post_send()`. `bad_wr` gets the failed request; earlier requests stay posted. Any
    /// context for a queue of the kernel, process context for a queue of a program.
    pub(super) fn post_send(
        qp: &Qp<T>,
        wr: Passed<*const bindings::ib_send_wr>,
        bad_wr: Passed<*mut *const bindings::ib_send_wr>,
    ) -> c_int {
        // SAFETY: The consumer passes a chain of valid requests and a place to write to.
        unsafe {
            WrChain::post_from(qp.is_of_program(), wr.get(), bad_wr.get(), |chain| {
                qp.post_send(chain)
            })
        }
    }

    /// Serves `ib_post_recv()`; otherwise like `post_send`.
    pub(super) fn post_recv(
        qp: &Qp<T>,
        wr: Passed<*const bindings::ib_recv_wr>,
        bad_wr: Passed<*mut *const bindings::ib_recv_wr>,
    ) -> c_int {
        // SAFETY: The consumer passes a chain of valid requests and a place to write to.
        unsafe {
            WrChain::post_from(qp.is_of_program(), wr.get(), bad_wr.get(), |chain| {
                qp.post_recv(chain)
            })
        }
    }

    /// Serves `ib_create_srq()`, and writes the granted sizes to `init`. May sleep. `EOPNOTSUPP`
    /// for types other than the basic one.
    pub(super) fn create_srq(
        srq: NewObject<bindings::ib_srq, T::Srq>,
        init: &mut Unaligned<bindings::ib_srq_init_attr>,
        data: UserData,
    ) -> Result {
        init.update(|init| srq::create::<T>(srq, init, &data))
    }

    /// Serves `ib_modify_srq()`: changes the values that the mask names. May sleep.
    pub(super) fn modify_srq(
        srq: &Srq<T>,
        attr: &mut Unaligned<bindings::ib_srq_attr>,
        mask: bindings::ib_srq_attr_mask,
        data: UserData,
    ) -> Result {
        srq.modify(&SrqChange::from_c(&attr.get(), mask), &data)?;
        srq.private().mapping.set(data.take_mapping());
        Ok(())
    }

    /// Serves `ib_query_srq()`. Never fails.
    pub(super) fn query_srq(srq: &Srq<T>, attr: Room<'_, bindings::ib_srq_attr>) -> Result {
        attr.set(srq.query().to_c());
        Ok(())
    }

    /// Serves `ib_destroy_srq()`: no upcall runs after the return. Never fails. May sleep.
    pub(super) fn destroy_srq(
        srq: OwnedObject<bindings::ib_srq, T::Srq>,
        _data: UserData,
    ) -> Result {
        srq.destroy();
        srq.private().close();
        Ok(())
    }

    /// Serves `ib_post_srq_recv()`; otherwise like `post_send`.
    pub(super) fn post_srq_recv(
        srq: &Srq<T>,
        wr: Passed<*const bindings::ib_recv_wr>,
        bad_wr: Passed<*mut *const bindings::ib_recv_wr>,
    ) -> c_int {
        // SAFETY: The consumer passes a chain of valid requests and a place to write to.
        unsafe {
            WrChain::post_from(srq.is_of_program(), wr.get(), bad_wr.get(), |chain| {
                srq.post_recv(chain)
            })
        }
    }
}
