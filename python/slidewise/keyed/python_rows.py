"""Rows of Python values: a dict of lists, or a mapping of scalars for one row.

Values take the types of the stream. Only those of a first batch without `schema=` have
the types that Arrow infers.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa

from slidewise.errors import SpecError
from slidewise.frames.numpy import holds_arrays
from slidewise.frames.objects import array_of_objects
from slidewise.table.python_values import array_of

__all__ = ["PythonRows", "holds_values"]

_SCALARS = (str, bytes, bytearray, Mapping)
# The type of Python whose values Arrow takes exactly or refuses, and whether they have
# a zone; floats are rounded to float32, as in extra rows of queries.
_EXACT: dict[pa.DataType, tuple[type, bool | None]] = {
    **dict.fromkeys([pa.int64(), pa.int32(), pa.int16(), pa.int8()], (int, None)),
    **dict.fromkeys([pa.float64(), pa.float32()], (float, None)),
    **dict.fromkeys([pa.string(), pa.large_string()], (str, None)),
    pa.bool_(): (bool, None),
    pa.timestamp("us"): (datetime, False),
    pa.timestamp("us", "UTC"): (datetime, True),
}
_NEVER = (None, None)


def holds_values(batch: object) -> bool:
    """Whether a batch is a mapping of Python values, not one of NumPy arrays alone."""
    return isinstance(batch, Mapping) and not holds_arrays(batch)


class PythonRows:
    """Reads rows of Python values.

    Args:
        on: The column of times, which tells rows from one row: a list has several.
        schema: The columns of the stream, if they are known.

    Example:
        >>> PythonRows("t", None).table({"t": 3, "tags": ["a"]}).to_pylist()
        [{'t': 3, 'tags': ['a']}]
        >>> rows = PythonRows("t", pa.schema({"t": pa.int32()}))
        >>> rows.table({"t": [3, 4]}).schema
        t: int32
    """

    def __init__(self, on: str, schema: pa.Schema | None) -> None:
        self.on, self.schema = on, schema
        fields = [] if schema is None else [(one.name, one.type) for one in schema]
        self._row_type = pa.struct(fields)
        self._exact = [(name, *_EXACT.get(kind, _NEVER)) for name, kind in fields]

    def table(self, batch: Mapping[Any, Any]) -> pa.Table:
        """The rows of a mapping from columns to lists of values, or to one value each.

        More columns than the schema's are left out.

        Raises:
            SpecError: If a column is missing, a value does not fit its column, or
                columns differ in length.
        """
        schema = self.schema
        row = None if schema is None else self._row(batch)
        if row is not None:
            return row
        names = [*batch] if schema is None else schema.names
        needed = [self.on, *names]
        missing = next((name for name in needed if name not in batch), None)
        if missing is not None:
            raise SpecError(
                f"the batch has no column {missing!r}; it has "
                f"{', '.join(map(str, batch)) or 'none'}"
            )
        several = _is_column(batch[self.on])
        columns = {}
        for name in names:
            if not isinstance(name, str):
                raise SpecError(f"names of columns are text, not {name!r}")
            values = _column(name, batch[name]) if several else [batch[name]]
            kind = None if schema is None else schema.field(name).type
            columns[name] = _array(name, values, kind)
        lengths = {name: len(column) for name, column in columns.items()}
        if len({*lengths.values()}) > 1:
            shown = ", ".join(f"{name} {length}" for name, length in lengths.items())
            raise SpecError(f"the columns differ in length: {shown:.200}")
        return pa.table(columns, schema)

    def _row(self, batch: Mapping[Any, Any]) -> pa.Table | None:
        """One row of values that Arrow takes exactly; None for others.

        One call for all columns takes a third of the time of a call for each.
        """
        row: dict[str, Any] = {}
        for name, kind, has_zone in self._exact:
            value: Any = batch.get(name)
            if type(value) is not kind:
                if value is not None or name not in batch:
                    return None
                row[name] = None
                continue
            if has_zone is not None and (value.tzinfo is not None) != has_zone:
                return None
            row[name] = value
        try:
            rows = pa.array([row], self._row_type)
        except (pa.ArrowException, OverflowError):  # named by column elsewhere
            return None
        return pa.Table.from_batches([pa.RecordBatch.from_struct_array(rows)])


def _is_column(values: object) -> bool:
    """Whether a value of a mapping is a column, not one value."""
    return isinstance(values, Iterable) and not isinstance(values, _SCALARS)


def _column(name: str, values: Any) -> Sequence[Any]:
    if not _is_column(values):
        raise SpecError(
            f"column {name!r} is not a list, as that of times is: {values!r}"
        )
    return [*values]


def _array(name: str, values: Sequence[Any], kind: pa.DataType | None) -> pa.Array:
    try:
        if kind is None:
            return array_of_objects(values)
        return array_of(values, kind, rounds=True)
    except (ValueError, OverflowError, pa.ArrowException) as error:
        row, why = _first_wrong(values, kind) or (0, error)
        held = "" if kind is None else f", which does not fit {kind}"
        raise SpecError(
            f"column {name!r} has {values[row]!r:.80} in row {row} (counting from 0)"
            f"{held}: {why}"
        ) from error


def _first_wrong(
    values: Sequence[Any], kind: pa.DataType | None
) -> tuple[int, Exception] | None:
    """The first value that does not fit the type, with the reason; None if all fit."""
    for row, value in enumerate(values):
        try:
            if kind is not None:
                array_of([value], kind, rounds=True)
        except (ValueError, OverflowError) as error:
            return row, error
    return None
