//! Sketches stay within their stated errors, have the same bits in every grouping if that is
//! documented, and refuse damaged bytes.

use crate::common::Random;
use slidewise_core::aggregate::sketch::distinct::Registers;
use slidewise_core::aggregate::sketch::hitters::Hitters;
use slidewise_core::aggregate::sketch::quantiles::Quantiles;
use slidewise_core::aggregate::sketch::{Sketch, SketchRequest, Sketcher, read_bloom, read_counts};
use slidewise_core::aggregate::{Answer, Cell, DType};
use slidewise_core::snapshot::{Codec, Reader, Writer};

fn sketcher(request: &str, dtype: DType) -> (SketchRequest, Sketcher) {
    let request = SketchRequest::parse(request).expect("a request");
    (request, Sketcher::new(request, dtype))
}

/// A sketch of words, built by combining pieces of random lengths in a random tree.
fn grouped(sketcher: &Sketcher, words: &[u64], random: &mut Random) -> Sketch {
    if words.len() <= 3 || random.below(8) == 0 {
        let mut sketch = Sketch::Nothing;
        words
            .iter()
            .for_each(|word| sketcher.absorb(&mut sketch, *word));
        return sketch;
    }
    let (older, younger) = words.split_at(random.below(words.len() as u64) as usize);
    let older = grouped(sketcher, older, random);
    sketcher.combine(&older, &grouped(sketcher, younger, random))
}

#[test]
fn the_same_bits_in_every_grouping_and_order() {
    let makes = ["bloom:640:4", "approx_count_distinct:6", "count_min:4:32"];
    for (seed, make) in (0..600).zip(makes.iter().cycle()) {
        let (request, sketcher) = sketcher(make, DType::I64);
        let mut random = Random(seed);
        let count = random.pick(&[0, 1, 2, 17, 100, 1000]);
        let mut words: Vec<u64> = (0..count)
            .map(|_| Random(random.below(500)).next())
            .collect();
        let one = grouped(&sketcher, &words, &mut random);
        for place in (1..words.len()).rev() {
            words.swap(place, random.below(place as u64 + 1) as usize);
        }
        let other = grouped(&sketcher, &words, &mut random);
        assert_eq!(one, other, "{make}, seed {seed}");
        assert_eq!(one, sketcher.fold(words), "{make}, seed {seed}");
        let answers: [Answer<i64>; 2] = [&one, &other].map(|it| sketcher.answer(request, it));
        assert_eq!(answers[0], answers[1], "{make}, seed {seed}");
    }
}

#[test]
fn distinct_counts_err_as_stated_and_almost_without_bias() {
    for p in [6_u8, 10, 12] {
        let deviation = 1.04 / f64::from(1 << p).sqrt();
        for count in [10, 300, 3_000, 30_000, 300_000_u64] {
            let trials = (1_200_000 / count).clamp(20, 400);
            let errors = (0..trials).map(|trial| {
                let mut random = Random(trial << 32 | count);
                let mut registers = Registers::new(p);
                (0..count).for_each(|_| registers.absorb(random.next()));
                registers.estimate() / count as f64 - 1.0
            });
            let errors: Vec<f64> = errors.collect();
            let n = trials as f64;
            let bias = errors.iter().sum::<f64>() / n;
            let spread = (errors.iter().map(|error| error * error).sum::<f64>() / n).sqrt();
            assert!(
                spread <= 1.3 * deviation,
                "p {p}, {count}: {spread} > {deviation}"
            );
            assert!(
                bias.abs() <= 1.1 / f64::from(1 << p) + 4.0 * deviation / n.sqrt(),
                "p {p}, {count}: bias {bias}"
            );
        }
    }
}

#[test]
fn quantiles_err_in_rank_as_stated_whatever_the_merges() {
    let (mut beyond, mut calls) = (0, 0);
    for trial in 0..60_u64 {
        let k = [64, 200][trial as usize % 2];
        let (_, sketcher) = sketcher(&format!("approx_quantile:{k}:0.5"), DType::I64);
        let mut random = Random(trial);
        let count = random.pick(&[500, 5_000, 40_000]);
        // Sorted runs are hard on what picks every other value.
        let words: Vec<u64> = match trial % 3 {
            0 => (0..count).collect(),
            1 => (0..count).rev().collect(),
            _ => (0..count).map(|_| random.below(count)).collect(),
        };
        let Sketch::Quantiles(sketch) = grouped(&sketcher, &words, &mut random) else {
            panic!("dense by now");
        };
        sketch.check().unwrap();
        let mut sorted = words.clone();
        sorted.sort_unstable();
        assert_eq!(
            sketch.exact(),
            (count, sorted[0], sorted[count as usize - 1])
        );
        let bound = 2.296 / f64::from(k).powf(0.9723) * count as f64;
        for share in [0.0, 0.01, 0.25, 0.5, 0.75, 0.99, 1.0] {
            let found = sketch.at(&[share])[0];
            let below = sorted.partition_point(|word| *word < found) as f64;
            let upto = sorted.partition_point(|word| *word <= found) as f64;
            let wanted = share * count as f64;
            calls += 1;
            beyond += usize::from(below > wanted + bound || upto < wanted - bound);
        }
    }
    assert!(
        beyond * 100 <= calls,
        "{beyond} of {calls} answers beyond the bound"
    );
}

#[test]
fn few_values_have_exact_quantiles_and_nan_is_seen() {
    let (request, sketcher) = sketcher("approx_quantile:200:0.5,0.25,1.0,", DType::F64);
    let word = |value: f64| sketcher.word(&Cell::<i64>::F64(value)).unwrap();
    let words: Vec<u64> = [3.5, -1.0, 2.0, f64::INFINITY].map(word).to_vec();
    let list = |values: [f64; 3]| Answer::<i64>::List(values.map(Cell::F64).to_vec());
    let sketch = sketcher.fold(words);
    let answer = sketcher.answer(request, &sketch);
    assert_eq!(answer, list([2.0, -1.0, f64::INFINITY]));
    let nan = sketcher.combine(&sketch, &Sketch::One(word(f64::NAN)));
    assert_eq!(sketcher.answer(request, &nan), list([f64::NAN; 3]));
    let dense: Vec<u64> = (0..1000).map(|i| word(f64::from(i))).collect();
    let dense = sketcher.combine(&sketcher.fold(dense), &nan);
    assert_eq!(sketcher.answer(request, &dense), list([f64::NAN; 3]));
    assert_eq!(
        sketcher.answer::<i64>(request, &Sketch::Nothing),
        Answer::Null
    );
}

/// The counts of 2,000 values, falling from the first.
fn skewed(random: &mut Random, count: usize) -> Vec<u64> {
    (0..count)
        .map(|_| random.below(random.clone().below(2_000) + 1))
        .collect()
}

#[test]
fn frequencies_err_as_stated() {
    for seed in 0..10 {
        let mut random = Random(seed);
        let values = skewed(&mut random, 20_000);
        let n = values.len() as u64;
        let mut true_counts = vec![0_u64; 2_000];
        values
            .iter()
            .for_each(|value| true_counts[*value as usize] += 1);
        let words: Vec<u64> = values.iter().map(|value| Random(*value).next()).collect();

        let (_, counts) = sketcher("count_min:5:272", DType::I64);
        let Sketch::Counts(sketch) = grouped(&counts, &words, &mut random) else {
            panic!("dense by now");
        };
        let error = (n as f64 * std::f64::consts::E / 272.0) as u64;
        let wrong = (0..2_000).filter(|value| {
            let estimate = sketch.estimate(Random(*value).next()) as u64;
            assert!(estimate >= true_counts[*value as usize]);
            estimate > true_counts[*value as usize] + error
        });
        assert!(wrong.count() <= 2_000 / 50, "seed {seed}");

        let most = 100;
        let pieces = values.chunks(1 + random.below(40) as usize);
        let whole = pieces.map(|piece| {
            piece.iter().fold(Hitters::default(), |all, value| {
                let one = Hitters::one(Random(*value).next(), Cell::I64(*value as i64));
                all.merged(&one, most)
            })
        });
        let whole: Hitters<i64> = whole.fold(Hitters::default(), |a, b| a.merged(&b, most));
        assert_eq!(whole.total(), n);
        assert!(
            whole.floor() <= n / (most as u64 + 1),
            "floor {}",
            whole.floor()
        );
        let top = whole.top(most);
        for counter in &top {
            let Cell::I64(value) = counter.item else {
                panic!("{counter:?}")
            };
            let came = true_counts[value as usize];
            assert!(counter.error <= whole.floor());
            assert!((counter.count - counter.error..=counter.count).contains(&came));
        }
        let missing = (0..2_000).filter(|value| {
            top.iter()
                .all(|counter| counter.item != Cell::I64(*value as i64))
        });
        for value in missing {
            assert!(true_counts[value] <= whole.floor());
        }
    }
}

#[test]
fn bloom_filters_know_all_and_err_as_often_as_stated() {
    // 1,000 values at 1 %: 9,586 bits and 7 hashes, in whole words.
    let (_, sketcher) = sketcher("bloom:9600:7", DType::I64);
    let mut random = Random(3);
    let words: Vec<u64> = (0..1000).map(|_| random.next()).collect();
    let Sketch::Bloom(filter) = grouped(&sketcher, &words, &mut random) else {
        panic!("dense by now");
    };
    assert!(words.iter().all(|word| filter.contains(word)));
    let wrong = (0..100_000)
        .filter(|_| filter.contains(&random.next()))
        .count();
    assert!(wrong <= 1_300, "{wrong} of 100,000");
}

#[test]
fn damaged_sketches_are_refused() {
    let mut random = Random(11);
    for (make, count) in [
        ("bloom:256:3", 100),
        ("approx_count_distinct:5", 100),
        ("count_min:3:16", 100),
        ("approx_quantile:16:0.5", 100),
        ("bloom:256:3", 3),
    ] {
        let (request, sketcher) = sketcher(make, DType::I64);
        let words: Vec<u64> = (0..count).map(|_| random.next()).collect();
        let mut out = Writer::default();
        sketcher.fold(words).write(&mut out);
        let bytes = out.finish().unwrap();
        for length in 0..bytes.len() {
            let read = sketcher.read(&mut Reader::new(&bytes[..length]));
            assert!(read.is_err(), "{make} of {length} bytes");
        }
        for _ in 0..3_000 {
            let mut changed = bytes.clone();
            for _ in 0..=random.below(3) {
                let at = random.below(changed.len() as u64) as usize;
                changed[at] = random.pick(&[0, 1, 255, 128, changed[at] ^ 1]);
            }
            if let Ok(read) = sketcher.read(&mut Reader::new(&changed)) {
                let both = sketcher.combine(&read, &read);
                let _: Answer<i64> = sketcher.answer(request, &both);
            }
        }
    }
    for length in 0..64 {
        let noise: Vec<u8> = (0..length).map(|_| random.next() as u8).collect();
        assert!(read_bloom(&noise).is_err() && read_counts(&noise).is_err());
    }
    // Headers of empty ones that ask for gigabytes.
    let mut huge = vec![3, 1, 21, 4, 7, 0, 0, 0];
    huge.extend([0; 8]);
    huge.extend(i32::MAX.to_le_bytes());
    huge.extend([0; 4]);
    assert!(read_bloom(&huge).is_err());
    let quantiles = Quantiles::new(16);
    let mut out = Writer::default();
    quantiles.write(&mut out);
    let empty = Quantiles::read(16, &mut Reader::new(&out.finish().unwrap())).unwrap();
    assert_eq!(empty.exact(), quantiles.exact());
}
