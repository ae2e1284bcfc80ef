//! auto: an in-order structure as long as the data are in order, then FiBA.
//!
//! The caller chooses the initial structure. The first call that it refuses (a late insert,
//! an inner evict, a query of a part) moves all entries to [`fiba`](crate::window::fiba),
//! once, and is then executed there. So no call is refused. The window does not migrate
//! back, since data that were out of order once probably will be again.
//!
//! The migration costs a bulk insert of n entries in order, and calls no user's functions:
//! it cannot fail half way.
//!
//! Invariants:
//! 1. `cause` is none as long as the initial structure runs.
//! 2. The entries before and after are the same: times, raw values, ties, partials.

use std::sync::Arc;

use super::any::{AnyWindow, Granted};
use crate::aggregate::collect::Element;
use crate::aggregate::column::Column;
use crate::aggregate::deferred::Ledger;
use crate::aggregate::widening::{self, Erased};
use crate::aggregate::{Answer, Cell};
use crate::snapshot::{Codec, Reader, Result, Writer, damaged};
use crate::window::Refused;
use crate::window::shape::Shape;

struct Auto<T> {
    window: Box<dyn AnyWindow<T>>,
    cause: Option<Refused>,
}

/// A window that begins as this one, which is empty, and refuses nothing.
pub fn window<T: Element>(first: Box<dyn AnyWindow<T>>) -> Box<dyn AnyWindow<T>> {
    Box::new(Auto {
        window: first,
        cause: None,
    })
}

impl<T: Element> Auto<T> {
    /// Calls until the call is accepted, at the latest the second time.
    fn granted<R>(&mut self, mut call: impl FnMut(&mut dyn AnyWindow<T>) -> Granted<R>) -> R {
        match call(&mut *self.window) {
            Ok(done) => done,
            Err(refused) => {
                self.migrate(refused);
                let done = call(&mut *self.window);
                done.unwrap_or_else(|refused| unreachable!("fiba refused {refused:?}"))
            }
        }
    }
}

impl<T: Element> AnyWindow<T> for Auto<T> {
    fn admits(&mut self, _time: i64) -> Granted<()> {
        Ok(())
    }
    fn insert(&mut self, time: i64, row: &[Cell<T>]) -> Granted<()> {
        self.granted(|window| window.insert(time, row));
        Ok(())
    }
    fn insert_many(&mut self, times: Vec<i64>, columns: &[Column<'_, T>]) -> Granted<()> {
        if self.cause.is_none()
            && let Some(first) = times.iter().min()
        {
            self.granted(|window| window.admits(*first));
        }
        self.window.insert_many(times, columns)
    }
    fn evict(&mut self) -> Option<i64> {
        self.window.evict()
    }
    fn evict_at(&mut self, time: i64) -> Granted<bool> {
        Ok(self.granted(|window| window.evict_at(time)))
    }
    fn evict_until(&mut self, time: i64) -> usize {
        self.window.evict_until(time)
    }
    fn query(&mut self, out: &mut Vec<Answer<T>>) {
        self.window.query(out);
    }
    fn query_range(&mut self, lo: i64, hi: i64, out: &mut Vec<Answer<T>>) -> Granted<()> {
        self.granted(|window| window.query_range(lo, hi, out));
        Ok(())
    }
    fn len(&mut self) -> usize {
        self.window.len()
    }
    fn is_empty(&mut self) -> bool {
        self.window.is_empty()
    }
    fn oldest(&mut self) -> Option<i64> {
        self.window.oldest()
    }
    fn youngest(&mut self) -> Option<i64> {
        self.window.youngest()
    }
    fn clear(&mut self) {
        self.window.clear();
    }
    fn for_each(&mut self, visit: &mut dyn FnMut(i64, Vec<Answer<T>>)) {
        self.window.for_each(visit);
    }
    fn check(&self) -> std::result::Result<(), String> {
        self.window.check()
    }
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.window.bytes()
    }
    fn ledger(&self) -> Option<Arc<Ledger<T>>> {
        self.window.ledger()
    }
    fn write(&self, out: &mut Writer) {
        write_cause(self.cause, out);
        self.window.write(out);
    }
    fn read(&mut self, input: &mut Reader<'_>) -> Result<()> {
        if let Some(cause) = read_cause(input)? {
            self.migrate(cause);
        }
        self.window.read(input)
    }
    fn boxed_clone(&self) -> Box<dyn AnyWindow<T>> {
        Box::new(Self {
            window: self.window.boxed_clone(),
            cause: self.cause,
        })
    }
    fn shape(&mut self) -> Option<Shape<Vec<Answer<T>>>> {
        self.window.shape()
    }
    fn hand_over(&mut self) -> Box<dyn AnyWindow<T>> {
        self.window.hand_over()
    }
    fn take_erased(&mut self) -> Erased {
        self.window.take_erased()
    }
    fn insert_widened(&mut self, entries: Erased, widened: &[bool]) -> widening::Result<()> {
        self.window.insert_widened(entries, widened)
    }
    fn cause(&self) -> Option<Refused> {
        self.cause
    }
    fn migrate(&mut self, cause: Refused) {
        if self.cause.is_none() {
            self.window = self.window.hand_over();
            self.cause = Some(cause);
        }
    }
}

fn write_cause(cause: Option<Refused>, out: &mut Writer) {
    let (tag, a, b) = match cause {
        // Only windows of queries refuse for many ends, and they do not migrate.
        None | Some(Refused::Many { .. }) => return 0_u8.write(out),
        Some(Refused::Late { time, youngest }) => (1_u8, time, youngest),
        Some(Refused::Inner { time, oldest }) => (2, time, oldest),
        Some(Refused::Range { lo, hi }) => (3, lo, hi),
    };
    tag.write(out);
    a.write(out);
    b.write(out);
}

fn read_cause(input: &mut Reader<'_>) -> Result<Option<Refused>> {
    let tag = u8::read(input)?;
    if tag == 0 {
        return Ok(None);
    }
    let (a, b) = (i64::read(input)?, i64::read(input)?);
    Ok(Some(match tag {
        1 if a < b => Refused::Late {
            time: a,
            youngest: b,
        },
        2 if a > b => Refused::Inner { time: a, oldest: b },
        3 if a <= b => Refused::Range { lo: a, hi: b },
        _ => return damaged(format!("no cause to migrate: {tag}, {a}, {b}")),
    }))
}
