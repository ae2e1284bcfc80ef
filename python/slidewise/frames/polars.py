"""Adapter of a polars DataFrame."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from slidewise.errors import SpecError
from slidewise.frames.base import Frame, Result, guarded
from slidewise.frames.column_types import replace_types

__all__ = ["polars_frame"]


def polars_frame(table: Any) -> Frame:
    """Wraps a polars DataFrame."""
    return _PolarsFrame(table)


class _PolarsFrame:
    """A polars DataFrame."""

    times_beside = ""

    def __init__(self, table: Any) -> None:
        self._table = table
        # polars makes it of all columns at each access.
        self._schema = table.schema

    @property
    def names(self) -> Sequence[str]:
        return list(self._table.columns)

    @property
    def length(self) -> int:
        return int(self._table.height)

    def column(self, name: str) -> pa.Array:
        polars, dtype = sys.modules["polars"], self._schema[name]
        if dtype == polars.Object:
            raise SpecError(
                f"column {name!r} holds Python objects, which have no Arrow type: cast "
                "it first"
            )
        with guarded(f"column {name!r} of {dtype}"):
            try:
                array = self._table.get_column(name).rechunk().to_arrow()
            except pa.ArrowInvalid as error:
                raise SpecError(
                    f"column {name!r} holds {dtype}, which pyarrow "
                    f"{pa.__version__} has no type for ({error}): cast it first, "
                    "integers to Int64, UInt64 or Decimal(38, 0)"
                ) from error
        if dtype == polars.Enum and not array.type.ordered:  # before polars 1.42
            array = pa.DictionaryArray.from_arrays(
                array.indices, array.dictionary, ordered=True
            )
        return array

    def never_null(self, name: str) -> bool:  # noqa: ARG002
        return False

    def dtype(self, name: str) -> Any:
        return self._schema[name]

    def append(self, results: Mapping[str, Result]) -> Any:
        return self._table.with_columns(self._series(results))

    def make(self, columns: Mapping[str, Result]) -> Any:
        return sys.modules["polars"].DataFrame(self._series(columns))

    def _series(self, results: Mapping[str, Result]) -> list[Any]:
        polars = sys.modules["polars"]
        columns = []
        for name, result in results.items():
            array = result.array
            with guarded(f"the result {name!r} of {array.type}"):
                kind = replace_types(array.type, _narrow_decimal)
                array = array if array.type == kind else array.cast(kind)
                # As a table: polars < 1.44 misreads single arrays of lists of texts.
                series = polars.from_arrow(pa.table({name: array}))[name]
                if result.same_type and isinstance(result.dtype, polars.DataType):
                    series = series.cast(result.dtype)
            columns.append(series)
        return columns


def _narrow_decimal(kind: pa.DataType) -> pa.DataType | None:
    """The decimals of 38 digits in place of longer ones, which polars lacks."""
    is_wide = pa.types.is_decimal256(kind)
    return pa.decimal128(38, kind.scale) if is_wide else None
