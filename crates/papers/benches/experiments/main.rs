//! The experiments of the papers, one measurement for each line that it reads:
//!
//! ```text
//! id=1 metric=throughput mode=slide structure=daba_lite operator=sum n=1024 millis=20
//! ```
//!
//! and one line of JSON for each, which has the `id` and either figures or an `error`.
//! `bench/experiments` writes the lines and draws the figures; [`order::Order`] defines the
//! words, [`structures::run`] the structures.

mod counted;
mod measure;
mod operators;
mod order;
mod resident;
#[path = "../latency/samples.rs"]
mod samples;
mod structures;
mod subjects;

use std::io::{BufRead, Write};

use slidewise_core::aggregate::collect::Collect;

use counted::Counted;
use operators::{Bloom, Few, GeometricMean, Max, Sum};
use order::{Metric, Order};
use structures::run;
use subjects::Answer;

fn main() {
    // Once a block of some size was freed, glibc keeps that much for later instead of
    // giving it back at once; without it bulks measure page faults.
    drop(std::hint::black_box(vec![0_u8; 16 << 20]));
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("lines of text");
        if line.trim().is_empty() {
            continue;
        }
        let (id, answer) = match Order::read(&line) {
            Ok(order) => (order.id.clone(), measured(&order)),
            Err(error) => (String::new(), Err(error)),
        };
        let members = answer.unwrap_or_else(|error| format!(r#""error": {error:?}"#));
        writeln!(out, r#"{{"id": {id:?}, {members}}}"#).expect("a reader");
        out.flush().expect("a reader");
    }
}

fn measured(order: &Order) -> Answer {
    let counts = order.metric == Metric::Counts;
    match order.operator.as_str() {
        "sum" if counts => run(order, &Counted(Sum)),
        "max" if counts => run(order, &Counted(Max)),
        _ if counts => Err("combines are counted of sum and max only".into()),
        "sum" => run(order, &Sum),
        "max" => run(order, &Max),
        "geomean" => run(order, &GeometricMean),
        "bloom" => run(order, &Bloom),
        "collect" => run(order, &Collect::<i64>::new()),
        name => match Few::find(name) {
            Some(few) => run(order, &few),
            None => Err(format!("unknown operator {name}")),
        },
    }
}
