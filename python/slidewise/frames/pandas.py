"""Adapter of a pandas DataFrame."""

import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa

from slidewise.errors import SpecError
from slidewise.frames.base import Frame, Result, decode_runs, guarded, one_array
from slidewise.frames.column_types import is_text
from slidewise.frames.objects import array_of_objects, needs_objects, objects_of

__all__ = ["pandas_frame", "to_dense"]


def pandas_frame(table: Any) -> Frame:
    """Wraps a pandas DataFrame."""
    return _PandasFrame(table)


def to_dense(values: Any) -> Any:
    """A pandas column or array; a sparse one as its dense values."""
    sparse = isinstance(values.dtype, sys.modules["pandas"].SparseDtype)
    return values.astype(values.dtype.subtype) if sparse else values


def _refuse_mixed(name: str, values: Any, array: pa.Array | pa.ChunkedArray) -> None:
    """Refuses objects that Arrow would change to give them one type."""
    kind = array.type
    if pa.types.is_date(kind):
        what = "date"
    elif pa.types.is_timestamp(kind):
        what = f"time {'without' if kind.tz is None else 'with'} a zone"
    elif pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        what = "bytes value"
    else:
        return
    valid = array.is_valid().to_pylist()
    for row, (value, is_valid) in enumerate(zip(values, valid, strict=True)):
        if is_valid and not _is_exact(value, kind):
            raise SpecError(
                f"column {name!r} holds values of several types: that in row {row} "
                f"(counting from 0) is not a {what} like the others: {value!r}"
            )


def _is_exact(value: Any, kind: pa.DataType) -> bool:
    """Whether a type holds an object without loss."""
    if pa.types.is_date(kind):
        return not isinstance(value, datetime)
    if pa.types.is_timestamp(kind):
        return (getattr(value, "tzinfo", None) is None) == (kind.tz is None)
    return not isinstance(value, str)


class _PandasFrame:
    """A pandas DataFrame. Levels of its index can be named like columns."""

    def __init__(self, table: Any) -> None:
        self._table = table
        if table.columns.nlevels > 1:
            raise SpecError(
                "the columns have several levels: flatten their names first"
            )

    @property
    def names(self) -> Sequence[str]:
        levels = [name for name in self._table.index.names if name is not None]
        columns = list(self._table.columns)
        taken = {*columns}
        return columns + [level for level in levels if level not in taken]

    @property
    def length(self) -> int:
        return len(self._table)

    @property
    def times_beside(self) -> str:
        index = self._table.index
        unnamed = index.nlevels == 1 and index.name is None
        if not unnamed or index.dtype.kind not in "mM":
            return ""
        return (
            " The times are in its index, which has no name: give "
            "frame.rename_axis('t'), and on='t'."
        )

    def _values(self, name: str) -> Any:
        if name in self._table.columns:
            return self._table[name]
        return self._table.index.get_level_values(name).to_series()

    def column(self, name: str) -> pa.Array:
        values = to_dense(self._values(name))
        with guarded(f"column {name!r} of {values.dtype}"):
            return self._column(name, values)

    @staticmethod
    def _column(name: str, values: Any) -> pa.Array:
        try:
            if values.dtype == object:
                array = array_of_objects(values, pandas=True)
            else:
                array = pa.Array.from_pandas(values)
        except (pa.ArrowException, OverflowError, TypeError) as error:
            held = "values of several types, or that Arrow has no type for"
            if values.dtype != object:
                held = f"{values.dtype}, which Arrow has no type for; cast it first"
            raise SpecError(f"column {name!r} holds {held}: {error}") from error
        if values.dtype == object:
            _refuse_mixed(name, values, array)
        chunked = isinstance(array, pa.ChunkedArray)
        return one_array(array) if chunked else decode_runs(array)

    def never_null(self, name: str) -> bool:
        dtype = self._values(name).dtype
        return type(dtype).__module__.startswith("numpy") and dtype.kind in "iub"

    def dtype(self, name: str) -> Any:
        return self._values(name).dtype

    def append(self, results: Mapping[str, Result]) -> Any:
        pandas = sys.modules["pandas"]
        added = self._frame(results, self._table.index)
        table = pandas.concat([self._table, added], axis=1)
        table.attrs = dict(self._table.attrs)
        return table

    def make(self, columns: Mapping[str, Result]) -> Any:
        table = self._frame(columns, None)
        table.attrs = dict(self._table.attrs)
        return table

    def _frame(self, results: Mapping[str, Result], index: Any) -> Any:
        columns = {}
        for name, result in results.items():
            with guarded(f"the result {name!r} of {result.array.type}"):
                columns[name] = self._to_pandas(result)
        return sys.modules["pandas"].DataFrame(columns, index=index, copy=False)

    def _to_pandas(self, result: Result) -> Any:
        """Converts to the kind of dtype of the source: Arrow, masked, numpy."""
        pandas = sys.modules["pandas"]
        array, dtype = result.array, result.dtype
        if isinstance(dtype, pandas.ArrowDtype):
            return array.to_pandas(types_mapper=pandas.ArrowDtype).array
        if isinstance(dtype, pandas.StringDtype) and is_text(array.type):
            # Keeps the missing value of the column, NaN or NA.
            return dtype.__from_arrow__(array.cast(pa.large_string()))
        masked = isinstance(dtype, pandas.api.extensions.ExtensionDtype) and hasattr(
            dtype, "numpy_dtype"
        )
        whole = pa.types.is_integer(array.type) or pa.types.is_boolean(array.type)
        if masked or (whole and result.nullable):
            return array.to_pandas(types_mapper=_masked_dtypes(pandas).get).array
        if needs_objects(array):
            return objects_of(array)
        return array.to_pandas().array


def _masked_dtypes(pandas: Any) -> dict[pa.DataType, Any]:
    sizes = {"int": (8, 16, 32, 64), "uint": (8, 16, 32, 64), "float": (32, 64)}
    names = {"int": "Int", "uint": "UInt", "float": "Float"}
    dtypes = {
        getattr(pa, f"{kind}{bits}")(): pandas.api.types.pandas_dtype(
            f"{names[kind]}{bits}"
        )
        for kind, widths in sizes.items()
        for bits in widths
    }
    return {**dtypes, pa.bool_(): pandas.BooleanDtype()}
