//! Compiles code also for wider vector registers, and uses it if the processor has them.

#[cfg(target_arch = "x86_64")]
use std::sync::LazyLock;

/// A computation that is compiled twice. [`SimdTask::run`] and its inner loops must be
/// inlined.
pub trait SimdTask {
    type Out;
    fn run(self) -> Self::Out;
}

/// Runs a task with AVX2 if the processor has it; the program itself is built for
/// processors without. With AVX2 and fewer passes over the windows of a block, deviations
/// rose from 59 to 70 M rows/s (`cargo bench --bench rolling`).
pub fn dispatch_simd<T: SimdTask>(task: T) -> T::Out {
    #[cfg(target_arch = "x86_64")]
    if is_wide() {
        // SAFETY: the processor has the features that the function is compiled for.
        #[allow(unsafe_code)]
        return unsafe { with_avx2(task) };
    }
    task.run()
}

#[cfg(target_arch = "x86_64")]
fn is_wide() -> bool {
    // One word to read, for tasks of a few operations.
    static IS_WIDE: LazyLock<bool> = LazyLock::new(|| {
        is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt")
    });
    *IS_WIDE
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
fn with_avx2<T: SimdTask>(task: T) -> T::Out {
    task.run()
}

/// Whether values ascend. Some thousand are compared without a branch per value.
pub fn is_sorted<T: PartialOrd>(values: &[T]) -> bool {
    const VALUES_PER_CHECK: usize = 1024;
    let mut starts = (0..values.len()).step_by(VALUES_PER_CHECK);
    starts.all(|from| {
        dispatch_simd(IsSorted(
            &values[from..values.len().min(from + VALUES_PER_CHECK + 1)],
        ))
    })
}

struct IsSorted<'a, T>(&'a [T]);

impl<T: PartialOrd> SimdTask for IsSorted<'_, T> {
    type Out = bool;

    #[inline(always)]
    fn run(self) -> bool {
        let pairs = self.0.iter().zip(self.0.get(1..).unwrap_or_default());
        pairs.fold(true, |all, (a, b)| all & (a <= b))
    }
}
