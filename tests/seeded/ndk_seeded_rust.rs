// SPDX-License-Identifier: GPL-2.0

//! Bugs in Rust for the kernel's checkers to find. Loading the module with the name of one set
//! runs it.

use core::{
    cell::UnsafeCell,
    hint::black_box,
    mem,
    ptr, //
};

use kernel::{
    bindings,
    new_mutex,
    new_spinlock,
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Release, //
        },
        Arc,
        Mutex,
        SpinLock, //
    },
    time::{
        delay::fsleep,
        Delta, //
    },
    workqueue, //
};

module! {
    type: Seeded,
    name: "ndk_seeded_rust",
    authors: ["The ndk developers"],
    description: "Bugs in Rust for the kernel's checkers to find",
    license: "GPL",
    params: {
        lock_inversion: bool { default: false, description: "two locks in either order", },
        mutex_under_spinlock: bool { default: false, description: "a sleep in atomic context", },
        use_after_free: bool { default: false, description: "a read of a dropped box", },
        out_of_bounds: bool { default: false, description: "a read behind a box", },
        copy_past_end: bool { default: false, description: "a copy that is longer than its box", },
        c_copy_past_end: bool { default: false, description: "the same by C's memcpy()", },
        leak: bool { default: false, description: "a box that is never dropped", },
        race: bool { default: false, description: "two that count without a lock", },
    },
}

#[pin_data]
struct Locks {
    #[pin]
    first: SpinLock<()>,
    #[pin]
    second: SpinLock<()>,
    #[pin]
    mutex: Mutex<()>,
}

impl Locks {
    fn new() -> Result<Pin<KBox<Self>>> {
        KBox::pin_init(
            pin_init!(Self {
                first <- new_spinlock!(()),
                second <- new_spinlock!(()),
                mutex <- new_mutex!(()),
            }),
            GFP_KERNEL,
        )
    }
}

fn lock_inversion() -> Result {
    let locks = Locks::new()?;
    {
        let _first = locks.first.lock();
        let _second = locks.second.lock();
    }
    {
        let _second = locks.second.lock();
        let _first = locks.first.lock();
    }
    Ok(())
}

fn mutex_under_spinlock() -> Result {
    let locks = Locks::new()?;
    let _first = locks.first.lock();
    let _mutex = locks.mutex.lock();
    Ok(())
}

fn use_after_free() -> Result {
    let freed = KBox::into_raw(KBox::new(7u64, GFP_KERNEL)?);
    // SAFETY: The pointer comes from `KBox::into_raw`, and this call alone makes a box of it again.
    drop(unsafe { KBox::from_raw(freed) });
    // SAFETY: It is not safe: this is the bug, a read of memory that is no longer there.
    unsafe { freed.read_volatile() };
    Ok(())
}

fn out_of_bounds() -> Result {
    let bytes = KBox::new([7u8; 40], GFP_KERNEL)?;
    // SAFETY: It is not safe: this is the bug, a read of the byte behind the last one.
    unsafe { bytes.as_ptr().add(40).read_volatile() };
    Ok(())
}

fn copy_past_end() -> Result {
    let source = black_box([7u8; 48]);
    let mut bytes = KBox::new([0u8; 40], GFP_KERNEL)?;
    // SAFETY: It is not safe: this is the bug, a write of one byte more than there is room for.
    unsafe { ptr::copy_nonoverlapping(source.as_ptr(), bytes.as_mut_ptr(), 41) };
    Ok(())
}

fn c_copy_past_end() -> Result {
    let source = black_box([7u8; 48]);
    let mut bytes = KBox::new([0u8; 40], GFP_KERNEL)?;
    let (to, from) = (bytes.as_mut_ptr().cast(), source.as_ptr().cast());
    // SAFETY: It is not safe: this is the bug, a write of one byte more than there is room for.
    unsafe { bindings::memcpy(to, from, black_box(41)) };
    Ok(())
}

/// Several: of one a stale pointer may be left where kmemleak looks.
fn leak() -> Result {
    for _ in 0..8 {
        mem::forget(KBox::new([7u8; 777], GFP_KERNEL)?);
    }
    Ok(())
}

/// More than KCSAN lets pass between two watches.
const RACE_ROUNDS: u32 = 3_000_000;

/// A number that two count up without a lock.
struct Counter {
    number: UnsafeCell<u64>,
    begun: Atomic<u32>,
    ended: Atomic<u32>,
}

// SAFETY: It is not safe: this is the bug.
unsafe impl Sync for Counter {}

impl Counter {
    #[inline(never)]
    fn count(&self) {
        for _ in 0..RACE_ROUNDS {
            let number = black_box(self.number.get());
            // SAFETY: It is not safe: this is the bug, a write while another one reads and writes.
            unsafe { *number = (*number).wrapping_add(1) };
        }
    }
}

fn race() -> Result {
    let counter = Counter {
        number: UnsafeCell::new(0),
        begun: Atomic::new(0),
        ended: Atomic::new(0),
    };
    let counter = Arc::new(counter, GFP_KERNEL)?;
    let other = counter.clone();
    workqueue::system_unbound().try_spawn(GFP_KERNEL, move || {
        other.begun.store(1, Release);
        other.count();
        // The module stays loaded while the item ends behind this.
        other.ended.store(1, Release);
    })?;
    while counter.begun.load(Acquire) == 0 {
        fsleep(Delta::from_millis(1));
    }
    counter.count();
    while counter.ended.load(Acquire) == 0 {
        fsleep(Delta::from_millis(1));
    }
    Ok(())
}

/// The module, once the bugs that it was told to run have run.
struct Seeded;

impl kernel::Module for Seeded {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        use module_parameters as wanted;
        let bugs: [(bool, fn() -> Result); 8] = [
            (wanted::lock_inversion.value(), lock_inversion),
            (wanted::mutex_under_spinlock.value(), mutex_under_spinlock),
            (wanted::use_after_free.value(), use_after_free),
            (wanted::out_of_bounds.value(), out_of_bounds),
            (wanted::copy_past_end.value(), copy_past_end),
            (wanted::c_copy_past_end.value(), c_copy_past_end),
            (wanted::leak.value(), leak),
            (wanted::race.value(), race),
        ];
        for (is_wanted, run) in bugs {
            if is_wanted {
                run()?;
            }
        }
        Ok(Self)
    }
}
