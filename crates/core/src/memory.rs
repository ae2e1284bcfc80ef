//! Memory for whole columns.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};

/// Columns from this many bytes on are worth large pages.
const LARGE: usize = 4 << 20;

/// A column of zeros, not yet touched.
///
/// It requests large pages where the system has them: with small ones, a
/// fresh column costs more in page faults (4.4 ns per number measured, 1.2 with large
/// ones) than most kernels take to fill it.
pub fn zeroed<T: Copy + Default>(count: usize) -> Vec<T> {
    let column = vec![T::default(); count];
    if size_of_val(&column[..]) >= LARGE {
        advise(&column);
    }
    column
}

#[cfg(all(target_os = "linux", not(miri)))]
#[allow(unsafe_code)]
fn advise<T>(column: &[T]) {
    use std::ffi::{c_int, c_void};

    const PAGE: usize = 4096;
    const MADV_HUGEPAGE: c_int = 14;
    unsafe extern "C" {
        fn madvise(start: *mut c_void, length: usize, advice: c_int) -> c_int;
    }
    let start = column.as_ptr() as usize;
    let end = start + size_of_val(column);
    let (first, last) = (start.next_multiple_of(PAGE), end / PAGE * PAGE);
    if first < last {
        // SAFETY: the pages lie inside the column, and this advice changes neither what
        // they hold nor who may use them. Where it is not taken, nothing happens.
        unsafe { madvise(first as *mut c_void, last - first, MADV_HUGEPAGE) };
    }
}

#[cfg(any(not(target_os = "linux"), miri))]
fn advise<T>(_column: &[T]) {}

/// A number of eight bytes.
///
/// # Safety
/// Each pattern of 64 bits must be a value of the type, and `bits` must give the pattern of
/// its value: [`SharedColumn`] lends columns as words.
#[allow(unsafe_code)]
pub unsafe trait Word: Copy + Default + Send + Sync {
    fn bits(self) -> u64;
}

// SAFETY: each pattern is an integer.
#[allow(unsafe_code)]
unsafe impl Word for i64 {
    #[inline(always)]
    fn bits(self) -> u64 {
        self as u64
    }
}

// SAFETY: each pattern is a float, though several are NaN.
#[allow(unsafe_code)]
unsafe impl Word for f64 {
    #[inline(always)]
    fn bits(self) -> u64 {
        self.to_bits()
    }
}

/// A column that several threads fill, each its own positions.
#[derive(Clone, Copy, Debug)]
pub struct SharedColumn<'a, V> {
    words: &'a [AtomicU64],
    of: PhantomData<V>,
}

impl<'a, V: Word> SharedColumn<'a, V> {
    #[allow(unsafe_code)]
    pub fn of(column: &'a mut [V]) -> Self {
        const { assert!(size_of::<V>() == 8 && align_of::<V>() == align_of::<AtomicU64>()) }
        let first = column.as_mut_ptr().cast::<AtomicU64>();
        // SAFETY: what is borrowed alone is lent as words of the same size and alignment,
        // any of which is a value, and no other reference to it exists until they are given
        // back.
        let words = unsafe { std::slice::from_raw_parts(first, column.len()) };
        Self {
            words,
            of: PhantomData,
        }
    }

    /// A plain store: readers of the column have joined all threads that fill it.
    #[inline(always)]
    pub fn put(&self, at: usize, value: V) {
        self.words[at].store(value.bits(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_the_column() {
        let mut column = [0.0; 3];
        let slots = SharedColumn::of(&mut column);
        std::thread::scope(|scope| {
            scope.spawn(|| slots.put(2, -0.0));
            slots.put(0, f64::INFINITY);
        });
        assert_eq!(
            column.map(f64::to_bits),
            [f64::INFINITY, 0.0, -0.0].map(f64::to_bits)
        );
    }

    #[test]
    #[cfg_attr(miri, ignore = "millions of numbers, and no madvise")]
    fn columns_are_zero_whatever_their_size() {
        for count in [0, 1, 511, LARGE / 8 - 1, LARGE / 8, LARGE] {
            assert!(zeroed::<f64>(count).iter().all(|value| *value == 0.0));
        }
    }
}
