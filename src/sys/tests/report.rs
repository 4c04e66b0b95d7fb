// SPDX-License-Identifier: GPL-2.0

//! Messages of a failing test in its log: both sides of a comparison, and the case of a table.
//!
//! KUnit ends the thread of a test at the first assertion that fails, without drops. An action of
//! the test, which KUnit runs after the thread's end, adds the cases.
//!
//! C header: [`include/kunit/test.h`](srctree/include/kunit/test.h)

use core::fmt::{
    Arguments,
    Debug,
    Write, //
};

use kernel::{
    ffi::c_char,
    prelude::fmt,
    types::NotThreadSafe, //
};

use crate::bindings;

/// A line of text, cut to the room.
struct Line<const N: usize> {
    text: [u8; N],
    len: usize,
}

impl<const N: usize> Line<N> {
    fn of(words: Arguments<'_>) -> Self {
        let mut line = Self {
            text: [0; N],
            len: 0,
        };
        // The call does not fail: text without room is left out.
        let _ = line.write_fmt(words);
        line
    }

    fn as_str(&self) -> &str {
        core::str::from_utf8(&self.text[..self.len]).unwrap_or_default()
    }

    /// The address of the text, and its length.
    fn as_c(&self) -> (*const c_char, u32) {
        // CAST: a few hundred at most.
        (self.text.as_ptr().cast(), self.len as u32)
    }
}

impl<const N: usize> Write for Line<N> {
    fn write_str(&mut self, s: &str) -> core::fmt::Result {
        let mut len = s.len().min(N - self.len);
        while !s.is_char_boundary(len) {
            len -= 1;
        }
        self.text[self.len..][..len].copy_from_slice(&s.as_bytes()[..len]);
        self.len += len;
        Ok(())
    }
}

/// Adds a line to the log of this task's test. The line goes to the kernel's log alone outside of a
/// test, where the task may not sleep, and while its allocations are to fail. Any context.
pub(crate) fn note(words: Arguments<'_>) {
    let line: Line<512> = Line::of(words);
    let (text, len) = line.as_c();
    // SAFETY: `text` points at `len` bytes, which live until the call returns.
    unsafe { bindings::ndk_kunit_note(text, len) };
}

/// Adds a finding of the test, or of a fixture, to the log of the test.
macro_rules! kunit_note {
    ($($line:tt)*) => {
        $crate::sys::tests::report::note(kernel::prelude::fmt!($($line)*))
    };
}

/// Returns true if the two are equal; notes both, and the name of the first, if they are not. Any
/// context.
pub(crate) fn compare<L, R>(name: &str, got: &L, want: &R) -> bool
where
    L: PartialEq<R> + Debug + ?Sized,
    R: Debug + ?Sized,
{
    let is_same = got == want;
    if !is_same {
        // Each value has room of its own, so that one leaves some to the other.
        let got: Line<180> = Line::of(fmt!("{got:?}"));
        let want: Line<180> = Line::of(fmt!("{want:?}"));
        kunit_note!("{name:.100} is {} and not {}", got.as_str(), want.as_str());
    }
    is_same
}

/// The same as [`compare`] for a fixture: its caller knows the name.
pub(crate) fn same<L: PartialEq<R> + Debug, R: Debug>(got: L, want: R) -> bool {
    compare("it", &got, &want)
}

/// Asserts that the first equals the second, as `assert_eq!` does, and notes both if not: the
/// kernel's form has only the condition. In the body of a `#[test]`.
macro_rules! kunit_assert_eq {
    ($got:expr, $want:expr $(,)?) => {{
        let is_same = $crate::sys::tests::report::compare(stringify!($got), &$got, &$want);
        assert!(is_same);
    }};
}

/// The items of a list, one after the other. A test that fails has the current item in its log.
///
/// Loops in loops have one line each, up to four. Outside of the test's own task, where it may not
/// sleep, and while its allocations are to fail, this is a plain iterator. Any context.
pub(crate) fn cases<I: IntoIterator<Item: Debug>>(list: I) -> Cases<I::IntoIter> {
    Cases {
        items: list.into_iter(),
        // SAFETY: The function changes the state of this task's test only. A negative answer is no
        // depth.
        depth: u32::try_from(unsafe { bindings::ndk_kunit_loop_begin() }).ok(),
        is_over: false,
        _task: NotThreadSafe,
    }
}

/// The iterator of [`cases`].
pub(crate) struct Cases<I> {
    items: I,
    /// The number of loops around this one; `None` if it is not in the log.
    depth: Option<u32>,
    is_over: bool,
    _task: NotThreadSafe,
}

impl<I: Iterator<Item: Debug>> Iterator for Cases<I> {
    type Item = I::Item;

    fn next(&mut self) -> Option<I::Item> {
        let item = self.items.next();
        if let (Some(depth), Some(item)) = (self.depth, &item) {
            let line: Line<180> = Line::of(fmt!("{item:?}"));
            let (text, len) = line.as_c();
            // SAFETY: `text` points at `len` bytes, which live until the call returns; the task is
            // that of the test, as a value of this type does not leave its task.
            unsafe { bindings::ndk_kunit_case(depth, text, len) };
        }
        self.is_over = item.is_none();
        item
    }
}

impl<I> Drop for Cases<I> {
    fn drop(&mut self) {
        if let Some(depth) = self.depth {
            // SAFETY: The task is that of the test, as a value of this type does not leave its
            // task.
            unsafe { bindings::ndk_kunit_loop_end(depth, self.is_over) };
        }
    }
}

#[kernel::macros::kunit_tests(ndk_sys_tests_report)]
mod tests {
    use super::*;

    /// The line that the log of this test would have for the loop at a depth.
    fn line_at(depth: u32) -> Line<256> {
        let mut line = Line::of(fmt!(""));
        // CAST: 256.
        let (to, room) = (line.text.as_mut_ptr().cast(), line.text.len() as u32);
        // SAFETY: `to` has room for `room` bytes. Only this task, which is the test's, changes the
        // line that is copied.
        let len = unsafe { bindings::ndk_kunit_case_at(depth, to, room) };
        line.len = len as usize;
        line
    }

    #[test]
    fn the_log_has_the_case_of_each_loop_until_it_is_over() {
        for (n, name) in cases([(1, "one"), (2, "two")]) {
            assert!(line_at(1).as_str().is_empty());
            let outer = ["case: (1, \"one\")", "case: (2, \"two\")"][n - 1];
            for inner in cases([true, false]) {
                kunit_assert_eq!(line_at(0).as_str(), outer);
                let want = if inner { "case: true" } else { "case: false" };
                kunit_assert_eq!(line_at(1).as_str(), want);
            }
            kunit_assert_eq!(name.len(), 3);
            assert!(line_at(1).as_str().is_empty());
        }
        assert!(line_at(0).as_str().is_empty());
    }

    #[test]
    fn a_loop_that_is_left_keeps_its_last_case_until_the_next_comes() {
        for n in cases(0..9) {
            if n == 4 {
                break;
            }
        }
        kunit_assert_eq!(line_at(0).as_str(), "last case: 4");
        let mut next = cases([7]);
        kunit_assert_eq!(next.next(), Some(7));
        kunit_assert_eq!(line_at(0).as_str(), "case: 7");
        assert!(next.next().is_none());
        drop(next);
        assert!(line_at(0).as_str().is_empty());
    }

    #[test]
    fn a_fifth_loop_is_a_plain_iterator() {
        let loops = [(); 5].map(|()| cases([3]));
        let loops = loops.map(|mut one| (one.next(), one));
        for depth in 0..4 {
            kunit_assert_eq!(line_at(depth).as_str(), "case: 3");
        }
        assert!(line_at(4).as_str().is_empty());
        for (item, _) in loops {
            kunit_assert_eq!(item, Some(3));
        }
    }

    #[test]
    fn text_without_room_is_left_out_by_whole_characters() {
        let line: Line<256> = Line::of(fmt!("{:>300}", 7));
        kunit_assert_eq!(line.len, 256);
        kunit_assert_eq!(line.text[255], b' ');
        let line: Line<4> = Line::of(fmt!("abc{}", "\u{e4}"));
        kunit_assert_eq!(line.as_str(), "abc");
    }

    // The reader of the results looks for this failure where the parameter `fails` orders it.
    #[test]
    fn a_failure_says_both_values_and_the_case() {
        // SAFETY: The function reads a parameter of the module.
        let wrong = u32::from(unsafe { bindings::ndk_kunit_fails() });
        for n in cases([3, 4]) {
            kunit_assert_eq!(n + wrong * (n - 3), n);
        }
    }

    #[test]
    fn two_are_the_same_as_the_operator_says() {
        assert!(same(Some(3), Some(3)));
        assert!(same(&b"abc"[..], [b'a', b'b', b'c']));
        kunit_assert_eq!(1 + 1, 2);
    }
}
