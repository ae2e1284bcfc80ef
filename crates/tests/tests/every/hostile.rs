//! Numbers at the ends of their range, forged bytes, and memory that must be released.

use slidewise_core::aggregate::word::SumI64;
use slidewise_core::aggregate::{AggSpec, Answer, Cell, DType, Kind};
use slidewise_core::monoid::Entry;
use slidewise_core::snapshot::{Codec, Reader, Writer};
use slidewise_core::window::fiba::Fiba;
use slidewise_core::window::planned::algorithm::Algorithm;
use slidewise_core::window::planned::plain::window;
use slidewise_core::window::{Ties, Window};

type Sums = Fiba<SumI64, 64, 32>;

fn bytes(write: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut out = Writer::default();
    write(&mut out);
    out.finish().expect("numbers have a binary form")
}

/// A tree of a single leaf that claims `count` entries in slots `start..end`.
fn leaf(count: u64, start: u16, end: u16) -> Vec<u8> {
    bytes(|out| {
        out.put(&[1, 0]);
        count.write(out);
        0_u16.write(out);
        start.write(out);
        end.write(out);
        0_u16.write(out);
        out.all(&[0_i128; 3]);
        out.put(&[0]);
        out.all(&[0_u64; 2]);
        0_u16.write(out);
    })
}

#[test]
fn an_empty_leaf_starts_at_its_front() {
    let mut window = Sums::new(SumI64, Ties::Combine);
    assert!(window.read(&mut Reader::new(&leaf(0, 0, 0))).is_ok());
    assert_eq!(window.evict(), None);
    assert!(window.read(&mut Reader::new(&leaf(0, 64, 64))).is_err());
}

#[test]
fn a_count_must_be_that_of_the_entries() {
    for count in [1, u64::MAX] {
        let mut window = Sums::new(SumI64, Ties::Combine);
        assert!(window.read(&mut Reader::new(&leaf(count, 0, 0))).is_err());
    }
}

#[test]
fn thin_nodes_are_refused_as_they_are_read() {
    let blob = bytes(|out| {
        out.put(&[1, 2]);
        out.all(&[1_u64]);
        0_u16.write(out);
        32_u16.write(out);
        for _ in 0..32 {
            out.put(&[0; 28]);
            32_u16.write(out);
            out.put(&[0; 32 * 32]);
        }
    });
    let mut window = Sums::new(SumI64, Ties::Combine);
    let refusal = window
        .read(&mut Reader::new(&blob))
        .expect_err("no entries");
    assert!(refusal.0.contains("a leaf of slots 0..0"), "{refusal}");
}

#[test]
fn forged_counts_of_records_do_not_panic() {
    let spec = |kind| AggSpec {
        kind,
        of: Some(0),
        by: None,
        ddof: 1,
    };
    let aggs = [spec(Kind::Count), spec(Kind::Sum)];
    let mut sums = window::<i64>(Algorithm::Recalculate, &aggs, &[DType::I64], Ties::Combine);
    let blob = bytes(|out| {
        2_u64.write(out);
        for time in 0..2_i64 {
            time.write(out);
            out.put(&[1]);
            3_u64.write(out);
            [u64::MAX, 0, 0].write(out);
        }
    });
    sums.read(&mut Reader::new(&blob)).expect("well formed");
    sums.query(&mut Vec::new());
}

#[test]
fn sums_next_to_the_largest_float_are_finite() {
    let small = -1.5 * 2_f64.powi(971);
    for rows in [[small, f64::MAX], [f64::MAX, small]] {
        let sum = AggSpec {
            kind: Kind::Sum,
            of: Some(0),
            by: None,
            ddof: 1,
        };
        let mut sums = window::<i64>(Algorithm::Fiba, &[sum], &[DType::F64], Ties::Combine);
        for (time, value) in rows.into_iter().enumerate() {
            sums.insert(time as i64, &[Cell::F64(value)])
                .expect("any order");
        }
        let mut out = Vec::new();
        sums.query(&mut out);
        assert!(
            matches!(out[0], Answer::F64(sum) if sum.is_finite()),
            "{out:?}"
        );
    }
}

#[test]
fn memory_comes_back() {
    let fill = |window: &mut Sums| {
        for time in 0..200_000 {
            window.insert(time, Entry::Raw(1));
        }
        assert!(window.bytes() > 3_000_000);
    };
    let mut window = Sums::new(SumI64, Ties::Combine);
    fill(&mut window);
    while window.evict().is_some() {}
    assert!(window.bytes() < 20_000, "drained: {}", window.bytes());
    for left in [100, 19, 3, 0] {
        fill(&mut window);
        assert_eq!(window.evict_until(199_999 - left), 200_000 - left as usize);
        assert!(window.bytes() < 20_000, "{left} left: {}", window.bytes());
        window.check().expect("still a window");
        window.clear();
    }
}
