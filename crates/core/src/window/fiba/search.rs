//! Searches short sorted runs. Both functions return the result of `partition_point`.

const BLOCK: usize = 8;

/// Two rounds of loads that do not wait for each other: the last of every block, then one
/// block. Halving would wait for a cache miss at every step.
#[inline]
pub(super) fn count_before<T>(sorted: &[T], before: impl Fn(&T) -> bool) -> usize {
    let mut skipped = 0;
    for block in sorted.chunks_exact(BLOCK) {
        skipped += usize::from(before(&block[BLOCK - 1]));
    }
    let from = skipped * BLOCK;
    let mut count = from;
    for value in sorted[from..].iter().take(BLOCK) {
        count += usize::from(before(value));
    }
    count
}

/// A search for answers that tend to be small: doubling steps, then halving.
#[inline]
pub(super) fn gallop<T>(sorted: &[T], before: impl Fn(&T) -> bool) -> usize {
    let mut reach = 1;
    while reach <= sorted.len() && before(&sorted[reach - 1]) {
        reach *= 2;
    }
    let known = reach / 2;
    let open = &sorted[known..sorted.len().min(reach - 1)];
    known + open.partition_point(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agree_with_partition_point() {
        for len in 0..70_i64 {
            let sorted: Vec<i64> = (0..len).map(|value| value / 3 * 2).collect();
            for wanted in -1..=len + 1 {
                let before = |value: &i64| *value < wanted;
                let expected = sorted.partition_point(before);
                assert_eq!(count_before(&sorted, before), expected);
                assert_eq!(gallop(&sorted, before), expected);
            }
        }
    }
}
