//! Records compared with their components.

use super::super::Kind;
use super::*;

#[test]
fn common_records_are_what_their_components_make() {
    let values = [
        0.1,
        0.0,
        1e300,
        3.5,
        1e-9,
        f64::INFINITY,
        -2.0,
        f64::NAN,
        7e5,
    ];
    for kind in [
        Kind::Mean,
        Kind::GeometricMean,
        Kind::Variance,
        Kind::Stddev,
    ] {
        let agg = AggSpec {
            kind,
            of: Some(1),
            by: None,
            ddof: 1,
        };
        let dtypes = [DType::I64, DType::F64];
        let record = Record::<[u64; 2], [u64; 8]>::new(RecordPlan::new(&[agg], &dtypes));
        assert!(record.plan.common.is_some(), "{kind:?}");
        let mut partials = vec![record.identity()];
        for value in values {
            let row = [9, f64::to_bits(value)];
            let lifted = record.lift(&row);
            assert_eq!(lifted, record.lift_with(|col| Some(row[col])));
            partials.push(lifted);
        }
        for at in 0..400 {
            let (a, b) = (
                partials[at * 7 % partials.len()],
                partials[at % partials.len()],
            );
            let whole = record.combine(&a, &b);
            assert_eq!(whole, record.combine_each(&a, &b), "{kind:?} {a:?} {b:?}");
            partials.push(whole);
        }
    }
    let sums = [Kind::Sum, Kind::Count].map(|kind| AggSpec {
        kind,
        of: Some(0),
        by: None,
        ddof: 1,
    });
    let other = RecordPlan::new(&sums, &[DType::F64]);
    assert!(other.common.is_none());
}

#[test]
fn a_row_is_absorbed_as_it_is_lifted_and_combined() {
    use Kind::{All, Any, BitAnd, BitOr, BitXor, Count, First, Last, Max, Min, Sum};
    let agg = |kind, col| AggSpec {
        kind,
        of: Some(col),
        by: None,
        ddof: 1,
    };
    let ints = [Any, All, BitAnd, BitOr, BitXor, Sum, Min, Max, First, Last];
    let floats = [Count, Sum, Min, Max];
    let ints = ints.into_iter().map(|kind| agg(kind, 0));
    let aggs: Vec<_> = ints.chain(floats.map(|kind| agg(kind, 1))).collect();
    let record =
        Record::<[u64; 2], Box<[u64]>>::new(RecordPlan::new(&aggs, &[DType::I64, DType::F64]));
    assert!(record.plan.absorbs);
    let (mut absorbed, mut combined) = (record.identity(), record.identity());
    for step in 0_i64..200 {
        let float = [0.1, -0.0, 1e300, -3.5, 1e-9][step as usize % 5];
        let row = [(step * 37 % 11 - 5) as u64, f64::to_bits(float)];
        record.absorb(&mut absorbed, &row);
        combined = record.combine(&combined, &record.lift(&row));
        assert_eq!(absorbed, combined, "step {step}");
    }
}

#[test]
fn runs_are_folded_and_answered_as_rows_are() {
    use Kind::{Any, BitXor, Count, First, Last, Max, Mean, Min, Stddev, Sum, SumOfSquares};
    let agg = |(kind, col)| AggSpec {
        kind,
        of: Some(col),
        by: None,
        ddof: 1,
    };
    let absorbing = [(Any, 0), (BitXor, 0), (First, 0), (Last, 0), (Sum, 0)];
    let others = [(Stddev, 1), (Mean, 0), (SumOfSquares, 0), (First, 1)];
    let both = [(Count, 1), (Sum, 1), (Min, 1), (Max, 0)];
    for (apart, absorbs) in [(&absorbing[..], true), (&others[..], false)] {
        let aggs: Vec<_> = apart.iter().chain(&both).copied().map(agg).collect();
        let plan = RecordPlan::new(&aggs, &[DType::I64, DType::F64]);
        let record = Record::<[u64; 2], Box<[u64]>>::new(plan);
        assert_eq!(record.plan.absorbs, absorbs);
        let row = |step: i64| {
            let float = [0.1, -0.0, 1e300, -3.5, f64::INFINITY][step as usize % 5];
            [(step * 37 % 11 - 5) as u64, f64::to_bits(float)]
        };
        let run: Vec<_> = (0..40).map(row).collect();
        let begun = record.fold(&run[7..9]);
        let (mut folds, mut plain) = (vec![begun.clone()], vec![begun.clone()]);
        record.folds(&run, begun.clone(), &mut folds);
        folds_one_by_one(&record, &run, begun.clone(), &mut plain);
        assert_eq!(folds, plain);
        let (mut backs, mut plain) = (vec![record.identity()], vec![record.identity()]);
        record.folds_back(&run, record.identity(), &mut backs);
        folds_back_one_by_one(&record, &run, record.identity(), &mut plain);
        assert_eq!(backs, plain);

        let pairs: Vec<(u32, u32)> = (0..40).map(|at| (at * 7 % 41, at)).collect();
        let mut wholes = Vec::new();
        record.combine_pairs((&backs, &folds), &pairs, &mut wholes);
        let combined = pairs
            .iter()
            .map(|(a, b)| record.combine(&backs[*a as usize], &folds[*b as usize]));
        assert_eq!(wholes, combined.collect::<Vec<_>>());

        wholes.push(record.identity());
        let mut columns = Vec::new();
        assert!(Aggregation::<i64>::answer_columns(
            &record,
            &wholes,
            &mut columns
        ));
        for (place, whole) in wholes.iter().enumerate() {
            let mut answers: Vec<Answer<i64>> = Vec::new();
            record.answers(whole, &mut answers);
            for (column, answer) in columns.iter().zip(answers) {
                let is_missing = column.missing.contains(&place);
                assert_eq!(is_missing, answer == Answer::Null);
                match answer {
                    Answer::I64(value) => assert_eq!(column.bits[place], value as u64),
                    Answer::F64(value) => assert_eq!(column.bits[place], value.to_bits()),
                    Answer::Bool(value) => assert_eq!(column.bits[place], u64::from(value)),
                    _ => {}
                }
            }
        }
    }
}

#[test]
fn runs_of_partials_are_combined_as_single_ones() {
    use Kind::{ArgMax, Count, First, GeometricMean, Last, Max, Mean, Min, MinCount, Range};
    use Kind::{Skewness, Stddev, Sum, Variance};
    let agg = |(kind, col)| AggSpec {
        kind,
        of: Some(col),
        by: Some(1),
        ddof: 1,
    };
    // Each takes eight words at most.
    let requests = [
        vec![(Count, 0), (Sum, 1), (Max, 1), (Stddev, 1)],
        vec![(Sum, 0), (Variance, 0), (Min, 0)],
        vec![(First, 0), (Last, 1), (ArgMax, 0)],
        vec![(MinCount, 1), (Range, 1), (GeometricMean, 1)],
        vec![(Skewness, 1)],
        vec![(Mean, 1)],
    ];
    let extremes = [f64::INFINITY, f64::NAN, 1e308, 1e308, -1e308, -0.0];
    for (request, extremes) in requests
        .iter()
        .flat_map(|r| [(r, &[0.5][..]), (r, &extremes[..])])
    {
        let aggs: Vec<_> = request.iter().copied().map(agg).collect();
        let plan = RecordPlan::new(&aggs, &[DType::I64, DType::F64]);
        assert!(plan.words() <= 8, "{request:?}");
        let record = Record::<[u64; 2], [u64; 8]>::new(plan);
        let row = |step: usize| {
            let float = match step % 7 {
                0 => extremes[step / 7 % extremes.len()],
                _ => (step * 7919 % 1000) as f64 / 8.1,
            };
            [(step * 37 % 11) as u64, f64::to_bits(float)]
        };
        let part = |at: usize| record.fold(&(at * 3..at * 3 + at % 4).map(row).collect::<Vec<_>>());
        let partials: Vec<_> = (0..70).map(part).collect();
        for count in (0..40).chain([64, 70]) {
            for acc in [None, Some(part(99))] {
                let run = partials[..count].iter();
                let whole = combine_one_by_one(&record, acc, run.clone());
                assert_eq!(record.combine_run(acc, run), whole, "{request:?} {count}");
            }
        }
    }
}

/// Rows of two columns: some kind of series, and one that goes with it.
fn series(kind: usize, random: &mut impl FnMut() -> f64) -> Vec<[u64; 2]> {
    let mut walk = 1e4;
    let mut value = || match kind {
        0 => random() * 2.0 - 1.0,
        1 => 1e9 + random() + random(),
        2 => (random() * 1e4).round() / 100.0,
        3 => (random() * 10.0).floor(),
        4 if random() < 0.05 => 1e12,
        5 => 10.0_f64.powf(random() * 30.0 - 15.0) * (random() - 0.5).signum(),
        6 => {
            walk += random() - 0.5;
            walk
        }
        _ => 5.0 + random(),
    };
    let pairs = (0..60).map(|_| (value(), value()));
    pairs.map(|(x, y)| [x, x + y].map(f64::to_bits)).collect()
}

/// However rows are grouped, moments are merged so exactly that answers have equal bits.
#[test]
fn moments_of_all_groupings_are_equal_to_the_bit() {
    use Kind::{Correlation, Covariance, Kurtosis, Skewness, Stddev, Variance};
    use Kind::{RSquared, Slope};
    let aggs = [
        Variance,
        Stddev,
        Covariance,
        Correlation,
        Skewness,
        Kurtosis,
        Slope,
        RSquared,
    ]
    .map(|kind| AggSpec {
        kind,
        of: Some(0),
        by: kind.is_of_pairs().then_some(1),
        ddof: 1,
    });
    let record = Record::<[u64; 2], [u64; 20]>::new(RecordPlan::new(&aggs, &[DType::F64; 2]));
    let seed = std::env::var("SLIDEWISE_SEED").unwrap_or_default();
    let first: u64 = seed.parse().unwrap_or_default();
    for seed in first..first + 80 {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        let rows = series(seed as usize % 8, &mut random);
        let bits = |partial: &[u64; 20]| {
            let mut answers: Vec<Answer<i64>> = Vec::new();
            record.answers(partial, &mut answers);
            let bits = answers.into_iter().map(|answer| match answer {
                Answer::F64(value) => value.to_bits(),
                other => panic!("{other:?} is no float"),
            });
            bits.collect::<Vec<_>>()
        };
        for count in [4, 5, 16, 17, 60] {
            let rows = &rows[..count];
            let whole = bits(&record.fold(rows));
            let lifted = rows.iter().map(|row| record.lift(row));
            let one_by_one = lifted.reduce(|a, b| record.combine(&a, &b)).expect("rows");
            assert_eq!(
                bits(&one_by_one),
                whole,
                "one by one, seed {seed}, {count} rows"
            );
            for _ in 0..20 {
                let mut parts = Vec::new();
                let mut rest = rows;
                while !rest.is_empty() {
                    let (run, others) = rest.split_at(1 + (random() * rest.len() as f64) as usize);
                    parts.push(record.fold(run));
                    rest = others;
                }
                while parts.len() > 1 {
                    let at = (random() * (parts.len() - 1) as f64) as usize;
                    let younger = parts.remove(at + 1);
                    parts[at] = record.combine(&parts[at], &younger);
                }
                assert_eq!(bits(&parts[0]), whole, "seed {seed}, {count} rows");
            }
        }
    }
}
