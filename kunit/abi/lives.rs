// SPDX-License-Identifier: GPL-2.0

//! The life of a handle: it stays during each call that it was given to, and the handle of an
//! adapter until the close is over (GEN-08, CLOS-07, CLOS-10).

#[kernel::macros::kunit_tests(ndk_kunit_abi_lives)]
mod tests {
    use core::ptr;

    use kernel::{
        prelude::*,
        sync::Arc, //
    };

    use super::super::consumer::*;
    use crate::{
        bindings,
        kunit::{
            harness::wait_until,
            log::Tally,
            other_context::OtherContext, //
        },
        ndk::{
            abi::{
                adapter::ndk_face_close,
                get, //
            },
            adapter::Adapter,
            connector::Connector,
            life::Ref,
            status::NtStatus,
            tests::host::{
                HostAttr,
                TestHost, //
            }, //
        },
        sys::{
            softirq::{
                BhDisabled,
                ProcessQueue, //
            },
            warning::warnings_of, //
        }, //
    };

    /// An adapter of a consumer in C, and one queue of it.
    struct Opened {
        adapter: *mut bindings::ndk_adapter,
        table: *const bindings::ndk_adapter_dispatch,
        object: Ref<Adapter>,
        cq: ObjectHandle,
        _notified: Arc<CallbackLog>,
        test_host: TestHost,
    }

    impl Opened {
        /// May sleep.
        fn new() -> Result<Self> {
            let test_host = TestHost::with(&HostAttr::PLAIN)?;
            let adapter = open_adapter(&test_host)?;
            // SAFETY: A live adapter.
            let (table, object) = unsafe { ((*adapter).dispatch, get::<Adapter>(adapter)) };
            let heard = CallbackLog::new()?;
            let (context, mask) = (heard.context(), ptr::null());
            let made: Creation<bindings::ndk_cq> = create(|f, c, out| {
                call(|| {
                    let notified = Some(requested as unsafe extern "C" fn(_, _));
                    Ok(entry!(
                        table, create_cq, adapter, 4, notified, context, mask, f, c, out
                    ))
                })
            })?;
            let kind = bindings::NDK_OBJECT_TYPE_CQ;
            // SAFETY: A live queue.
            let cq =
                unsafe { ObjectHandle::new::<_, bindings::ndk_cq_dispatch>(made.object()?, kind) };
            Ok(Self {
                adapter,
                table,
                object: object.ok_or(EINVAL)?,
                cq,
                _notified: heard,
                test_host,
            })
        }

        /// Returns true if the handle is there, and says that the adapter is closed.
        fn is_a_closed_one(&self) -> bool {
            // SAFETY: It stays until the close has returned.
            let kind = unsafe { (*self.adapter).header.object_type };
            kind == bindings::NDK_OBJECT_TYPE_UNDEFINED
        }

        /// Returns true if a call with the adapter is refused with a warning.
        fn refuses_calls(&self) -> bool {
            let mut size = 0;
            let mut status = SUCCESS;
            let warned = warnings_of(|| {
                let size = &raw mut size;
                let nothing = ptr::null_mut();
                status = call(|| {
                    Ok(entry!(
                        self.table,
                        query_adapter_info,
                        self.adapter,
                        nothing,
                        size
                    ))
                });
            });
            warned == Some(1) && status == NtStatus::INVALID_PARAMETER.raw() && size == 0
        }
    }

    // Another thread closes the adapter.
    struct Sent(*mut bindings::ndk_adapter);
    // SAFETY: An adapter may be closed by any thread.
    unsafe impl Send for Sent {}
    // SAFETY: As above; only one does.
    unsafe impl Sync for Sent {}

    impl Sent {
        fn close(&self) -> bool {
            // SAFETY: A live adapter, closed once.
            unsafe { ndk_face_close(self.0, None, ptr::null_mut()) }
        }
    }

    #[test]
    fn ndk_gen_08_a_call_keeps_its_object_though_that_is_closed_meanwhile() -> Result {
        let mut consumer = Consumer::new()?;
        // Each entry begins with `get`.
        // SAFETY: A live connector.
        let object = unsafe { get::<Connector>(consumer.connector) }.ok_or(EINVAL)?;
        let table = consumer.table::<_, bindings::ndk_connector_dispatch>(consumer.connector)?;
        let header = consumer.connector.cast();
        let none = ptr::null_mut();
        consumer.things.pop();
        // Over at once: the handle is gone.
        kunit_assert_eq!(entry!(table, close, header, None, none), SUCCESS);
        assert!(object.is_closed());
        kunit_assert_eq!(object.local_address(), Err(NtStatus::CONNECTION_INVALID));
        Ok(())
    }

    #[test]
    fn ndk_clos_07_the_handle_stays_as_long_as_the_close_waits() -> Result {
        let opened = Opened::new()?;
        let returned = Arc::new(Tally::new(), GFP_KERNEL)?;
        let (closer, tally) = (Sent(opened.adapter), returned.clone());
        let other_task = OtherContext::new(move || {
            if closer.close() {
                tally.hit();
            }
        })?;
        let threads = ProcessQueue::new(c"ndk_test_closer")?;
        assert!(other_task.begin(&threads));
        assert!(wait_until(|| opened.object.is_closed()));
        let stays = opened.is_a_closed_one() && opened.refuses_calls();
        let waits = returned.get() == 0;
        let closed = opened.cq.close();
        assert!(other_task.is_done());
        assert!(stays);
        assert!(waits);
        assert!(closed);
        kunit_assert_eq!(returned.get(), 1);
        Ok(())
    }

    #[test]
    fn ndk_clos_07_an_adapter_closed_in_a_callback_is_given_back_when_it_goes() -> Result {
        let opened = Opened::new()?;
        let later = CallbackLog::new()?;
        let close = || {
            let softirqs_off = BhDisabled::enter();
            // SAFETY: An adapter whose close is not over; `later` is there until the end.
            let gone = unsafe { ndk_face_close(opened.adapter, Some(notified), later.context()) };
            drop(softirqs_off);
            gone
        };
        assert!(!close());
        opened.test_host.flush_work();
        kunit_assert_eq!(later.calls.get(), 0);
        assert!(opened.object.is_closed());
        assert!(opened.is_a_closed_one());
        assert!(opened.refuses_calls());
        // A second close warns, and has no other effect.
        let mut again = true;
        kunit_assert_eq!(warnings_of(|| again = close()), Some(1));
        assert!(!again);
        assert!(opened.cq.close());
        later.wait::<core::ffi::c_void>()?;
        opened.test_host.flush_work();
        kunit_assert_eq!(later.calls.get(), 1);
        Ok(())
    }

    #[test]
    fn ndk_clos_07_a_close_that_has_waited_calls_nobody() -> Result {
        let opened = Opened::new()?;
        let later = CallbackLog::new()?;
        assert!(opened.cq.close());
        // SAFETY: A live adapter, closed once; `later` is there until the end.
        let gone = unsafe { ndk_face_close(opened.adapter, Some(notified), later.context()) };
        opened.test_host.flush_work();
        assert!(gone);
        kunit_assert_eq!(later.calls.get(), 0);
        // No adapter at all.
        // SAFETY: Null.
        let gone = unsafe { ndk_face_close(ptr::null_mut(), Some(notified), later.context()) };
        assert!(!gone);
        kunit_assert_eq!(later.calls.get(), 0);
        Ok(())
    }
}
