//! Scratch: queries of a keyed store, cold and warm.
#![allow(unsafe_code)]
use slidewise_core::aggregate::column::{Column, Values};
use slidewise_core::aggregate::{AggSpec, Answer, DType, Kind};
use slidewise_core::keyed::{EntryList, KeyColumn, Points, Rows, Spans, Store, store};
use slidewise_core::rolling::{Closed, Length, Span};
use std::time::Instant;

#[repr(C)]
struct Ts(i64, i64);
unsafe extern "C" {
    fn clock_gettime(clock: i32, ts: *mut Ts) -> i32;
}
/// CPU time of the thread, ns.
fn cpu() -> u64 {
    let mut ts = Ts(0, 0);
    unsafe { clock_gettime(3, &mut ts) };
    (ts.0 * 1_000_000_000 + ts.1) as u64
}

struct Rng(u64);
impl Rng {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11
    }
}
fn keys_of(keys: &[u64]) -> (Vec<u8>, Vec<usize>) {
    let mut bytes = Vec::with_capacity(keys.len() * 9);
    for k in keys {
        bytes.push(1);
        bytes.extend(k.to_le_bytes());
    }
    (bytes, (0..=keys.len()).map(|i| i * 9).collect())
}
fn stats(name: &str, mut t: Vec<u64>, per: usize) {
    t.sort_unstable();
    let n = t.len();
    let mean = t.iter().sum::<u64>() / n as u64;
    println!(
        "{name:22} p50 {:>8} p99 {:>8} mean {:>8}   per key p50 {:.0} ns",
        t[n / 2],
        t[n * 99 / 100],
        mean,
        t[n / 2] as f64 / per as f64
    );
}
fn main() {
    let mut args = std::env::args().skip(1).map(|a| a.parse::<u64>().unwrap());
    let (keys, entries) = (args.next().unwrap_or(100_000), args.next().unwrap_or(1000));
    let turns = args.next().unwrap_or(3);
    let hour: i64 = 3_600_000_000;
    let agg = |kind, of| AggSpec {
        kind,
        of,
        by: None,
        ddof: 1,
    };
    let aggs = [
        agg(Kind::Count, None),
        agg(Kind::Sum, Some(0)),
        agg(Kind::Max, Some(0)),
        agg(Kind::Stddev, Some(0)),
    ];
    let store: Box<dyn Store> = store(&aggs, &[DType::F64], false);
    let mut rng = Rng(88172645463325252);
    let rows = keys * entries;
    let batch = 500_000.min(rows);
    let start = Instant::now();
    for b in 0..rows / batch {
        let (from, to) = (b * batch, (b + 1) * batch);
        let at = |row: u64| (row as i128 * 24 * hour as i128 / rows as i128) as i64;
        let times: Vec<i64> = (from..to).map(at).collect();
        let ks: Vec<u64> = (from..to).map(|_| rng.next() % keys).collect();
        let xs: Vec<f64> = (from..to)
            .map(|_| (rng.next() % 1_000_000) as f64 / 1e4)
            .collect();
        let (bytes, offsets) = keys_of(&ks);
        let columns = [Column {
            values: Values::F64(&xs),
            validity: None,
        }];
        store.insert(
            EntryList::default(),
            Rows {
                keys: KeyColumn {
                    bytes: &bytes,
                    offsets: &offsets,
                },
                times,
                columns: &columns,
                numbers: &[],
            },
        );
    }
    println!(
        "fill {:.1} s, {:.2} bytes per entry",
        start.elapsed().as_secs_f64(),
        store.bytes() as f64 / rows as f64
    );
    let spans: Vec<Span> = [1, 24, 7 * 24, 30 * 24]
        .map(|h| Span {
            length: Length::Time(h * hour),
            closed: Closed::Right,
            offset: 0,
        })
        .to_vec();
    let prepared = Spans::new(&spans);
    let now = 24 * hour;
    let mut sum = 0.0;
    if let Ok(loops) = std::env::var("HOT") {
        let loops: usize = loops.parse().unwrap();
        let (bytes, _) = keys_of(&[rng.next() % keys]);
        let c = cpu();
        for _ in 0..loops {
            store.query_key(&bytes, now, &prepared, &mut |_, answers: &[Answer<i64>]| {
                if let Answer::F64(v) = answers[1] {
                    sum += v;
                }
            });
        }
        println!("hot {} ns {sum}", (cpu() - c) / loops.max(1) as u64);
        return;
    }
    for _ in 0..turns {
        for (name, hot) in [("one cold", false), ("one hot", true)] {
            let mut taken = Vec::new();
            let fixed = rng.next() % keys;
            for _ in 0..20_000 {
                let k = if hot { fixed } else { rng.next() % keys };
                let (bytes, _) = keys_of(&[k]);
                let t = Instant::now();
                store.query_key(&bytes, now, &prepared, &mut |_, answers: &[Answer<i64>]| {
                    if let Answer::F64(v) = answers[1] {
                        sum += v;
                    }
                });
                taken.push(t.elapsed().as_nanos() as u64);
            }
            stats(name, taken, 1);
        }
        for (name, n, calls, hot) in [
            ("ten cold", 10, 4000, false),
            ("ten hot", 10, 4000, true),
            ("64 cold", 64, 800, false),
            ("256 cold", 256, 200, false),
            ("1000 cold", 1000, 100, false),
            ("1000 hot", 1000, 50, true),
        ] {
            let mut taken = Vec::new();
            let draw =
                |rng: &mut Rng| keys_of(&(0..n).map(|_| rng.next() % keys).collect::<Vec<_>>());
            let mut kb = draw(&mut rng);
            for _ in 0..calls {
                if !hot {
                    kb = draw(&mut rng);
                }
                let times = vec![now; n];
                let t = cpu();
                let points = Points {
                    keys: KeyColumn {
                        bytes: &kb.0,
                        offsets: &kb.1,
                    },
                    times: &times,
                    plus: None,
                };
                let numbers = store.query_numbers(&points, &prepared).unwrap();
                taken.push(cpu() - t);
                sum += f64::from_bits(numbers.column(0, 1).values[0]);
            }
            stats(name, taken, n);
        }
    }
    println!("{sum}");
}
