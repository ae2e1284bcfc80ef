//! Whole columns of values, before and after their dtype is resolved.
//!
//! As with single values ([`crate::untyped`]), dtypes are resolved under the window's lock,
//! where no Python code may run.

use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, Float64Array, Int64Array};
use slidewise_core::aggregate::Cell;
use slidewise_core::aggregate::column::Column;

use crate::arrow::NumberArray;
use crate::hashing::of_numbers;
use crate::inputs::{InputColumn, Nan, Role, Type, is_exact, is_small};
use crate::object_store::Object;
use crate::untyped::{NAN_RAISED, NO_BOOL, TypeMismatch, Untyped, not_whole, widened_cell};

/// The values of an input column before its dtype is resolved.
pub(crate) enum UntypedColumn {
    Numbers(NumberArray),
    /// Bools, as 0 and 1.
    Bools(Int64Array),
    Values(Vec<Untyped>),
}

/// The values of an input column as the core takes them.
pub(crate) enum TypedColumn {
    Numbers(NumberArray),
    Cells(Vec<Cell<Object>>),
}

impl UntypedColumn {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Numbers(numbers) => numbers.len(),
            Self::Bools(bools) => bools.len(),
            Self::Values(values) => values.len(),
        }
    }

    /// Converts to the type of the column, which the first number decides.
    ///
    /// Leaves arrays in place: dropping one may run a user's finalizer, which must not happen
    /// before the window is unlocked.
    pub(crate) fn resolve_dtype(
        &mut self,
        input: &InputColumn,
        dtype: &mut Option<Type>,
        nan: Nan,
    ) -> Result<TypedColumn, (TypeMismatch, Option<usize>)> {
        let numbers = match self {
            Self::Numbers(NumberArray::I64(ints)) => NumberArray::I64(ints.clone()),
            Self::Numbers(NumberArray::F64(floats)) => NumberArray::F64(floats.clone()),
            Self::Bools(bools) => {
                let all_null = bools.null_count() == bools.len();
                if input.refuses_bools && !all_null {
                    return Err((TypeMismatch(NO_BOOL.to_owned()), None));
                }
                let truths = matches!(*dtype, None | Some(Type::Bool)) && !all_null;
                let typed = as_type(NumberArray::I64(bools.clone()), input, dtype)?;
                if truths {
                    *dtype = Some(Type::Bool);
                }
                return Ok(TypedColumn::Numbers(typed));
            }
            Self::Values(values) => {
                let typed = std::mem::take(values)
                    .into_iter()
                    .enumerate()
                    .map(|(row, value)| {
                        let cell = value.resolve_dtype(input, dtype, nan);
                        cell.map_err(|mismatch| (mismatch, Some(row)))
                    });
                return typed.collect::<Result<_, _>>().map(TypedColumn::Cells);
            }
        };
        let numbers = match numbers {
            NumberArray::F64(floats) if nan != Nan::Propagate => without_nan(floats, nan)?,
            other => other,
        };
        match input.role {
            Role::Number | Role::Typed => as_type(numbers, input, dtype),
            Role::Presence => Ok(presence(&numbers)),
            Role::Hash => Ok(NumberArray::I64(of_numbers(&numbers))),
            Role::Any | Role::Time | Role::Key | Role::Udaf(_) => Ok(numbers),
        }
        .map(TypedColumn::Numbers)
    }
}

impl TypedColumn {
    pub(crate) fn column(&self) -> Column<'_, Object> {
        match self {
            Self::Numbers(numbers) => numbers.column(),
            Self::Cells(values) => Column::of_cells(values),
        }
    }

    /// The same for a column that has widened to floats.
    pub(crate) fn widened(self) -> Self {
        match self {
            Self::Numbers(NumberArray::I64(ints)) => Self::Numbers(floats(&ints)),
            Self::Numbers(floats) => Self::Numbers(floats),
            Self::Cells(cells) => Self::Cells(cells.into_iter().map(widened_cell).collect()),
        }
    }
}

fn floats(ints: &Int64Array) -> NumberArray {
    NumberArray::F64(ints.unary::<_, Float64Type>(|int| int as f64))
}

/// Whether float64 holds all of them exactly.
fn are_exact(ints: &Int64Array) -> bool {
    ints.values().iter().all(|int| is_small(*int)) || ints.iter().flatten().all(is_exact)
}

fn as_type(
    numbers: NumberArray,
    input: &InputColumn,
    dtype: &mut Option<Type>,
) -> Result<NumberArray, (TypeMismatch, Option<usize>)> {
    let missing = match &numbers {
        NumberArray::I64(ints) => ints.null_count() == ints.len(),
        NumberArray::F64(floats) => floats.null_count() == floats.len(),
    };
    match (numbers, *dtype) {
        (numbers, _) if missing => Ok(numbers),
        (NumberArray::F64(_), Some(Type::Bool | Type::Exact | Type::Int))
            if !input.widens(*dtype) =>
        {
            let why = not_whole(input, "the values are float64");
            Err((TypeMismatch(why), None))
        }
        (NumberArray::I64(ints), Some(before)) if before.is_float() => Ok(floats(&ints)),
        (NumberArray::I64(ints), before) => {
            let looks = input.widens(before) || before.is_none();
            *dtype = Some(input.with_ints(before, looks && are_exact(&ints)));
            Ok(NumberArray::I64(ints))
        }
        (numbers, _) => {
            *dtype = Some(input.with_floats(*dtype));
            Ok(numbers)
        }
    }
}

/// Makes NaN null, or refuses it.
fn without_nan(
    floats: Float64Array,
    nan: Nan,
) -> Result<NumberArray, (TypeMismatch, Option<usize>)> {
    let is_nan = |float: Option<f64>| float.is_some_and(f64::is_nan);
    let Some(row) = floats.iter().position(is_nan) else {
        return Ok(NumberArray::F64(floats));
    };
    if nan == Nan::Raise {
        return Err((TypeMismatch(NAN_RAISED.to_owned()), Some(row)));
    }
    let kept = floats
        .iter()
        .map(|float| float.filter(|float| !float.is_nan()));
    Ok(NumberArray::F64(kept.collect()))
}

fn presence(numbers: &NumberArray) -> NumberArray {
    NumberArray::I64(match numbers {
        NumberArray::I64(ints) => ints.unary::<_, Int64Type>(|_| 0),
        NumberArray::F64(floats) => floats.unary::<_, Int64Type>(|_| 0),
    })
}
