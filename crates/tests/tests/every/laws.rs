//! The laws of every aggregation of the catalogue, on a thousand examples each:
//! associativity, identity, commutativity, inverse and selection as declared, and that
//! written bytes read back equal.

use crate::common::Random;
use crate::common::definition::agrees;
use slidewise_core::aggregate::sketch::SketchRequest;
use slidewise_core::aggregate::{
    AggSpec, Aggregation, Answer, Cell, DType, InvertibleVisitor, Kind, SelectiveVisitor, Visitor,
    plan, plan_invertible, plan_selective,
};
use slidewise_core::monoid::{Entry, Invertible, Selective};
use slidewise_core::snapshot::{Codec, Reader, Writer};

const EXAMPLES: u64 = 1000;

fn catalogue() -> Vec<AggSpec> {
    let mut kinds: Vec<Kind> = Kind::ALL.into_iter().map(|(_, kind)| kind).collect();
    kinds.extend([Kind::TopK { k: 3 }, Kind::BottomK { k: 3 }]);
    kinds.extend([
        Kind::Lag { k: 2 },
        Kind::FirstK { k: 3 },
        Kind::LastK { k: 3 },
        Kind::LastDistinct { k: 3 },
        Kind::TopKBy { k: 3 },
        Kind::BottomKBy { k: 3 },
    ]);
    kinds.extend(Kind::parse("histogram -1 0.5 2", 0));
    // So small that they become dense soon.
    let sketches = [
        "bloom:256:3",
        "approx_count_distinct:5",
        "count_min:3:16",
        "approx_quantile:16:0.1,0.5",
        "heavy_hitters:3:8",
    ];
    kinds.extend(sketches.iter().filter_map(|name| Kind::parse(name, 0)));
    let spec = |kind: Kind| AggSpec {
        kind,
        of: Some(0),
        by: kind.takes_by().then_some(1),
        ddof: 1,
    };
    kinds.into_iter().map(spec).collect()
}

fn dtypes(spec: &AggSpec, dtype: DType) -> Vec<DType> {
    vec![dtype; 1 + usize::from(spec.by.is_some())]
}

/// A value and its hash, of many.
fn row_for_sketches(random: &mut Random, dtypes: &[DType]) -> Vec<Cell<i64>> {
    let value = random.below(200);
    let hash = Random(value).next();
    let word = |dtype: &DType, bits: u64| match dtype {
        DType::F64 => Cell::F64(bits as f64),
        _ => Cell::I64(bits as i64),
    };
    match dtypes {
        [dtype, _] => vec![word(dtype, value), Cell::I64(hash as i64)],
        _ => vec![word(&dtypes[0], hash)],
    }
}

/// Rows of small numbers, so that floats are exact and comparisons are strict; some are
/// missing, in all columns of a row at once.
fn row(random: &mut Random, dtypes: &[DType]) -> Vec<Cell<i64>> {
    if random.below(5) == 0 {
        return vec![Cell::Null; dtypes.len()];
    }
    let number = |dtype: &DType| {
        let value = random.below(9) as i64 - 3;
        match dtype {
            DType::F64 => Cell::F64(value as f64 / 4.0),
            _ => Cell::I64(value),
        }
    };
    dtypes.iter().map(number).collect()
}

/// Whether answers depend on the grouping within their error: then only `Monoid::same` is
/// compared.
fn approximate(spec: &AggSpec) -> bool {
    matches!(
        spec.kind,
        Kind::Sketch(SketchRequest::Quantiles { .. } | SketchRequest::Hitters { .. })
    )
}

struct Laws<'a> {
    spec: &'a AggSpec,
    dtypes: &'a [DType],
    random: Random,
}

impl Laws<'_> {
    /// Several entries, and their fold.
    fn part<A: Aggregation<i64>>(&mut self, monoid: &A) -> (Vec<Entry<A>>, A::Partial) {
        let sketch = matches!(self.spec.kind, Kind::Sketch(_));
        let count = match sketch {
            true => self.random.pick(&[0, 1, 2, 9, 30, 100]),
            false => self.random.pick(&[0, 1, 1, 2, 7]),
        };
        let mut entries = Vec::new();
        for _ in 0..count {
            let row = if sketch && self.random.below(9) > 0 {
                row_for_sketches(&mut self.random, self.dtypes)
            } else {
                row(&mut self.random, self.dtypes)
            };
            entries.push(monoid.entry(&row));
        }
        let partials = entries.iter().map(|entry| entry.partial(monoid));
        let whole = partials.fold(monoid.identity(), |acc, part| monoid.combine(&acc, &part));
        (entries, whole)
    }

    fn equal<A: Aggregation<i64>>(&self, monoid: &A, law: &str, a: &A::Partial, b: &A::Partial) {
        assert!(monoid.same(a, b), "{law} of {:?}: {a:?}, {b:?}", self.spec);
        let [left, right] = [a, b].map(|partial| {
            let mut out: Vec<Answer<i64>> = Vec::new();
            monoid.answers(partial, &mut out);
            out
        });
        let pairs = left.iter().zip(&right);
        for (left, right) in pairs {
            assert!(
                approximate(self.spec) || agrees(self.spec, left, right, 100.0),
                "{law} of {:?}: {left:?}, {right:?}",
                self.spec
            );
        }
    }
}

impl Visitor<i64> for Laws<'_> {
    type Out = ();

    fn visit<A: Aggregation<i64>>(mut self, monoid: A) {
        let identity = monoid.identity();
        for _ in 0..EXAMPLES {
            let [(entries, a), (_, b), (_, c)] = [(); 3].map(|()| self.part(&monoid));
            let ab = monoid.combine(&a, &b);
            let left = monoid.combine(&ab, &c);
            let right = monoid.combine(&a, &monoid.combine(&b, &c));
            self.equal(&monoid, "associativity", &left, &right);
            self.equal(&monoid, "identity", &monoid.combine(&identity, &a), &a);
            self.equal(&monoid, "identity", &monoid.combine(&a, &identity), &a);
            if monoid.commutative() {
                let ba = monoid.combine(&b, &a);
                self.equal(&monoid, "commutativity", &ab, &ba);
            }
            let mut out = Writer::default();
            ab.write(&mut out);
            let bytes = out.finish().expect("numbers have bytes");
            let read = monoid.read_partial(&mut Reader::new(&bytes)).expect("read");
            self.equal(&monoid, "round trip", &ab, &read);
            for entry in &entries {
                let mut out = Writer::default();
                entry.write(&mut out);
                let bytes = out.finish().expect("numbers have bytes");
                let mut input = Reader::new(&bytes);
                let read = Entry::read(&monoid, &mut input).expect("read");
                let (entry, read) = (entry.partial(&monoid), read.partial(&monoid));
                self.equal(&monoid, "round trip", &entry, &read);
            }
        }
    }
}

impl InvertibleVisitor<i64> for Laws<'_> {
    type Out = ();

    fn visit<A: Aggregation<i64> + Invertible>(mut self, monoid: A) {
        for _ in 0..EXAMPLES {
            let [(_, a), (_, b)] = [(); 2].map(|()| self.part(&monoid));
            let whole = monoid.combine(&a, &b);
            assert!(!A::EXACT || monoid.undoes(&a), "{a:?} stays");
            if monoid.undoes(&a) {
                self.equal(&monoid, "inverse", &monoid.inverse(&whole, &a), &b);
            }
        }
    }
}

impl SelectiveVisitor<i64> for Laws<'_> {
    type Out = ();

    fn visit<A: Aggregation<i64> + Selective>(mut self, monoid: A) {
        for _ in 0..EXAMPLES {
            let [(_, a), (_, b)] = [(); 2].map(|()| self.part(&monoid));
            let whole = monoid.combine(&a, &b);
            let mut chosen = a.clone();
            for part in 0..monoid.parts() {
                let [older, younger] = [&a, &b].map(|partial| monoid.part(part, partial));
                if monoid.dominates(part, &younger, &older) {
                    monoid.replace(part, &mut chosen, &younger);
                }
            }
            self.equal(&monoid, "selection", &whole, &chosen);
        }
    }
}

#[test]
fn every_aggregation_obeys_what_it_declares() {
    let (mut invertible, mut selective) = (Vec::new(), Vec::new());
    for (seed, spec) in catalogue().iter().enumerate() {
        for dtype in [DType::I64, DType::F64] {
            let dtypes = dtypes(spec, dtype);
            let laws = || Laws {
                spec,
                dtypes: &dtypes,
                random: Random(seed as u64),
            };
            let aggs = std::slice::from_ref(spec);
            plan(aggs, &dtypes, laws());
            if plan_invertible::<i64, _>(aggs, &dtypes, laws()).is_some() {
                invertible.push(spec.kind);
            }
            if plan_selective::<i64, _>(aggs, &dtypes, laws()).is_some() {
                selective.push(spec.kind);
            }
        }
    }
    for kind in [
        Kind::Sum,
        Kind::SumOfSquares,
        Kind::Mean,
        Kind::Stddev,
        Kind::BitXor,
    ] {
        assert!(invertible.contains(&kind), "{kind:?}");
        assert!(!selective.contains(&kind), "{kind:?}");
    }
    for kind in [Kind::Max, Kind::First] {
        assert!(selective.contains(&kind), "{kind:?}");
        assert!(!invertible.contains(&kind), "{kind:?}");
    }
    for kind in [Kind::Product, Kind::Skewness, Kind::TopK { k: 3 }] {
        assert!(!invertible.contains(&kind) && !selective.contains(&kind));
    }
}
