//! Input columns of a window: what each reads of the caller's columns, and what for.

use pyo3::prelude::*;
use slidewise_core::aggregate::DType;

use crate::errors::internal_error;

/// What an input's values are used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Numbers: int64 or float64, by `dtype=` or by the first number.
    Number,
    /// Numbers of the type that their aggregation takes.
    Typed,
    /// Collected: any object, unchanged.
    Any,
    /// Keys: any hashable object; equal ones are one.
    Key,
    /// Lifted for a user-defined aggregation, by its number.
    Udaf(usize),
    /// Represented by its hash.
    Hash,
    /// Counted: only whether the value is missing.
    Presence,
    /// The entry's own time.
    Time,
}

impl Role {
    /// Whether its values are numbers.
    pub(crate) fn is_number(self) -> bool {
        matches!(self, Self::Number | Self::Typed)
    }
}

/// What another column must be for an input's value to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mask {
    True,
    There,
}

/// The paired column: what is lifted together with a value, for [`Role::Udaf`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Paired {
    /// Another column.
    Column(usize),
    /// The time, in ticks.
    Time,
}

/// A column of the core: the caller's column that it reads, and what it is used for.
#[derive(Clone, Debug)]
pub(crate) struct InputColumn {
    /// Which column of the caller's; 0 where an entry is one value.
    pub(crate) source: usize,
    pub(crate) role: Role,
    /// Other columns; the value counts as missing unless each holds its mask.
    pub(crate) masks: Vec<(usize, Mask)>,
    pub(crate) paired: Option<Paired>,
    /// `None` until the first value decides.
    pub(crate) dtype: Option<Type>,
}

impl InputColumn {
    /// Whether the first number decides its type.
    pub(crate) fn is_open(&self) -> bool {
        self.role == Role::Number && self.dtype.is_none()
    }

    /// The caller's columns that it reads.
    pub(crate) fn columns(&self) -> impl Iterator<Item = usize> {
        let paired = match self.paired {
            Some(Paired::Column(column)) => Some(column),
            _ => None,
        };
        let masks = self.masks.iter().map(|(column, _)| *column);
        masks.chain([self.source]).chain(paired)
    }

    /// Whether both hold the same values of the same column.
    pub(crate) fn reads_as(&self, other: &Self) -> bool {
        let parts = |input: &Self| (input.source, input.role, input.paired);
        parts(self) == parts(other) && self.masks == other.masks
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nan {
    Propagate,
    Skip,
    Raise,
}

impl Nan {
    pub(crate) fn name(self) -> &'static str {
        let known = NANS.iter().find(|(_, known)| *known == self);
        known.map_or("", |(name, _)| *name)
    }
}

pub(crate) const NANS: [(&str, Nan); 3] = [
    ("propagate", Nan::Propagate),
    ("skip", Nan::Skip),
    ("raise", Nan::Raise),
];
const ROLES: [(&str, Role); 6] = [
    ("key", Role::Key),
    ("number", Role::Number),
    ("any", Role::Any),
    ("hash", Role::Hash),
    ("presence", Role::Presence),
    ("time", Role::Time),
];
pub(crate) const DTYPES: [(&str, Type); 4] = [
    ("int64", Type::Int),
    ("float64", Type::Float),
    ("object", Type::Object),
    ("bool", Type::Bool),
];

/// The type of a column as its values decide it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    /// Integers to the core, and bools again in answers that are values of the column.
    Bool,
    Int,
    Float,
    Object,
}

impl Type {
    pub(crate) fn core(self) -> DType {
        match self {
            Self::Bool | Self::Int => DType::I64,
            Self::Float => DType::F64,
            Self::Object => DType::Object,
        }
    }
}

pub(crate) fn named<V: Copy>(what: &str, name: &str, known: &[(&str, V)]) -> PyResult<V> {
    let found = known.iter().find(|(known, _)| *known == name);
    match found {
        Some((_, value)) => Ok(*value),
        None => Err(internal_error(&format!(
            "a window's plan has {what} {name:?}"
        ))),
    }
}

/// Column, role, other columns with what they must be, and what goes with it.
pub(crate) type InputTuple = (usize, String, Vec<(usize, String)>, isize);

const NOTHING: isize = -1;
const TIME: isize = -2;

const MASKS: [(&str, Mask); 2] = [("true", Mask::True), ("there", Mask::There)];

pub(crate) fn read_input(
    (source, role, masks, paired): &InputTuple,
    dtype: Option<&str>,
) -> PyResult<InputColumn> {
    let typed = DTYPES.iter().find(|(name, _)| name == role);
    let typed = typed.map(|(_, dtype)| *dtype);
    let role = match role.strip_prefix("own") {
        Some(number) => Role::Udaf(
            number
                .parse()
                .map_err(|_| internal_error("a role without a number"))?,
        ),
        None if typed.is_some() => Role::Typed,
        None => named("role", role, &ROLES)?,
    };
    let requested = dtype
        .map(|name| named("dtype", name, &DTYPES))
        .transpose()?;
    let dtype = match role {
        // Bits are those of bools until there is another whole number.
        Role::Typed if typed == Some(Type::Int) => Some(Type::Bool),
        Role::Typed => typed,
        Role::Number => requested.filter(|dtype| *dtype != Type::Object),
        Role::Any | Role::Key | Role::Udaf(_) => Some(Type::Object),
        Role::Hash | Role::Presence | Role::Time => Some(Type::Int),
    };
    let masks = masks
        .iter()
        .map(|(source, kind)| Ok((*source, named("mask", kind, &MASKS)?)));
    let paired = match *paired {
        NOTHING => None,
        TIME => Some(Paired::Time),
        column => {
            Some(Paired::Column(usize::try_from(column).map_err(|_| {
                internal_error("an input paired with no column")
            })?))
        }
    };
    Ok(InputColumn {
        source: *source,
        role,
        masks: masks.collect::<PyResult<_>>()?,
        paired,
        dtype,
    })
}
