"""Converts the arrays that `Window.insert_many` takes to Arrow: times and values.

The core reads int64 and float64 arrays itself; this module converts all others. The
functions return None for input that is not an array, which is then read item by item.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import tzinfo
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from slidewise.aggregations.objects import pair
from slidewise.aggregations.scalars import is_bool, is_missing, is_numpy_bool, is_of
from slidewise.errors import SpecError
from slidewise.frames.adapt import refuse_spark
from slidewise.frames.base import combined
from slidewise.frames.pandas import to_dense
from slidewise.table.arrays import decode_dictionary
from slidewise.window.time_codec import SIZES, Clock, numpy_unit, zone_named
from slidewise.window.window_plan import WindowPlan

__all__ = [
    "find_objects",
    "read_again",
    "read_mask",
    "read_pairs",
    "read_table",
    "read_times",
    "read_values",
]

# Types of values that have `__float__` or `__index__` but are read as objects, since
# conversion loses digits or fails; and the module of each.
_OBJECTS = {
    "Decimal": "decimal",
    "Fraction": "fractions",
    "str_": "numpy",
    "bytes_": "numpy",
    "datetime64": "numpy",
    "timedelta64": "numpy",
}
_DAY_MS = 86_400_000
_TOO_LARGE = (
    ": create the window with dtype='object' for exact sums and extremes, or cast them "
    "to float64 if rounding is fine"
)


def read_times(
    times: Any, plan: WindowPlan, clock: Clock | None
) -> tuple[Clock, pa.Array] | None:
    """Reads an array of times as ticks, and returns them with the clock of the window.

    Args:
        times: The `times` of `insert_many`.
        plan: The plan of the window, which makes a clock if there is none.
        clock: The clock of the window, or None before the first entry.

    Raises:
        SpecError: If a time is missing, or not of the window's kind; the message names
            the row, counting from 0.
    """
    array, kind = _times_array(times)
    if array is None or isinstance(array, list):
        return None
    if not isinstance(array, _Ticks) and len(array) == 0:
        return None  # no entry, so the kind of times is unknown
    if array.null_count:
        row = pc.index(pc.is_null(array), True).as_py()
        raise SpecError(
            f"row {row} has no time (counting from 0): first drop the rows without a "
            "time, or fill them in"
        )
    unit, zone, ticks = _split(array, kind)
    if clock is None:
        clock = plan.clock_for(_class(kind, unit, zone), unit, zone)
    ticks = _in_unit_of(clock, ticks, kind, unit, zone)
    return clock, ticks


def _times_array(times: Any) -> tuple[Any, str]:
    """The times as an array, or None; and their library: arrow, numpy or pandas."""
    numpy, pandas = sys.modules.get("numpy"), sys.modules.get("pandas")
    if numpy is not None and isinstance(times, numpy.ndarray):
        if times.dtype.kind == "M":
            return _numpy_instants(times, numpy), "numpy"
        return (None if times.dtype.kind == "O" else _from_numpy(times)), "numpy"
    library = "arrow"
    if pandas is not None and isinstance(times, (pandas.Series, pandas.Index)):
        if times.dtype == object:
            return None, "pandas"
        library = "pandas"
    return as_array(times), library


def _numpy_instants(times: Any, numpy: Any) -> "_Ticks":
    if times.ndim != 1:
        raise SpecError(
            f"times have {times.ndim} dimensions: give an array of one dimension"
        )
    missing = numpy.isnat(times)
    if missing.any():
        raise SpecError(
            f"row {int(missing.argmax())} has no time (NaT, counting from 0): first "
            "drop the rows without a time, or fill them in"
        )
    native = numpy.ascontiguousarray(times).view(f"{times.dtype.byteorder}i8")
    return _Ticks(pa.array(native.astype("int64")), numpy_unit(times.dtype))


class _Ticks:
    """Instants in a unit of numpy that Arrow may lack."""

    null_count = 0

    def __init__(self, ticks: pa.Array, unit: str) -> None:
        self.ticks = ticks
        self.unit = unit


def _split(array: Any, kind: str) -> tuple[str, tzinfo | None, pa.Array]:
    """Unit ("" for ints), zone and ticks of an array of times."""
    if isinstance(array, _Ticks):
        return array.unit, None, array.ticks
    held = array.type
    if pa.types.is_dictionary(held):
        return _split(array.dictionary_decode(), kind)
    if pa.types.is_integer(held):
        return "", None, _as_int64(array, "times")
    if pa.types.is_timestamp(held):
        zone = None if held.tz is None else zone_named(held.tz)
        return held.unit, zone, array.view(pa.int64())
    if pa.types.is_date32(held):
        return "D", None, array.view(pa.int32()).cast(pa.int64())
    if pa.types.is_date64(held):
        return "D", None, pc.divide(array.view(pa.int64()), _DAY_MS)
    hint = "times are ints, timestamps or dates"
    if pa.types.is_floating(held):
        hint = "floats cannot hold times exactly, cast them to int64"
    if pa.types.is_string(held) or pa.types.is_large_string(held):
        hint = "parse them first, for example with pandas.to_datetime"
    raise SpecError(f"the times are of type {held}: {hint}")


def _class(kind: str, unit: str, zone: tzinfo | None) -> str:
    """The kind of clock for the times of such an array."""
    if unit == "":
        return "int"
    if kind in ("numpy", "pandas"):
        return kind
    if unit == "D":
        return "date"
    if unit != "ns":
        return "datetime"
    # A datetime has no nanoseconds.
    return "numpy" if zone is None and "pandas" not in sys.modules else "pandas"


def _in_unit_of(
    clock: Clock, ticks: pa.Array, kind: str, unit: str, zone: tzinfo | None
) -> pa.Array:
    dates = unit == "D" and kind != "numpy"
    mixed = (
        (clock.kind == "int") != (unit == "")
        or (clock.kind == "date") != dates
        or (clock.zone is None) != (zone is None)
    )
    if mixed:
        given = "ints" if unit == "" else "dates" if dates else f"timestamps in {unit}"
        given += f" with zone {zone}" if zone else ""
        raise SpecError(
            f"the times are {given}, which are not of the kind of this window's times: "
            f"its first time decided that they are {clock.described}"
        )
    if unit == clock.unit:
        return ticks
    return _rescaled(ticks, unit, clock.unit)


def _rescaled(ticks: pa.Array, unit: str, to: str) -> pa.Array:
    old, new = SIZES[unit], SIZES[to]
    try:
        if old % new == 0:
            return pc.multiply_checked(ticks, old // new)
        coarse = pc.divide(ticks, new // old)
        exact = pc.equal(pc.multiply(coarse, new // old), ticks)
    except pa.ArrowInvalid as error:
        raise SpecError(f"a time in {unit} does not fit int64 in {to}") from error
    if not pc.all(exact, min_count=0).as_py():
        row = pc.index(exact, False).as_py()
        raise SpecError(
            f"row {row}: the time is not a whole number of this window's units ({to}), "
            "which its first time decided: round it, or begin with a finer unit"
        )
    return coarse


def read_values(values: Any, role: str) -> pa.Array | list[Any] | None:
    """The values of one input column: int64, float64 or bool, or a list, or None.

    Args:
        values: The `values` of `insert_many`, or one column of them.
        role: "number", "any", "hash" or "presence".
    """
    array = as_array(values)
    if array is None or isinstance(array, list):
        return array
    if pa.types.is_dictionary(array.type):
        array = decode_dictionary(array)
    held = array.type
    if array.null_count == len(array):
        return pa.nulls(len(array), pa.int64())
    if role == "presence" and not pa.types.is_floating(held):
        return pc.if_else(pc.is_valid(array), 0, None).cast(pa.int64())
    if role in ("any", "hash") and pa.types.is_uint64(held):
        return list(array.to_pylist())
    if pa.types.is_integer(held):
        return _as_int64(array, "values")
    if pa.types.is_floating(held):
        return array.cast(pa.float64())
    if role in ("any", "hash"):
        return list(array.to_pylist())
    if pa.types.is_boolean(held):
        return array
    if pa.types.is_decimal(held):
        return array.cast(pa.float64())
    raise SpecError(
        f"the values are of type {held}, not numbers: sum, min, max and similar ones "
        "take ints and floats; with dtype='object' they take all values that "
        "compare and add, and collect() takes any values"
    )


def find_objects(
    values: Any, names: Sequence[str] | None, open_columns: Sequence[int]
) -> tuple[Any, list[int]]:
    """Finds the columns whose first value is an object.

    Args:
        values: The `values` of `insert_many`.
        names: The columns of the window, or None where entries are single values.
        open_columns: The numbers of the columns without a type yet.

    Returns:
        The values, which can be read from the start, and the numbers of these columns.
    """
    if names is None:
        values, is_object = _first_of(values)
        return values, [0] if is_object else []
    columns = _columns_of(values, names)
    if columns is None:
        return _first_rows(values, names, open_columns)
    found = []
    for at in open_columns:
        columns[names[at]], is_object = _first_of(columns[names[at]])
        if is_object:
            found.append(at)
    return columns, found


def _columns_of(values: Any, names: Sequence[str]) -> dict[str, Any] | None:
    if isinstance(values, Mapping):
        if not all(name in values for name in names):
            return None
        return {name: values[name] for name in names}
    columns = read_table(values, names)
    return None if columns is None else dict(zip(names, columns, strict=True))


def _first_rows(
    values: Any, names: Sequence[str], open_columns: Sequence[int]
) -> tuple[Any, list[int]]:
    """`find_objects` for an iterable of mappings."""
    if isinstance(values, Mapping) or not isinstance(values, Iterable):
        return values, []
    undecided, found = set(open_columns), []
    seen: list[Any] = []
    rest = iter(values)
    error = None
    try:
        for row in rest:
            seen.append(row)
            for at in sorted(undecided) if isinstance(row, Mapping) else ():
                value = row.get(names[at])
                if not is_missing(value):
                    undecided.remove(at)
                    found += [at] if _is_object(value) else []
            if not undecided:
                break
    except BaseException as raised:  # noqa: BLE001 - raised again by _resumed
        error = raised
    if not isinstance(values, (list, tuple)):
        return _resumed(seen, rest, error), found
    if error is not None:
        raise error
    return values, found


def _first_of(values: Any) -> tuple[Any, bool]:
    """The values, which can be read from the start; whether the first is an object."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(values, numpy.ndarray):
        if values.dtype.kind == "u" and values.ndim == 1:
            return values, bool(values.max(initial=0) >= 2**63)
        if values.dtype.kind in "iufbc" or values.ndim != 1:
            return values, False
        return values, any(map(_is_object, _first(values)))
    array = as_array(values)
    if isinstance(array, pa.Array):
        held = array.type
        if pa.types.is_dictionary(held):
            held = held.value_type
        if pa.types.is_uint64(held):
            return array, not is_missing(
                most := pc.max(array).as_py()
            ) and most >= 2**63
        numbers = pa.types.is_integer(held) or pa.types.is_floating(held)
        plain = numbers or pa.types.is_boolean(held) or pa.types.is_null(held)
        return array, not plain and array.null_count < len(array)
    if array is not None:
        return array, any(map(_is_object, _first(array)))
    if not isinstance(values, Iterable) or isinstance(values, Mapping):
        return values, False
    if isinstance(values, Iterator):
        return _first_of_iterator(values)
    known = type(values).__module__ in ("builtins", "collections", "array")
    if known or hasattr(values, "dtype"):
        return values, any(map(_is_object, _first(values)))
    # An iterable of unknown type may run the user's code, which must run once only.
    return _first_of_iterator(iter(values))


def _first_of_iterator(values: Iterator[Any]) -> tuple[Any, bool]:
    seen: list[Any] = []
    try:
        for value in values:
            seen.append(value)
            if not is_missing(value):
                break
    except BaseException as error:  # noqa: BLE001 - raised again by _resumed
        return _resumed(seen, values, error), False
    return _resumed(seen, values, None), bool(seen) and _is_object(seen[-1])


def _resumed(
    seen: list[Any], rest: Iterator[Any], error: BaseException | None
) -> Iterator[Any]:
    yield from seen
    if error is not None:
        raise error
    yield from rest


def _first(values: Iterable[Any]) -> Iterable[Any]:
    """The first value that is not missing, or nothing."""
    return islice((value for value in values if not is_missing(value)), 1)


def _is_object(value: Any) -> bool:
    """Whether a value is an object; the core decides the same for single values."""
    if isinstance(value, int):
        return not -(2**63) <= value < 2**63
    if is_missing(value) or isinstance(value, float):
        return False
    if type(value) is dict or is_numpy_bool(value):
        return False
    kind = type(value)
    if kind.__name__ in _OBJECTS and is_of(kind, _OBJECTS[kind.__name__]):
        return True
    return not hasattr(kind, "__index__") and not hasattr(kind, "__float__")


def read_again(values: Any) -> Any:
    """A column that can be read more than once."""
    array = as_array(values)
    return list(values) if array is None else array


def read_pairs(by: Any, of: Any, nan: str) -> list[tuple[Any, Any] | None]:
    """Pairs of the compared value and its companion, by row; see `objects.pair`.

    Args:
        by: The compared column, as `read_again` gives it.
        of: The paired column, likewise.
        nan: "propagate", "skip" or "raise".
    """
    columns = [
        column if isinstance(column, list) else column.to_pylist()
        for column in (by, of)
    ]
    if len(columns[0]) != len(columns[1]):
        raise SpecError(
            f"one column has {len(columns[0])} values, another {len(columns[1])}: each "
            "entry needs one of both"
        )
    return [pair(left, right, nan) for left, right in zip(*columns, strict=True)]


def read_mask(
    values: Any, true: bool, skip_nan: bool, name: str | None
) -> tuple[Any, bytes]:
    """The rows where a column is true, or present, as one byte per row.

    Args:
        values: The column.
        true: Whether it must be true; otherwise it must not be missing.
        skip_nan: Whether NaN is missing.
        name: The name of the column, for messages; None for single values.

    Returns:
        The column, which can be read again, and the bytes.
    """
    array = read_again(values)
    if isinstance(array, list):
        return array, bytes(_mask_of(value, true, skip_nan, name) for value in array)
    if true and not pa.types.is_boolean(array.type):
        if array.null_count == len(array):
            return array, bytes(len(array))
        raise SpecError(
            f"where={name!r} takes a column of booleans, got one of {array.type}"
        )
    if true:
        mask = pc.fill_null(array, False)
    elif skip_nan and pa.types.is_floating(array.type):
        mask = pc.fill_null(pc.invert(pc.is_nan(array)), False)
    else:
        mask = pc.is_valid(array)
    # A bitmap may begin at an offset; the addition makes bytes that begin at 0.
    ones = pc.add(mask.cast(pa.uint8()), pa.scalar(0, pa.uint8()))
    return array, ones.buffers()[1].to_pybytes()[: len(array)] if len(array) else b""


def _mask_of(value: Any, true: bool, skip_nan: bool, name: str | None) -> bool:
    if is_missing(value):
        return False
    if not true:
        return not (skip_nan and _is_nan(value))
    if is_bool(value):
        return bool(value)
    raise SpecError(f"where={name!r} takes a column of booleans, got {value!r:.60}")


def _as_int64(array: pa.Array, what: str) -> pa.Array:
    try:
        return array.cast(pa.int64())
    except pa.ArrowInvalid as error:
        row = pc.index(
            pc.greater(array, pa.scalar(2**63 - 1, array.type)), True
        ).as_py()
        raise SpecError(
            f"row {row}: {array[row]} ({array.type}) does not fit int64"
            + (_TOO_LARGE if what == "values" else "")
        ) from error


def as_array(values: Any) -> pa.Array | list[Any] | None:
    """Converts an array of any library to an Arrow array; None for other values.

    An array becomes a list if Arrow has no type for it.
    """
    refuse_spark(values)
    if isinstance(values, pa.Array):
        return _as_array(values)
    numpy, pandas = sys.modules.get("numpy"), sys.modules.get("pandas")
    if numpy is not None and isinstance(values, numpy.ndarray):
        return _from_numpy(values)
    if pandas is not None and isinstance(
        values, (pandas.Series, pandas.Index, pandas.api.extensions.ExtensionArray)
    ):
        if values.dtype == object:
            # In a column of objects, pandas writes a missing value as NaN.
            return [None if _is_nan(value) else value for value in values]
        return _converted(pa.Array.from_pandas, to_dense(values))
    if _holds_python_objects(values):
        return list(values)
    if isinstance(values, pa.ChunkedArray) or hasattr(values, "__arrow_c_stream__"):
        return _converted(pa.chunked_array, values)
    if hasattr(values, "__arrow_c_array__"):
        return _converted(pa.array, values)
    return None


def _converted(convert: Callable[[Any], Any], values: Any) -> pa.Array | list[Any]:
    """Converts values to an Arrow array, or to a list if Arrow has no type for them."""
    try:
        return _as_array(convert(values))
    except pa.ArrowException as error:
        if isinstance(values, Iterable):
            return list(values)
        raise SpecError(
            f"the Arrow array of {values!r:.60} cannot be read: {error}; its "
            "__arrow_c_array__ must make new capsules at every call"
        ) from error


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and value != value


def _holds_python_objects(values: Any) -> bool:
    """Whether this is a polars Series of objects, which exports their addresses."""
    polars = sys.modules.get("polars")
    if polars is None or not isinstance(values, polars.Series):
        return False
    return bool(values.dtype == polars.Object)


def _as_array(array: pa.Array | pa.ChunkedArray) -> pa.Array | list[Any]:
    if isinstance(array, pa.ChunkedArray):
        array = combined(array)
    elif isinstance(array, pa.Array) and pa.types.is_run_end_encoded(array.type):
        array = pc.run_end_decode(array)
    return array.to_pylist() if isinstance(array, pa.ChunkedArray) else array


def _from_numpy(values: Any) -> pa.Array | list[Any]:
    if values.ndim != 1:
        raise SpecError(
            f"an array of {values.ndim} dimensions was given: give one of one dimension"
        )
    if values.dtype.kind == "M":
        return list(values)
    if values.dtype.kind not in "iufb":
        return list(values.tolist())
    if values.dtype.itemsize > 8:
        values = values.astype("float64")
    return pa.array(values.astype(values.dtype.newbyteorder("="), copy=False))


def read_table(values: Any, names: Sequence[str]) -> list[Any] | None:
    """The columns of a table by name, or None if it is not a table."""
    refuse_spark(values)
    present: list[str]
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(values, pandas.DataFrame):
        present = [str(column) for column in values.columns]
        return [values[name] for name in _checked_names(names, present)]
    polars = sys.modules.get("polars")
    if polars is not None and isinstance(values, polars.DataFrame):
        return [
            values.get_column(name) for name in _checked_names(names, values.columns)
        ]
    if not isinstance(values, pa.Table | pa.RecordBatch):
        if not hasattr(values, "__arrow_c_stream__") or isinstance(
            values, pa.ChunkedArray
        ):
            return None
        try:
            values = pa.table(values)
        except (TypeError, ValueError, pa.ArrowException):
            return None
    present = list(values.schema.names)
    return [values.column(name) for name in _checked_names(names, present)]


def _checked_names(names: Sequence[str], present: list[str]) -> Sequence[str]:
    for name in names:
        if present.count(name) != 1:
            what = "no column" if name not in present else "more than one column"
            shown = ", ".join(map(repr, present[:20])) or "none"
            raise SpecError(f"the table has {what} {name!r}; it has {shown}")
    return names
