// SPDX-License-Identifier: GPL-2.0

//! The table of protection domains.

use core::ffi::c_void;

use super::{
    close,
    get,
    status_user,
    Callback,
    NO_OBJECT, //
};
use crate::{
    bindings,
    ndk::{
        cq::Cq,
        life::Ref,
        memory::{
            Mr,
            Mw, //
        },
        pd::Pd,
        qp::{
            Qp,
            Sizes, //
        },
        srq::{
            Srq,
            SrqSizes, //
        },
        status::NtStatus, //
    }, //
};

/// The completion queues of a queue pair to be.
///
/// # Safety
///
/// Each is null or a queue of the consumer's; the result is not used beyond the call.
unsafe fn queues<'a>(
    receive: *mut bindings::ndk_cq,
    initiator: *mut bindings::ndk_cq,
) -> Result<(&'a Ref<Cq>, &'a Ref<Cq>), NtStatus> {
    // SAFETY: As required of the caller.
    let (receive, initiator) = unsafe { (get::<Cq>(receive), get::<Cq>(initiator)) };
    receive.zip(initiator).ok_or(NO_OBJECT)
}

face! {
    Pd: ndk_pd, ndk_pd_dispatch, NDK_OBJECT_TYPE_PD, [close: close::<Pd>]

    create create_mr(pd, fast_register: bool) -> Mr {
        pd.create_mr(fast_register)
    }

    create_later create_mw(pd; done) -> Mw {
        pd.create_mw(done)
    }

    create_later create_srq(
        pd,
        depth: u32,
        sges: u32,
        threshold: u32,
        function: bindings::ndk_fn_srq_notification,
        context: *mut c_void,
        _affinity: *const bindings::cpumask;
        done
    ) -> Srq {
        let user = function.map(|_| status_user(Callback { function, context }));
        pd.create_srq(SrqSizes { depth, sges, threshold }, user.transpose()?, done)
    }

    create_later create_qp(
        pd,
        receive_cq: *mut bindings::ndk_cq,
        initiator_cq: *mut bindings::ndk_cq,
        qp_context: *mut c_void,
        receives: u32,
        requests: u32,
        receive_sges: u32,
        request_sges: u32,
        inline: u32;
        done
    ) -> Qp {
        // SAFETY: Each is null or a queue of the consumer's.
        let cqs = unsafe { queues(receive_cq, initiator_cq)? };
        let sizes = Sizes { receives, requests, receive_sges, request_sges, inline };
        pd.create_qp(cqs, None, qp_context.addr(), sizes, done)
    }

    create_later create_qp_with_srq(
        pd,
        receive_cq: *mut bindings::ndk_cq,
        initiator_cq: *mut bindings::ndk_cq,
        srq: *mut bindings::ndk_srq,
        qp_context: *mut c_void,
        requests: u32,
        request_sges: u32,
        inline: u32;
        done
    ) -> Qp {
        // SAFETY: Each is null or a queue of the consumer's.
        let (cqs, srq) = unsafe { (queues(receive_cq, initiator_cq)?, get::<Srq>(srq)) };
        let sizes = Sizes { receives: 0, requests, receive_sges: 0, request_sges, inline };
        pd.create_qp(cqs, Some(srq.ok_or(NO_OBJECT)?), qp_context.addr(), sizes, done)
    }

    call get_privileged_memory_region_token(pd, token: *mut u32) {
        // SAFETY: `token` is null or may be written.
        if let Some(token) = unsafe { token.as_mut() } {
            *token = pd.privileged_token().raw();
        }
    }
}
