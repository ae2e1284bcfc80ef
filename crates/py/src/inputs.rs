//! Input columns of a window: the caller's column that each reads, and its role.

use pyo3::prelude::*;
use slidewise_core::aggregate::DType;

use crate::errors::internal_error;

/// The use of an input's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Numbers: int64 or float64, by `dtype=` or by the first number.
    Number,
    /// Numbers of the type that their aggregation takes.
    Typed,
    /// Collected: any object, unchanged.
    Any,
    /// Keys: any hashable object; equal objects are one key.
    Key,
    /// Lifted for a user-defined aggregation, by its number.
    Udaf(usize),
    /// Represented by its hash.
    Hash,
    /// Counted: only whether the value is missing is read.
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

/// The condition on another column under which an input's value counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mask {
    True,
    Valid,
}

/// The paired column: the value that is lifted together with the input's, for
/// [`Role::Udaf`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Paired {
    /// Another column.
    Column(usize),
    /// The time, in ticks.
    Time,
}

/// A column of the core: the caller's column that it reads, and its role.
#[derive(Clone, Debug)]
pub(crate) struct InputColumn {
    /// The index of the caller's column; 0 if an entry is one value.
    pub(crate) source: usize,
    pub(crate) role: Role,
    /// Other columns; the value counts as missing unless each holds its mask.
    pub(crate) masks: Vec<(usize, Mask)>,
    pub(crate) paired: Option<Paired>,
    /// `None` until the first value decides.
    pub(crate) dtype: Option<Type>,
    /// Whether an aggregation of it takes numbers but no bools.
    pub(crate) refuses_bools: bool,
}

impl InputColumn {
    /// Whether the first number decides its type.
    pub(crate) fn is_open(&self) -> bool {
        self.role == Role::Number && self.dtype.is_none()
    }

    /// The type once integers have come, `exact` ones or not, to a column of that type.
    #[inline]
    pub(crate) fn with_ints(&self, before: Option<Type>, exact: bool) -> Type {
        let widens = matches!(before, None | Some(Type::Bool | Type::Exact));
        if widens && exact && self.is_open() {
            Type::Exact
        } else {
            Type::Int
        }
    }

    /// Whether a column of that type becomes one of floats when a float comes.
    pub(crate) fn widens(&self, before: Option<Type>) -> bool {
        self.is_open() && matches!(before, Some(Type::Bool | Type::Exact))
    }

    /// The type once a float has come to a column of that type.
    pub(crate) fn with_floats(&self, before: Option<Type>) -> Type {
        match before {
            _ if self.widens(before) => Type::Widened,
            Some(Type::Widened) => Type::Widened,
            _ => Type::Float,
        }
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

    /// Whether both read the same cells, perhaps as other types.
    pub(crate) fn reads_cells_of(&self, other: &Self) -> bool {
        self.source == other.source && self.role != Role::Time && self.masks == other.masks
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
pub(crate) const DTYPES: [(&str, Type); 6] = [
    ("int64", Type::Int),
    ("int64 in float64", Type::Exact),
    ("float64", Type::Float),
    ("float64 after int64", Type::Widened),
    ("object", Type::Object),
    ("bool", Type::Bool),
];

/// The type of a column as determined by its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    /// Integers in the core, and bools in answers that are values of the column.
    Bool,
    /// Integers all of which float64 holds exactly, in a column whose type is not given: it
    /// widens when a float comes.
    Exact,
    Int,
    Float,
    /// Floats, which were integers before the first float came.
    Widened,
    Object,
}

impl Type {
    pub(crate) fn core(self) -> DType {
        match self {
            Self::Bool | Self::Exact | Self::Int => DType::I64,
            Self::Float | Self::Widened => DType::F64,
            Self::Object => DType::Object,
        }
    }

    pub(crate) fn is_float(self) -> bool {
        self.core() == DType::F64
    }

    /// Its name to the caller; bools are computed with as integers.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Bool | Self::Exact | Self::Int => "int64",
            Self::Float | Self::Widened => "float64",
            Self::Object => "object",
        }
    }
}

/// Whether float64 holds an integer exactly.
#[inline]
pub(crate) fn is_exact(int: i64) -> bool {
    is_small(int) || i128::from(int) == int as f64 as i128
}

/// Whether it is up to 2⁵³ from 0.
#[inline]
pub(crate) fn is_small(int: i64) -> bool {
    int.unsigned_abs() <= 1 << 53
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

/// `slidewise.window.inputs.InputColumn`.
#[derive(FromPyObject)]
pub(crate) struct InputRequest {
    source: usize,
    role: String,
    masks: Vec<(usize, String)>,
    paired: Option<PairedRequest>,
}

#[derive(FromPyObject)]
enum PairedRequest {
    Column(usize),
    Named(String),
}

const MASKS: [(&str, Mask); 2] = [("true", Mask::True), ("valid", Mask::Valid)];

impl InputRequest {
    pub(crate) fn read(&self, dtype: Option<&str>) -> PyResult<InputColumn> {
        let typed = DTYPES.iter().find(|(name, _)| *name == self.role);
        let typed = typed.map(|(_, dtype)| *dtype);
        let role = match self.role.strip_prefix("udaf") {
            Some(number) => Role::Udaf(
                number
                    .parse()
                    .map_err(|_| internal_error("a role without a number"))?,
            ),
            None if typed.is_some() => Role::Typed,
            None => named("role", &self.role, &ROLES)?,
        };
        let requested = dtype
            .map(|name| named("dtype", name, &DTYPES))
            .transpose()?;
        let dtype = match role {
            // The value is a bool until another integer comes.
            Role::Typed if typed == Some(Type::Int) => Some(Type::Bool),
            Role::Typed => typed,
            Role::Number => requested.filter(|dtype| *dtype != Type::Object),
            Role::Any | Role::Key | Role::Udaf(_) => Some(Type::Object),
            Role::Hash | Role::Presence | Role::Time => Some(Type::Int),
        };
        let masks = self.masks.iter();
        let masks = masks.map(|(source, kind)| Ok((*source, named("mask", kind, &MASKS)?)));
        let paired = match &self.paired {
            None => None,
            Some(PairedRequest::Column(column)) => Some(Paired::Column(*column)),
            Some(PairedRequest::Named(name)) => {
                Some(named("paired column", name, &[("time", Paired::Time)])?)
            }
        };
        Ok(InputColumn {
            source: self.source,
            role,
            masks: masks.collect::<PyResult<_>>()?,
            paired,
            dtype,
            refuses_bools: false,
        })
    }
}
