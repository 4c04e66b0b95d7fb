// SPDX-License-Identifier: GPL-2.0

//! [`BlockingCallback`]: a callback that returns when the test releases it.

use kernel::{
    prelude::*,
    sync::{
        atomic::{
            ordering::{
                Acquire,
                Release, //
            },
            AtomicFlag, //
        },
        Arc, //
    }, //
};

use super::{
    completion::{
        made,
        AutoClose,
        CallbackValue, //
    },
    host::TestHost, //
};
use crate::{
    kunit::harness::{
        came_in_time,
        wait_ms,
        Deadline, //
    },
    ndk::{
        adapter::Adapter,
        call::done,
        cq::Cq,
        life::{
            ObjectType,
            Ref, //
        },
        status::{
            NtStatus,
            Progress, //
        }, //
    },
    sys::event::Event, //
};

/// The longest stay, at the first try, of a callback that may come on the processor of its test, in
/// milliseconds; doubled at each later try, up to `LONGEST_STAY_MS`. If that does not suffice, the
/// watchdog of the machine complains.
const STAY_MS: u32 = 500;
const LONGEST_STAY_MS: u32 = 16_000;

/// The number of tries of a test that its callback kept from the processor.
const TRIES: u32 = 12;

/// A callback that blocks.
#[pin_data]
pub(super) struct BlockingCallback {
    #[pin]
    entered: Event,
    go: AtomicFlag,
    returned: AtomicFlag,
    overstayed: AtomicFlag,
    /// Its longest stay, in milliseconds.
    most_ms: u32,
}

impl BlockingCallback {
    /// A callback in a thread, which stays too long only if the machine hangs. May sleep.
    pub(super) fn new() -> Result<Arc<Self>> {
        Self::staying(wait_ms())
    }

    fn staying(most_ms: u32) -> Result<Arc<Self>> {
        let callback = pin_init!(Self {
            entered <- Event::new(),
            go: AtomicFlag::new(false),
            returned: AtomicFlag::new(false),
            overstayed: AtomicFlag::new(false),
            most_ms,
        });
        Arc::pin_init(callback, GFP_KERNEL)
    }

    /// Blocks the callback until [`Self::release`], or for the longest stay. Does not sleep.
    pub(super) fn stay(&self) {
        let end = Deadline::in_ms(self.most_ms.into());
        self.entered.signal();
        while !self.go.load(Acquire) && !end.is_over() {
            core::hint::spin_loop();
        }
        self.overstayed.store(!self.go.load(Acquire), Release);
        self.returned.store(true, Release);
    }

    /// Waits until the callback has begun; false after a timeout.
    pub(super) fn is_entered(&self) -> bool {
        came_in_time(&self.entered)
    }

    /// Releases the callback.
    pub(super) fn release(&self) {
        self.go.store(true, Release);
    }

    /// Returns true if the callback is about to return.
    pub(super) fn has_returned(&self) -> bool {
        self.returned.load(Acquire)
    }
}

/// Returns true if `test` holds. Repeats `test` if the callback came on the processor of the test,
/// or of a thread that the test waits for, and the test could not release the callback in time.
pub(super) fn holds(test: impl Fn(Arc<BlockingCallback>) -> Result<bool>) -> Result<bool> {
    for n in 0..TRIES {
        let stay_ms = (STAY_MS << n).min(LONGEST_STAY_MS);
        let callback = BlockingCallback::staying(stay_ms)?;
        let held = test(callback.clone())?;
        if held || !callback.overstayed.load(Acquire) {
            return Ok(held);
        }
    }
    Ok(false)
}

/// Lets the work that is now queued for threads begin: work that need not wait has had its chance
/// then. False after a timeout.
pub(super) fn others_run(test_host: &TestHost) -> Result<bool> {
    for _ in 0..3 {
        let slot = CallbackValue::new()?;
        let mut call = slot.callback()?;
        let threads = &test_host.device.host.threads;
        threads.spawn(GFP_KERNEL, move || call.call(()))?;
        if slot.wait().is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns true if the close of `object` pends while the callback blocks, and ends after the
/// callback has returned.
pub(super) fn close_waits<T: ObjectType>(
    test_host: &TestHost,
    object: &mut AutoClose<T>,
    callback: &Arc<BlockingCallback>,
) -> Result<bool> {
    let entered = callback.is_entered();
    let slot = CallbackValue::new()?;
    let (end, watch) = (slot.clone(), callback.clone());
    let notified = done(GFP_KERNEL, move |()| end.put(watch.has_returned()));
    let progress = object.give_up()?.close(notified.map_err(|_| ENOMEM)?);
    let pending = matches!(progress, Progress::Pending);
    let waited = others_run(test_host)? && slot.calls.get() == 0 && !callback.has_returned();
    callback.release();
    let after = slot.wait();
    test_host.flush_work();
    let once = slot.calls.get() == 1;
    let fine = entered && pending && waited && after == Some(true) && once;
    if !fine {
        kunit_note!("{entered} {pending} {waited} {after:?} {once}");
    }
    Ok(fine)
}

/// A completion queue with a closure as its user.
pub(super) fn cq_with(
    adapter: &Ref<Adapter>,
    (depth, cpu): (u32, Option<u32>),
    user: impl Fn(NtStatus) + Send + Sync + 'static,
) -> Result<AutoClose<Cq>> {
    let user = KBox::new(user, GFP_KERNEL)?;
    made(|done| adapter.create_cq(depth, cpu, user, done))
}
