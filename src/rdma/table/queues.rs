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
        object::OfProgram,
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
    pub(super) fn create_cq(
        cq: NewObject<bindings::ib_cq, T::Cq>,
        attr: Passed<*const bindings::ib_cq_init_attr>,
        attrs: Passed<*mut bindings::uverbs_attr_bundle>,
    ) -> Result {
        // SAFETY: The core passes valid attributes, and the program's where it makes the queue.
        let (attr, data) = unsafe {
            (
                attr.get().read_unaligned(),
                UserData::of_attributes(attrs.get()),
            )
        };
        cq::create::<T>(cq, &attr, &data)
    }

    pub(super) fn modify_cq(cq: &Cq<T>, count: u16, period_us: u16) -> Result {
        cq.modify(count, period_us)
    }

    pub(super) fn resize_user_cq(cq: &Cq<T>, entries: c_uint, data: UserData) -> Result {
        let entries = cq.resize(entries, &data)?;
        cq.private().mapping.set(data.take_mapping());
        // CAST: A number of entries, below `i32::MAX` by the provider's own limit.
        // SAFETY: A number that others read at any time, either one.
        unsafe { (&raw mut (*cq.as_raw()).cqe).write_volatile(entries as c_int) };
        Ok(())
    }

    /// `ib_free_cq()` ends its own polling next, which a call to the handler would start again.
    pub(super) fn pre_destroy_cq(cq: &Cq<T>) -> Result {
        cq.pre_destroy();
        cq.private().close();
        Ok(())
    }

    pub(super) fn post_destroy_cq(cq: OwnedObject<bindings::ib_cq, T::Cq>) {
        cq::wait_for_handlers::<T>(&cq);
        cq.destroy();
    }

    /// Of a queue that the core does not poll.
    pub(super) fn destroy_cq(cq: OwnedObject<bindings::ib_cq, T::Cq>, _data: UserData) -> Result {
        // It never fails.
        let _ = Self::pre_destroy_cq(&cq);
        Self::post_destroy_cq(cq);
        Ok(())
    }

    pub(super) fn poll_cq(cq: &Cq<T>, room: c_int, wc: Passed<*mut bindings::ib_wc>) -> c_int {
        // SAFETY: The consumer says that `wc` has that room.
        let mut out = unsafe { WcWriter::new(wc.get(), room) };
        cq.poll(&mut out);
        out.written()
    }

    pub(super) fn req_notify_cq(cq: &Cq<T>, flags: bindings::ib_cq_notify_flags) -> c_int {
        c_int::from(cq.req_notify(Notify::from_c(flags)))
    }

    pub(super) fn create_qp(
        qp: NewObject<bindings::ib_qp, T::Qp>,
        init: &mut Unaligned<bindings::ib_qp_init_attr>,
        data: UserData,
    ) -> Result {
        // SAFETY: For the call of `create`: the core passes the domain and the queues of the queue
        // pair, which it keeps as long as that.
        init.update(|init| unsafe { qp::create::<T>(qp, init, &data) })
    }

    pub(super) fn modify_qp(
        qp: &Qp<T>,
        attr: &mut Unaligned<bindings::ib_qp_attr>,
        mask: c_int,
        _data: UserData,
    ) -> Result {
        qp.private().note_change();
        qp.modify(&QpChange::from_c(attr, mask)?)
    }

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

    pub(super) fn destroy_qp(qp: OwnedObject<bindings::ib_qp, T::Qp>, _data: UserData) -> Result {
        qp.private().hide();
        qp.destroy();
        qp.private().end();
        Ok(())
    }

    pub(super) fn fill_res_qp_entry(msg: Passed<*mut bindings::sk_buff>, qp: &Qp<T>) -> Result {
        // SAFETY: The core passes the message that it writes.
        unsafe { Details::fill(msg.get(), |details| qp.describe(details)) }
    }

    pub(super) fn fill_res_cq_entry(msg: Passed<*mut bindings::sk_buff>, cq: &Cq<T>) -> Result {
        // SAFETY: The core passes the message that it writes.
        unsafe { Details::fill(msg.get(), |details| cq.describe(details)) }
    }

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

    pub(super) fn create_srq(
        srq: NewObject<bindings::ib_srq, T::Srq>,
        init: &mut Unaligned<bindings::ib_srq_init_attr>,
        data: UserData,
    ) -> Result {
        init.update(|init| srq::create::<T>(srq, init, &data))
    }

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

    pub(super) fn query_srq(srq: &Srq<T>, attr: Room<'_, bindings::ib_srq_attr>) -> Result {
        attr.set(srq.query().to_c());
        Ok(())
    }

    pub(super) fn destroy_srq(
        srq: OwnedObject<bindings::ib_srq, T::Srq>,
        _data: UserData,
    ) -> Result {
        srq.destroy();
        srq.private().close();
        Ok(())
    }

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
