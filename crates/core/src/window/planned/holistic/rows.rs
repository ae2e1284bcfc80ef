//! A monoid over the rows of a column, so that a tree can keep them.

use crate::monoid::Monoid;
use crate::snapshot::{Codec, Reader, Result, Writer, damaged};

/// One row's value. Of a run of rows: the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Row {
    /// There is no row.
    Nothing,
    /// A row without a value.
    Null,
    Word(i64),
}

impl Row {
    pub fn word(self) -> Option<i64> {
        match self {
            Self::Word(word) => Some(word),
            Self::Nothing | Self::Null => None,
        }
    }
}

/// Combining gives the older operand, at no cost: a tree of rows has something to
/// aggregate, and the first row of a time is at hand.
#[derive(Clone, Copy, Debug)]
pub struct Rows;

impl Monoid for Rows {
    type In = i64;
    type Partial = Row;
    const SMALL: usize = 16;

    fn commutative(&self) -> bool {
        false
    }
    fn identity(&self) -> Row {
        Row::Nothing
    }
    fn lift(&self, value: &i64) -> Row {
        Row::Word(*value)
    }
    fn combine(&self, a: &Row, b: &Row) -> Row {
        match a {
            Row::Nothing => *b,
            _ => *a,
        }
    }
    fn unlift(&self, partial: Row) -> std::result::Result<i64, Row> {
        match partial {
            Row::Word(word) => Ok(word),
            other => Err(other),
        }
    }
    fn same(&self, a: &Row, b: &Row) -> bool {
        a == b
    }
    fn fold(&self, run: &[i64]) -> Row {
        run.first().map_or(Row::Nothing, |word| Row::Word(*word))
    }
}

impl Codec for Row {
    const MIN_BYTES: usize = 1;
    fn write(&self, out: &mut Writer) {
        match self {
            Self::Nothing => 0_u8.write(out),
            Self::Null => 1_u8.write(out),
            Self::Word(word) => {
                2_u8.write(out);
                word.write(out);
            }
        }
    }
    fn read(input: &mut Reader<'_>) -> Result<Self> {
        Ok(match u8::read(input)? {
            0 => Self::Nothing,
            1 => Self::Null,
            2 => Self::Word(i64::read(input)?),
            tag => return damaged(format!("unknown row tag {tag}")),
        })
    }
}
