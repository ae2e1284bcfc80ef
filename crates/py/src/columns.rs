//! Bulk values: Arrow, numpy, buffers, mappings of columns, and plain iterables.
//!
//! As with single values ([`crate::untyped`]), reading may run a user's code and happens
//! before the window is locked; dtypes are resolved under the lock, without Python.

use arrow_array::{Array, BooleanArray, Float64Array, Int64Array};
use arrow_schema::DataType;
use pyo3::buffer::PyUntypedBuffer;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyFloat, PyList, PyMapping, PyMemoryView, PyString};
use slidewise_core::aggregate::Cell;

use crate::arrow::{self, NumberArray};
use crate::dtype_inference::UntypedColumn;
use crate::errors::{spec_error, with_note};
use crate::inputs::{InputColumn, Mask, Nan, Paired, Role};
use crate::masks::masked;
use crate::object_store::ObjectStore;
use crate::rows::lookup;
use crate::scalars::{described, plain};
use crate::signals::{SIGNAL_CHECK_ROWS, check_signals};
use crate::spec::Spec;
use crate::udaf::UdafCalls;
use crate::untyped::{TypeMismatch, Untyped, read_key, read_value};

/// Per input column, the rows that count; `None` for all rows.
type Masks = Vec<Option<Vec<bool>>>;

/// Reads the values of a bulk insert, one per input column.
pub(crate) struct BulkReader<'a, 'py> {
    pub(crate) py: Python<'py>,
    pub(crate) spec: &'a Spec,
    pub(crate) store: Option<&'a ObjectStore>,
    pub(crate) udaf_calls: Option<UdafCalls<'a, 'py>>,
    /// The entries' times, which are the values of inputs of [`Role::Time`].
    pub(crate) ticks: &'a Int64Array,
}

impl<'py> BulkReader<'_, 'py> {
    pub(crate) fn read(&self, values: Option<&Bound<'py, PyAny>>) -> PyResult<Vec<UntypedColumn>> {
        let Some(values) = values.filter(|values| !values.is_none()) else {
            return self.without_values();
        };
        let Some(names) = &self.spec.columns else {
            let mut columns = self.nothing();
            let mut sources = [values.clone()];
            let masks = self.masks(&mut sources, &[])?;
            self.pairs(&mut sources, &masks, &mut columns)?;
            self.source(0, &sources[0], None, &masks, &mut columns)?;
            if self.spec.inputs.is_empty() {
                self.refuse_other_length(values)?;
            }
            return self.finished(columns, &masks);
        };
        match self.table(values, names)? {
            Some(mut sources) => {
                let mut columns = self.nothing();
                let masks = self.masks(&mut sources, names)?;
                self.pairs(&mut sources, &masks, &mut columns)?;
                for (at, (source, name)) in sources.iter().zip(names).enumerate() {
                    let name = name.bind(self.py).to_string_lossy();
                    self.source(at, source, Some(&name), &masks, &mut columns)?;
                }
                self.finished(columns, &masks)
            }
            None => self.rows(values, names),
        }
    }

    fn nothing(&self) -> Vec<Option<UntypedColumn>> {
        self.spec.inputs.iter().map(|_| None).collect()
    }

    /// The columns, and times for the inputs that read none.
    fn finished(
        &self,
        columns: Vec<Option<UntypedColumn>>,
        masks: &[Option<Vec<bool>>],
    ) -> PyResult<Vec<UntypedColumn>> {
        let times = |at: usize| {
            let mask = masks.get(at).and_then(Option::as_ref);
            UntypedColumn::Numbers(masked(NumberArray::I64(self.ticks.clone()), mask))
        };
        let columns = columns.into_iter().enumerate();
        Ok(columns
            .map(|(at, column)| column.unwrap_or_else(|| times(at)))
            .collect())
    }

    fn without_values(&self) -> PyResult<Vec<UntypedColumn>> {
        self.spec.refuse_no_values("insert_many(times, values)")?;
        self.finished(self.nothing(), &[])
    }

    /// Values must be as long as the times, even where none of them is read.
    fn refuse_other_length(&self, values: &Bound<'py, PyAny>) -> PyResult<()> {
        let Ok(length) = values.len() else {
            return Ok(());
        };
        refuse_lengths(self.ticks.len(), length, None)
    }

    /// Reads one of the caller's columns for all inputs that use it.
    fn source(
        &self,
        source: usize,
        values: &Bound<'py, PyAny>,
        name: Option<&str>,
        masks: &[Option<Vec<bool>>],
        columns: &mut [Option<UntypedColumn>],
    ) -> PyResult<()> {
        let inputs = self.spec.inputs.iter().enumerate();
        let reads = |input: &InputColumn| {
            input.source == source && input.role != Role::Time && input.paired.is_none()
        };
        let inputs: Vec<_> = inputs.filter(|(_, input)| reads(input)).collect();
        if inputs.is_empty() {
            return Ok(());
        }
        // An iterator can be read once only, so it becomes an array where several need it.
        let array = match inputs.len() {
            1 => None,
            _ => Some(self.helper("as_array", (values,))?),
        };
        let values = array
            .as_ref()
            .filter(|array| !array.is_none())
            .unwrap_or(values);
        let mut iterated = Vec::new();
        let mut length = 0;
        let mask = |at: usize| masks.get(at).and_then(Option::as_ref);
        for (at, input) in inputs {
            match self.array(values, input.role, mask(at))? {
                Some(column) => {
                    length = column.len();
                    columns[at] = Some(column);
                }
                None => iterated.push((at, (input.role, mask(at)))),
            }
        }
        if !iterated.is_empty() {
            let roles: Vec<_> = iterated.iter().map(|(_, role)| *role).collect();
            let read = self.iterate(values, &roles, name)?;
            length = read.first().map_or(0, Vec::len);
            for ((at, _), column) in iterated.into_iter().zip(read) {
                columns[at] = Some(UntypedColumn::Values(column));
            }
        }
        self.refuse_length(length, name)
    }

    /// Reads the inputs of paired columns, after making these columns re-readable.
    fn pairs(
        &self,
        sources: &mut [Bound<'py, PyAny>],
        masks: &[Option<Vec<bool>>],
        columns: &mut [Option<UntypedColumn>],
    ) -> PyResult<()> {
        for (at, input) in self.spec.inputs.iter().enumerate() {
            let Some(paired) = input.paired else { continue };
            let mut again = |source: usize| -> PyResult<Bound<'py, PyAny>> {
                sources[source] = self.helper("read_again", (&sources[source],))?;
                Ok(sources[source].clone())
            };
            let by = again(input.source)?;
            let of = match paired {
                Paired::Column(column) => again(column)?,
                Paired::Time => PyList::new(self.py, self.ticks.values())?.into_any(),
            };
            let pairs = self.helper("read_pairs", (by, of, self.spec.nan.name()))?;
            let mask = masks.get(at).and_then(Option::as_ref);
            let column = self
                .iterate(&pairs, &[(input.role, mask)], None)?
                .swap_remove(0);
            self.refuse_length(column.len(), None)?;
            columns[at] = Some(UntypedColumn::Values(column));
        }
        Ok(())
    }

    pub(crate) fn refuse_length(&self, length: usize, name: Option<&str>) -> PyResult<()> {
        refuse_lengths(self.ticks.len(), length, name)
    }

    /// An array's values as numbers, or `None` if they are read one by one.
    fn array(
        &self,
        values: &Bound<'py, PyAny>,
        role: Role,
        mask: Option<&Vec<bool>>,
    ) -> PyResult<Option<UntypedColumn>> {
        if let Some(numbers) = native(values)? {
            self.refuse_length(numbers.len(), None)?;
            return self.numbers(masked(numbers, mask), role).map(Some);
        }
        let read = self.helper("read_values", (values, role_name(role)))?;
        if read.is_none() {
            return Ok(None);
        }
        if let Some(bools) = bools(&read)? {
            self.refuse_length(bools.len(), None)?;
            let NumberArray::I64(bools) = masked(NumberArray::I64(bools), mask) else {
                unreachable!("masking keeps the type")
            };
            return Ok(Some(UntypedColumn::Bools(bools)));
        }
        if read.hasattr("__arrow_c_array__")? {
            let numbers = NumberArray::import(&read)?;
            self.refuse_length(numbers.len(), None)?;
            return self.numbers(masked(numbers, mask), role).map(Some);
        }
        let column = self.iterate(&read, &[(role, mask)], None)?.swap_remove(0);
        Ok(Some(UntypedColumn::Values(column)))
    }

    /// Numbers as they are, or read one by one as partials or keys.
    fn numbers(&self, numbers: NumberArray, role: Role) -> PyResult<UntypedColumn> {
        let (Role::Udaf(_) | Role::Key) = role else {
            return Ok(UntypedColumn::Numbers(numbers));
        };
        let column = numbers.column();
        let mut lifted = Vec::with_capacity(numbers.len());
        for row in 0..numbers.len() {
            if row % SIGNAL_CHECK_ROWS == SIGNAL_CHECK_ROWS - 1 {
                check_signals(self.py)?;
            }
            lifted.push(match column.cell(row) {
                Cell::I64(int) => self.read_value(int.into_pyobject(self.py)?.as_any(), role)?,
                Cell::F64(float) => self.read_value(PyFloat::new(self.py, float).as_any(), role)?,
                Cell::Null | Cell::Object(()) => Untyped::Null,
            });
        }
        Ok(UntypedColumn::Values(lifted))
    }

    fn read_value(&self, value: &Bound<'py, PyAny>, role: Role) -> PyResult<Untyped> {
        match (role, &self.udaf_calls) {
            (Role::Udaf(number), Some(udaf_calls)) => udaf_calls.lift(number, value, self.spec.nan),
            (Role::Key, _) => read_key(value, self.spec.nan, self.store),
            _ => read_value(value, role, self.store),
        }
    }

    pub(crate) fn helper<A>(&self, name: &str, arguments: A) -> PyResult<Bound<'py, PyAny>>
    where
        A: pyo3::call::PyCallArgs<'py>,
    {
        let module = self.py.import("slidewise.window.bulk_input")?;
        module
            .call_method1(name, arguments)
            .map_err(|error| with_note(self.py, error, "reading the values of insert_many"))
    }

    /// Item by item, each for all roles.
    fn iterate(
        &self,
        values: &Bound<'py, PyAny>,
        roles: &[(Role, Option<&Vec<bool>>)],
        name: Option<&str>,
    ) -> PyResult<Vec<Vec<Untyped>>> {
        let mut columns = vec![Vec::new(); roles.len()];
        for_each(values, "values", |row, value| {
            for (column, (role, mask)) in columns.iter_mut().zip(roles) {
                if mask.is_some_and(|mask| !mask.get(row).is_some_and(|counts| *counts)) {
                    column.push(Untyped::Null);
                    continue;
                }
                let value = self.read_value(&plain(value.clone())?, *role);
                column.push(value.map_err(|error| self.placed(error, name, row))?);
            }
            Ok(())
        })?;
        Ok(columns)
    }

    /// Adds column and row to a SpecError.
    fn placed(&self, error: PyErr, name: Option<&str>, row: usize) -> PyErr {
        if !error.is_instance_of::<crate::errors::SpecError>(self.py) {
            return error;
        }
        let why = TypeMismatch(error.value(self.py).to_string());
        why.into_error(name.map(str::to_owned), Some(row))
    }

    /// The columns of a mapping or a table by name, or `None` if rows come one by one.
    fn table(
        &self,
        values: &Bound<'py, PyAny>,
        names: &[Py<PyString>],
    ) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
        let names: Vec<_> = names
            .iter()
            .map(|name| name.bind(self.py).clone())
            .collect();
        if values.cast::<PyMapping>().is_ok() {
            let sources = names.iter().map(|name| lookup(values, name, None));
            return sources.collect::<PyResult<_>>().map(Some);
        }
        let columns = self.helper("read_table", (values, names))?;
        columns.extract()
    }

    /// An iterable of mappings.
    fn rows(
        &self,
        values: &Bound<'py, PyAny>,
        names: &[Py<PyString>],
    ) -> PyResult<Vec<UntypedColumn>> {
        let inputs = &self.spec.inputs;
        let mut columns: Vec<Vec<Untyped>> = vec![Vec::new(); inputs.len()];
        let mut length = 0;
        for_each(values, "values", |row, mapping| {
            for (column, input) in columns.iter_mut().zip(inputs) {
                if input.role == Role::Time && input.masks.is_empty() {
                    continue;
                }
                // An entry without values, as in a single insert.
                if mapping.is_none() {
                    column.push(Untyped::Null);
                    continue;
                }
                let get = |source: usize| lookup(&mapping, names[source].bind(self.py), Some(row));
                let counts = self.spec.counts(input, get);
                if !counts.map_err(|error| self.placed(error, None, row))? {
                    column.push(Untyped::Null);
                    continue;
                }
                if input.role == Role::Time {
                    column.push(Untyped::Int(self.ticks.value(row)));
                    continue;
                }
                let name = names[input.source].bind(self.py);
                let value = plain(get(input.source)?)?;
                let value = match (input.paired, input.role, &self.udaf_calls) {
                    (Some(paired), Role::Udaf(number), Some(udaf_calls)) => {
                        let paired = match paired {
                            Paired::Column(column) => plain(get(column)?)?,
                            Paired::Time => self.tick(row)?,
                        };
                        udaf_calls.lift_with(number, &value, &paired, self.spec.nan)
                    }
                    _ => self.read_value(&value, input.role),
                };
                let name = name.to_string_lossy();
                column.push(value.map_err(|error| self.placed(error, Some(&name), row))?);
            }
            length = row + 1;
            Ok(())
        })?;
        refuse_lengths(self.ticks.len(), length, None)?;
        let columns = columns.into_iter().zip(inputs).map(|(column, input)| {
            let times = input.role == Role::Time && input.masks.is_empty();
            (!times).then_some(UntypedColumn::Values(column))
        });
        self.finished(columns.collect(), &[])
    }
}

impl<'py> BulkReader<'_, 'py> {
    /// The time of a row, if there is one.
    fn tick(&self, row: usize) -> PyResult<Bound<'py, PyAny>> {
        let tick = self.ticks.values().get(row).copied();
        Ok(tick.into_pyobject(self.py)?.into_any())
    }
}

impl<'py> BulkReader<'_, 'py> {
    /// Reads the masks of all inputs. A column that can be read once only becomes a list.
    pub(crate) fn masks(
        &self,
        sources: &mut [Bound<'py, PyAny>],
        names: &[Py<PyString>],
    ) -> PyResult<Masks> {
        let mut read: Vec<((usize, Mask), Vec<bool>)> = Vec::new();
        for key in self.spec.inputs.iter().flat_map(|input| &input.masks) {
            if read.iter().any(|(known, _)| known == key) {
                continue;
            }
            let (source, mask) = *key;
            let skip = self.spec.nan == Nan::Skip;
            let name = names.get(source).map(|name| name.bind(self.py));
            let given = (&sources[source], mask == Mask::True, skip, name);
            let (again, bits): (Bound<'py, PyAny>, Bound<'py, PyBytes>) =
                self.helper("read_mask", given)?.extract()?;
            sources[source] = again;
            let bits: Vec<bool> = bits.as_bytes().iter().map(|byte| *byte != 0).collect();
            let name = name.map(|name| name.to_string_lossy());
            self.refuse_length(bits.len(), name.as_deref())?;
            read.push((*key, bits));
        }
        let of = |key: &(usize, Mask)| {
            let found = read.iter().find(|(known, _)| known == key);
            found.map(|(_, bits)| bits.clone()).unwrap_or_default()
        };
        let inputs = self.spec.inputs.iter();
        Ok(inputs
            .map(|input| input.masks.iter().map(of).reduce(both))
            .collect())
    }
}

fn both(one: Vec<bool>, other: Vec<bool>) -> Vec<bool> {
    one.into_iter().zip(other).map(|(a, b)| a && b).collect()
}

fn refuse_lengths(times: usize, values: usize, name: Option<&str>) -> PyResult<()> {
    if times == values {
        return Ok(());
    }
    let what = name.map_or_else(|| "values".to_owned(), |name| format!("column {name:?}"));
    Err(spec_error(format!(
        "there are {times} times, but {what} has {values}: each entry needs one of both"
    )))
}

fn role_name(role: Role) -> &'static str {
    match role {
        Role::Number | Role::Typed => "number",
        Role::Any | Role::Key | Role::Udaf(_) => "any",
        Role::Hash => "hash",
        Role::Presence => "presence",
        Role::Time => "time",
    }
}

/// The numbers of an array of int64 or float64; `None` for other values.
pub(crate) fn native(values: &Bound<'_, PyAny>) -> PyResult<Option<NumberArray>> {
    let py = values.py();
    if is_buffer(values)? {
        // pyarrow converts arrays without such a buffer (dates, other byte orders).
        let Ok(buffer) = PyUntypedBuffer::get(values) else {
            return Ok(None);
        };
        let format = buffer.format().to_bytes().first();
        let foreign = matches!(format, Some(b'<' | b'>' | b'!'));
        if buffer.dimensions() != 1 || foreign {
            return Ok(None);
        }
        if buffer.item_count() > COPIED && is_numpy(values)? {
            return Ok(None);
        }
        if let Ok(ints) = buffer.as_typed::<i64>() {
            return Ok(Some(NumberArray::I64(Int64Array::from(ints.to_vec(py)?))));
        }
        if let Ok(floats) = buffer.as_typed::<f64>() {
            return Ok(Some(NumberArray::F64(Float64Array::from(
                floats.to_vec(py)?,
            ))));
        }
        return Ok(None);
    }
    if !values.hasattr("__arrow_c_array__")? {
        return Ok(None);
    }
    let data = arrow::import(values)
        .map_err(|error| with_note(py, error, "importing an Arrow array in insert_many"))?;
    Ok(match data.data_type() {
        DataType::Int64 => Some(NumberArray::I64(data.into())),
        DataType::Float64 => Some(NumberArray::F64(data.into())),
        _ => None,
    })
}

/// An Arrow array of bools, as 0 and 1.
fn bools(array: &Bound<'_, PyAny>) -> PyResult<Option<Int64Array>> {
    if !array.hasattr("__arrow_c_array__")? {
        return Ok(None);
    }
    let data = arrow::import(array)?;
    if *data.data_type() != DataType::Boolean {
        return Ok(None);
    }
    let flags = BooleanArray::from(data);
    let ints = flags.values().iter().map(i64::from).collect();
    Ok(Some(Int64Array::new(ints, flags.nulls().cloned())))
}

/// The most numbers for which copying takes less time than borrowing through pyarrow.
const COPIED: usize = 1 << 12;

/// Whether the buffer holds all of the values; a masked array's does not.
fn is_buffer(values: &Bound<'_, PyAny>) -> PyResult<bool> {
    let kind = values.get_type();
    Ok(values.is_instance_of::<PyMemoryView>()
        || is_numpy(values)?
        || kind.qualname()? == "array" && kind.module()? == "array")
}

fn is_numpy(values: &Bound<'_, PyAny>) -> PyResult<bool> {
    let kind = values.get_type();
    Ok(kind.qualname()? == "ndarray" && kind.module()? == "numpy")
}

/// Visits the items of an iterable. From time to time it checks signals and lets other
/// threads run, as an iterable without a line of Python does not.
pub(crate) fn for_each<'py>(
    values: &Bound<'py, PyAny>,
    what: &str,
    mut visit: impl FnMut(usize, Bound<'py, PyAny>) -> PyResult<()>,
) -> PyResult<()> {
    let py = values.py();
    let doing = format!("reading the {what} of insert_many");
    let items = values.try_iter().map_err(|error| {
        if error.is_instance_of::<pyo3::exceptions::PyTypeError>(py) {
            spec_error(format!(
                "insert_many takes {what} as an array, a Series, a list or another \
                 iterable, got {}",
                described(values)
            ))
        } else {
            with_note(py, error, &doing)
        }
    })?;
    for (row, item) in items.enumerate() {
        if row % SIGNAL_CHECK_ROWS == SIGNAL_CHECK_ROWS - 1 {
            check_signals(py)?;
        }
        let item = item.map_err(|error| with_note(py, error, &format!("{doing} (item {row})")))?;
        visit(row, item)?;
    }
    Ok(())
}
