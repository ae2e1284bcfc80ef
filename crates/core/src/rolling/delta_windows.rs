//! Delta windows: back from a row to the first whose value lies too far below its own
//! (Gedik: *Generic Windowing Support for Extensible Stream Processing Systems*, 2014).

/// The position at which the window of each row begins. `values` are in order of group and
/// time and do not fall within a group; `begins` has the first position of each row's
/// group. A value that falls gives an error with its position.
///
/// Windows only move forward, because a later value is no nearer to earlier ones.
///
/// # Panics
/// If `begins` is shorter than `values`.
pub fn delta_starts<T: PartialOrd + Copy>(
    values: &[T],
    begins: &[i64],
    within: impl Fn(T, T) -> bool,
) -> Result<Vec<i64>, usize> {
    let mut start = 0;
    let mut starts = Vec::with_capacity(values.len());
    for (at, &value) in values.iter().enumerate() {
        let begin = begins[at] as usize;
        if at > begin && value < values[at - 1] {
            return Err(at);
        }
        start = start.max(begin);
        while start < at && !within(value, values[start]) {
            start += 1;
        }
        starts.push(start as i64);
    }
    Ok(starts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_reaches_back_to_the_first_value_too_far() {
        let values = [1, 4, 4, 9, 2, 3, 8];
        let begins = [0, 0, 0, 0, 4, 4, 4];
        let within = |now: i64, then: i64| now.abs_diff(then) <= 5;
        let found = delta_starts(&values, &begins, within);
        assert_eq!(found, Ok(vec![0, 0, 0, 1, 4, 4, 5]));
    }

    #[test]
    fn values_at_the_ends_of_int64_and_infinities_are_distinct() {
        let within = |now: i64, then: i64| now.abs_diff(then) <= 1;
        let found = delta_starts(&[i64::MIN, -1, i64::MAX], &[0; 3], within);
        assert_eq!(found, Ok(vec![0, 1, 2]));
        let values = [f64::NEG_INFINITY, 0.0, f64::INFINITY, f64::INFINITY];
        let within = |now: f64, then: f64| now == then || now - then <= 1.0;
        assert_eq!(delta_starts(&values, &[0; 4], within), Ok(vec![0, 1, 2, 2]));
    }

    #[test]
    fn a_value_that_falls_is_named() {
        let found = delta_starts(&[5, 7, 3, 2], &[0, 0, 2, 2], |_, _| true);
        assert_eq!(found, Err(3));
    }
}
