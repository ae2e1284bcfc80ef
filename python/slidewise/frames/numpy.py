"""Adapter of mappings of NumPy arrays, one per column.

NumPy's only missing values are NaN and NaT. Results of integers and bools that may be
missing are masked arrays, so that no number is rounded.
"""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from slidewise.errors import SpecError
from slidewise.frames.base import Frame, Result, guarded
from slidewise.frames.objects import array_of_objects, needs_objects, objects_of

__all__ = ["holds_arrays", "numpy_frame"]

# The units of datetime64 and timedelta64 that Arrow has, too.
_UNITS = ("s", "ms", "us", "ns")
# Units of whole seconds.
_COARSE = ("W", "D", "h", "m")


def holds_arrays(table: Any) -> bool:
    """Whether this is a mapping from names to NumPy arrays."""
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(table, Mapping) or not table:
        return False
    return all(isinstance(values, numpy.ndarray) for values in table.values())


def numpy_frame(table: Mapping[str, Any]) -> Frame:
    """Wraps a mapping that `holds_arrays`."""
    return _NumpyFrame(table)


class _NumpyFrame:
    times_beside = ""

    def __init__(self, table: Mapping[str, Any]) -> None:
        self._table = table
        lengths = {name: _length(name, values) for name, values in table.items()}
        if len(set(lengths.values())) > 1:
            shown = ", ".join(f"{name} {length}" for name, length in lengths.items())
            raise SpecError(f"the columns differ in length: {shown[:200]}")

    @property
    def names(self) -> Sequence[str]:
        return list(self._table)

    @property
    def length(self) -> int:
        return len(next(iter(self._table.values())))

    def column(self, name: str) -> pa.Array:
        numpy = sys.modules["numpy"]
        values, mask = self._table[name], None
        if isinstance(values, numpy.ma.MaskedArray):
            mask, values = numpy.ma.getmaskarray(values), values.data
        if values.dtype.kind in "mM":
            values = _in_known_unit(name, values)
        elif values.dtype.kind == "T":
            values = values.astype(object)
        elif values.dtype.kind != "O":
            values = values.astype(values.dtype.newbyteorder("="), copy=False)
        try:
            if values.dtype.kind == "O":
                text = self._table[name].dtype.kind == "T"
                array = array_of_objects(values, mask=mask, pandas=text)
            else:
                array = pa.array(values, mask=mask, from_pandas=False)
        except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
            raise SpecError(
                f"column {name!r} of type {values.dtype} has no Arrow type: {error}"
            ) from error
        return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array

    def never_null(self, name: str) -> bool:
        values = self._table[name]
        masked = isinstance(values, sys.modules["numpy"].ma.MaskedArray)
        return values.dtype.kind in "iubf" and not masked

    def dtype(self, name: str) -> Any:  # noqa: ARG002
        return None

    def append(self, results: Mapping[str, Result]) -> Any:
        return {**self._table, **self.make(results)}

    def make(self, columns: Mapping[str, Result]) -> Any:
        made = {}
        for name, result in columns.items():
            with guarded(f"the result {name!r} of {result.array.type}"):
                made[name] = _as_numpy(result)
        return made


def _length(name: object, values: Any) -> int:
    if not isinstance(name, str):
        raise SpecError(f"the name of a column is a str, got {name!r}")
    if values.ndim != 1:
        raise SpecError(
            f"column {name!r} has {values.ndim} dimensions: give an array with one"
        )
    return len(values)


def _in_known_unit(name: str, values: Any) -> Any:
    """Converts times to a unit that Arrow has, without loss."""
    kind = values.dtype.kind
    unit, count = sys.modules["numpy"].datetime_data(values.dtype)
    if count != 1 or unit not in (*_UNITS, *_COARSE):
        raise SpecError(
            f"column {name!r} of type {values.dtype} has a unit that Arrow lacks: cast "
            f"it, for example to {kind}8[us]"
        )
    if unit in _COARSE and not (kind == "M" and unit == "D"):
        unit = "s"
    return values.astype(f"{kind}8[{unit}]")


def _as_numpy(result: Result) -> Any:
    array = result.array
    if needs_objects(array):
        return objects_of(array)
    whole = pa.types.is_integer(array.type) or pa.types.is_boolean(array.type)
    if not (whole and result.nullable):
        return array.to_numpy(zero_copy_only=False)
    filled = array.fill_null(pa.scalar(0, pa.int8()).cast(array.type))
    return sys.modules["numpy"].ma.masked_array(
        filled.to_numpy(zero_copy_only=False),
        mask=array.is_null().to_numpy(zero_copy_only=False),
    )
