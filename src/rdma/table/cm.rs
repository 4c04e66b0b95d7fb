// SPDX-License-Identifier: GPL-2.0

//! The operations of connections (`iw_cm`), under their names in `struct ib_device_ops`.

use super::OperationsVTable;
use crate::rdma::{
    cm_ops::{
        self,
        CmOperations,
        ListenerOperations, //
    },
    prelude::*,
    qp::{
        self,
        Qp, //
    },
    trampoline::Passed, //
};

impl<T: Operations> OperationsVTable<T> {
    /// No effect: `iw_get_qp` has added the reference.
    pub(super) fn iw_add_ref(_qp: Passed<*mut bindings::ib_qp>) {}

    /// Gives up a reference that `iw_get_qp` added. Any context.
    pub(super) fn iw_rem_ref(qp: Passed<*mut bindings::ib_qp>) {
        // SAFETY: The reference that is given up below keeps the queue pair until then.
        let cm = unsafe { Qp::<T>::from_raw(qp.get()) }.private().cm.clone();
        cm.put();
    }

    /// Interrupts are off. The reference that iw_cm asks for next is added here already: a program
    /// may name any number, also of a queue pair that is about to go.
    pub(super) fn iw_get_qp(_device: &Device<T>, number: c_int) -> *mut bindings::ib_qp {
        qp::get::<T>(number)
    }

    /// Serves `iw_cm_connect()`. After success exactly one answer follows, after an error none. May
    /// sleep. `EINVAL` for a queue pair that the client may not connect.
    pub(super) fn iw_connect(
        id: Passed<*mut bindings::iw_cm_id>,
        param: Passed<*mut bindings::iw_cm_conn_param>,
    ) -> Result {
        // SAFETY: iw_cm passes its identifier and valid parameters, and holds the queue pair.
        let (id, qp, params) = unsafe { cm_ops::conn_args::<T>(id.get(), param.get()) }?;
        // The answer may come, and iw_cm give its reference up, before this returns.
        let _held = qp.hold();
        qp.connect(id, &params)
    }

    /// Serves `iw_cm_accept()`. Rejects the request if its arguments are refused: `EINVAL` for a
    /// queue pair that the client may not connect. May sleep.
    pub(super) fn iw_accept(
        id: Passed<*mut bindings::iw_cm_id>,
        param: Passed<*mut bindings::iw_cm_conn_param>,
    ) -> Result {
        // SAFETY: iw_cm passes its identifier and valid parameters, and holds the queue pair.
        match unsafe { cm_ops::conn_args::<T>(id.get(), param.get()) } {
            Ok((id, qp, params)) => {
                // As in `iw_connect`: the connection may come and go before this returns.
                let _held = qp.hold();
                let request = cm_ops::take_request(&id)?;
                qp.accept(id, request, &params)
            }
            Err(error) => {
                // iw_cm forgets the request now; without a rejection the peer gets no answer.
                // SAFETY: iw_cm passes its identifier.
                let id = unsafe { cm_ops::id::<T>(id.get()) }?;
                // A request that has gone needs no answer.
                let _ = cm_ops::take_request(&id).and_then(|r| T::Listener::reject(&id, r, &[]));
                Err(error)
            }
        }
    }

    /// Serves `iw_cm_reject()`. `EINVAL` if the request was accepted or rejected before. Process
    /// context.
    pub(super) fn iw_reject(
        id: Passed<*mut bindings::iw_cm_id>,
        data: Passed<*const c_void>,
        len: u8,
    ) -> Result {
        // SAFETY: iw_cm passes its identifier and valid data.
        let (id, data) = unsafe {
            (
                cm_ops::id(id.get())?,
                cm_ops::private_data(data.get(), len.into()),
            )
        };
        T::Listener::reject(&id, cm_ops::take_request(&id)?, data)
    }

    /// Serves `iw_cm_listen()`. May sleep. A client that is not of the space of streams gets no
    /// listener: success at a wildcard or loopback address, `EPROTONOSUPPORT` elsewhere.
    pub(super) fn iw_create_listen(id: Passed<*mut bindings::iw_cm_id>, backlog: c_int) -> Result {
        let id = id.get();
        // SAFETY: iw_cm passes its identifier, of a device that it keeps during the call.
        let (device, client) =
            unsafe { (Device::<T>::from_raw((*id).device), cm_ops::client(id)?) };
        // SAFETY: As above.
        let id = unsafe { cm_ops::id(id) }?;
        let backlog = u32::try_from(backlog).map_err(|_| EINVAL)?;
        if !client.takes_requests(&id)? {
            return Ok(());
        }
        let listener = T::Listener::create(device, id.clone(), client.net.cookie(), backlog)?;
        cm_ops::keep_listener(&id, listener);
        Ok(())
    }

    /// Ends listening: no request is reported after the return. No effect for a client that gets no
    /// requests. May sleep.
    pub(super) fn iw_destroy_listen(id: Passed<*mut bindings::iw_cm_id>) -> Result {
        // SAFETY: iw_cm passes its identifier, with which `iw_create_listen` was called, once.
        unsafe { cm_ops::end_listening::<T>(id.get()) }
    }
}
