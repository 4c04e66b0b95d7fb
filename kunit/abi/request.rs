// SPDX-License-Identifier: GPL-2.0

//! Entries of the tables that take requests, for tests that call them as C does.

use kernel::prelude::*;

use super::*;
use crate::{
    ndk::{
        cq::Cq,
        memory::{
            Mr,
            Mw, //
        },
        pd::Pd,
        qp::Qp, //
    },
    rdma::values::token::Token, //
};

/// A C handle of a test's object; the drop frees the handle.
struct Lent<T: Face>(*mut Handle<T>);

impl<T: Face> Lent<T> {
    fn new(object: &Ref<T>) -> Result<Self> {
        let blank = Blank::<T>::new().map_err(|_| ENOMEM)?;
        Ok(Self(blank.fill(object.clone()).cast()))
    }

    fn header(&self) -> *mut bindings::ndk_object_header {
        self.0.cast()
    }
}

impl<T: Face> Drop for Lent<T> {
    fn drop(&mut self) {
        // SAFETY: `fill` made the handle, and it was not closed.
        drop(unsafe { KBox::from_raw(self.0) });
    }
}

/// The table that a queue pair refers to.
fn table<'a>(qp: &Lent<Qp>) -> &'a bindings::ndk_qp_dispatch {
    // SAFETY: The table of queue pairs, which is constant.
    unsafe { &*(*qp.0).dispatch.cast::<bindings::ndk_qp_dispatch>() }
}

/// The pointer to an empty list.
pub(crate) enum List {
    Null,
    There,
}

/// Posts a send of no elements.
pub(crate) fn send_nothing(qp: &Ref<Qp>, context: u64, list: List) -> Result<i32> {
    let qp = Lent::new(qp)?;
    let send = table(&qp).send.ok_or(EINVAL)?;
    let sge = bindings::ndk_sge::default();
    let list = match list {
        List::Null => ptr::null(),
        List::There => &raw const sge,
    };
    let context = ptr::without_provenance_mut(context as usize);
    // SAFETY: The queue pair is lent, and the list is empty.
    Ok(unsafe { send(qp.0.cast(), context, list, 0, 0) })
}

/// Posts a send with invalidation of no elements.
pub(crate) fn send_and_invalidate(qp: &Ref<Qp>, context: u64, token: Token) -> Result<i32> {
    let qp = Lent::new(qp)?;
    let send = table(&qp).send_and_invalidate.ok_or(EINVAL)?;
    let context = ptr::without_provenance_mut(context as usize);
    // SAFETY: The queue pair is lent, and the list is empty.
    Ok(unsafe { send(qp.0.cast(), context, ptr::null(), 0, 0, token.raw()) })
}

/// The object that an invalidation names.
pub(crate) enum Named<'a> {
    Nothing,
    Mr(&'a Ref<Mr>),
    Mw(&'a Ref<Mw>),
    Pd(&'a Ref<Pd>),
}

/// Posts an invalidation by the header of an object.
pub(crate) fn invalidate(qp: &Ref<Qp>, context: u64, what: &Named<'_>, flags: u32) -> Result<i32> {
    let qp = Lent::new(qp)?;
    let entry = table(&qp).invalidate.ok_or(EINVAL)?;
    let context = ptr::without_provenance_mut(context as usize);
    // SAFETY: The queue pair is lent; each object outlives the call.
    let call = |header| unsafe { entry(qp.0.cast(), context, header, flags) };
    Ok(match what {
        Named::Nothing => call(ptr::null_mut()),
        Named::Mr(mr) => call(Lent::new(mr)?.header()),
        Named::Mw(mw) => call(Lent::new(mw)?.header()),
        Named::Pd(pd) => call(Lent::new(pd)?.header()),
    })
}

/// The next result as `NdkGetCqResults` gives it: status, bytes, the contexts of queue pair and
/// request.
pub(crate) fn plain_result(cq: &Ref<Cq>) -> Result<Option<(i32, u32, usize, usize)>> {
    let cq = Lent::new(cq)?;
    // SAFETY: The table of completion queues, which is constant.
    let table = unsafe { &*(*cq.0).dispatch.cast::<bindings::ndk_cq_dispatch>() };
    let results = table.get_cq_results.ok_or(EINVAL)?;
    let mut result = bindings::ndk_result::default();
    // SAFETY: The queue is lent; there is room for one.
    let found = unsafe { results(cq.0.cast(), &raw mut result, 1) };
    Ok((found == 1).then(|| {
        (
            result.status,
            result.bytes_transferred,
            result.qp_context.addr(),
            result.request_context.addr(),
        )
    }))
}
