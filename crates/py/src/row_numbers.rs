//! Rows by number or group: small passes over int64 columns.
//!
//! Each replaces a sort, a hash table or a plan of Arrow.

use arrow_array::{BooleanArray, Int64Array, UInt32Array};
use arrow_buffer::BooleanBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arrow::{ArrowArray, NumberArray, import_codes};

/// Divides numbers into parts at ascending `ends`; the last part is at or above all of them.
/// Returns the count of each part, the numbers part by part, and the new place of each given
/// number; no places if the numbers are in this order already.
#[pyfunction]
pub(crate) fn split_numbers(
    py: Python<'_>,
    numbers: &Bound<'_, PyAny>,
    ends: Vec<i64>,
) -> PyResult<(Vec<usize>, ArrowArray, Option<ArrowArray>)> {
    let numbers = NumberArray::import_keys(numbers, "numbers")?;
    let (counts, split, places) = py.detach(|| split(numbers.values(), &ends));
    let split = split.map_or_else(|| numbers.clone(), Int64Array::from);
    let places = places.map(|places| ArrowArray::new(Int64Array::from(places).into()));
    Ok((counts, ArrowArray::new(split.into()), places))
}

type Split = (Vec<usize>, Option<Vec<i64>>, Option<Vec<i64>>);

fn split(numbers: &[i64], ends: &[i64]) -> Split {
    let mut counts = vec![0; ends.len() + 1];
    let (mut part, mut ascend) = (0, true);
    let mut last = 0;
    let parts: Vec<u32> = numbers
        .iter()
        .map(|number| {
            // Most numbers are in the part of the one before.
            let above = part > 0 && *number < ends[part - 1];
            if above || ends.get(part).is_some_and(|end| number >= end) {
                part = ends.partition_point(|end| end <= number);
            }
            ascend &= part >= last;
            last = part;
            counts[part] += 1;
            part as u32
        })
        .collect();
    if ascend {
        return (counts, None, None);
    }
    let mut next = Vec::with_capacity(counts.len());
    let mut before = 0;
    for count in &counts {
        next.push(before);
        before += count;
    }
    let mut split = vec![0; numbers.len()];
    let place = |(number, part): (&i64, u32)| {
        let place = next[part as usize];
        next[part as usize] += 1;
        split[place] = *number;
        place as i64
    };
    let places = numbers.iter().zip(parts).map(place).collect();
    (counts, Some(split), Some(places))
}

/// A set is a bitmap up to this number of bits per member.
const BITS_PER_NUMBER: usize = 256;

/// For each number, whether a set contains it.
#[pyfunction]
pub(crate) fn are_among(
    py: Python<'_>,
    numbers: &Bound<'_, PyAny>,
    some: &Bound<'_, PyAny>,
) -> PyResult<ArrowArray> {
    let numbers = NumberArray::import_keys(numbers, "numbers")?;
    let some = NumberArray::import_keys(some, "numbers")?;
    let found = py.detach(|| among(numbers.values(), some.values()));
    Ok(ArrowArray::new(BooleanArray::new(found, None).into()))
}

fn among(numbers: &[i64], some: &[i64]) -> BooleanBuffer {
    let ends = some.iter().min().zip(some.iter().max());
    let Some((&first, &last)) = ends else {
        return BooleanBuffer::new_unset(numbers.len());
    };
    let most = BITS_PER_NUMBER.saturating_mul(numbers.len() + some.len());
    let at = |number: i64| number.wrapping_sub(first) as u64 as usize;
    if at(last) >= most {
        let mut sorted = some.to_vec();
        sorted.sort_unstable();
        let holds = |row: usize| sorted.binary_search(&numbers[row]).is_ok();
        return BooleanBuffer::collect_bool(numbers.len(), holds);
    }
    let mut bits = vec![0_u64; at(last) / 64 + 1];
    for &number in some {
        bits[at(number) / 64] |= 1 << (at(number) % 64);
    }
    BooleanBuffer::collect_bool(numbers.len(), |row| {
        let number = at(numbers[row]);
        let word = bits.get(number / 64);
        word.is_some_and(|word| word >> (number % 64) & 1 == 1)
    })
}

type Groups = (ArrowArray, ArrowArray, ArrowArray, ArrowArray);

/// For each group of rows, by code: the first row, the earliest and the latest time, and the
/// number of rows. Every code below the greatest has a row.
#[pyfunction]
pub(crate) fn group_ends(
    py: Python<'_>,
    codes: &Bound<'_, PyAny>,
    times: &Bound<'_, PyAny>,
) -> PyResult<Groups> {
    let codes = import_codes(codes)?;
    let times = NumberArray::import_keys(times, "times")?;
    if codes.values().len() != times.values().len() {
        return Err(PyValueError::new_err("codes and times differ in length"));
    }
    let groups = py.detach(|| ends_of(&codes, times.values()));
    let groups = groups.map_err(|code| PyValueError::new_err(format!("no rows have {code}")))?;
    Ok(groups.map(exported).into())
}

fn exported(column: Vec<i64>) -> ArrowArray {
    ArrowArray::new(Int64Array::from(column).into())
}

/// # Errors
/// A code that no row has.
fn ends_of(codes: &UInt32Array, times: &[i64]) -> Result<[Vec<i64>; 4], usize> {
    let most = codes.values().iter().max();
    let count = most.map_or(0, |most| *most as usize + 1);
    if count > times.len() {
        return Err(count - 1);
    }
    let (mut rows, mut counts) = (vec![0; count], vec![0; count]);
    let (mut earliest, mut latest) = (vec![i64::MAX; count], vec![i64::MIN; count]);
    for ((row, code), time) in (0..).zip(codes.values()).zip(times) {
        let code = *code as usize;
        if counts[code] == 0 {
            rows[code] = row;
        }
        counts[code] += 1;
        earliest[code] = earliest[code].min(*time);
        latest[code] = latest[code].max(*time);
    }
    match counts.iter().position(|count| *count == 0) {
        Some(code) => Err(code),
        None => Ok([rows, earliest, latest, counts]),
    }
}

/// The number of rows of each group below `count`, by the codes of rows; and the place of each
/// row in its group.
#[pyfunction]
pub(crate) fn places_in_groups(
    py: Python<'_>,
    codes: &Bound<'_, PyAny>,
    count: usize,
) -> PyResult<(ArrowArray, ArrowArray)> {
    let codes = import_codes(codes)?;
    let (counts, places) = py.detach(|| {
        let mut counts = vec![0; count];
        let place = |code: &u32| {
            let slot: &mut i64 = counts.get_mut(*code as usize)?;
            *slot += 1;
            Some(*slot - 1)
        };
        let places: Option<Vec<i64>> = codes.values().iter().map(place).collect();
        (counts, places)
    });
    let beyond = || PyValueError::new_err(format!("a code is not below {count}"));
    Ok((exported(counts), exported(places.ok_or_else(beyond)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_split_in_their_order() {
        let ends = [4, 9, 9, 20];
        let (counts, numbers, places) = split(&[3, 10, 0, 4, 25, 8], &ends);
        assert_eq!(counts, [2, 2, 0, 1, 1]);
        assert_eq!(numbers, Some(vec![3, 0, 4, 8, 10, 25]));
        assert_eq!(places, Some(vec![0, 4, 1, 2, 5, 3]));
        let (counts, numbers, places) = split(&[3, 0, 5, 12], &ends);
        assert_eq!(counts, [2, 1, 0, 1, 0]);
        assert_eq!((numbers, places), (None, None));
        assert_eq!(split(&[], &[]), (vec![0], None, None));
        assert_eq!(split(&[7], &[]), (vec![1], None, None));
    }

    #[test]
    fn numbers_near_and_far_apart_are_found() {
        let sets: [&[i64]; 4] = [&[5, 7], &[i64::MIN, i64::MAX, 5], &[], &[-3]];
        let numbers = [i64::MIN, -3, -2, 5, 6, 7, 8, i64::MAX];
        for some in sets {
            let found: Vec<bool> = among(&numbers, some).iter().collect();
            let expected: Vec<bool> = numbers.iter().map(|n| some.contains(n)).collect();
            assert_eq!(found, expected, "{some:?}");
        }
    }

    #[test]
    fn groups_have_ends() {
        let codes = UInt32Array::from(vec![0, 1, 0, 2]);
        let found = ends_of(&codes, &[5, 1, -2, 9]);
        let expected = [vec![0, 1, 3], vec![-2, 1, 9], vec![5, 1, 9], vec![2, 1, 1]];
        assert_eq!(found, Ok(expected));
        assert_eq!(ends_of(&UInt32Array::from(vec![0, 2, 2]), &[1; 3]), Err(1));
        assert_eq!(ends_of(&UInt32Array::from(vec![7]), &[1]), Err(7));
    }
}
