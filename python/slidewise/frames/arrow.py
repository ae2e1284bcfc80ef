"""Tables of every make: columns out as Arrow, results back in the same make.

A frame reads the columns it is asked for and nothing else, and gives back the caller's
own type with the results appended, rows and index as they were.
"""

import difflib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from os import PathLike
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from slidewise.errors import SpecError
from slidewise.frames.column_types import is_text
from slidewise.frames.numpy import holds_arrays, numpy_frame

__all__ = [
    "Frame",
    "Result",
    "dense",
    "frame",
    "is_lazy",
    "once_collected",
    "refuse_spark",
    "refuse_taken",
    "require",
]


@dataclass(frozen=True, slots=True)
class Result:
    """One result column.

    Attributes:
        array: The values, in row order.
        flavour: What a frame said of the column it was computed of, whose flavour of
            types it follows; None if there is none.
        keeps: Whether its type is that of this column.
        nullable: Whether a null can occur in it, whatever the data.
    """

    array: pa.Array
    flavour: Any
    keeps: bool
    nullable: bool


class Frame(Protocol):
    """What the rolling kernel needs of a table."""

    @property
    def names(self) -> Sequence[str]:
        """The names of its columns."""

    @property
    def length(self) -> int:
        """How many rows it has."""

    def column(self, name: str) -> pa.Array:
        """A column as one Arrow array; the name is there, once."""

    def never_null(self, name: str) -> bool:
        """Whether the type of this column cannot express a missing value."""

    def flavour(self, name: str) -> Any:
        """The type of a column in words of its own library, for `Result`."""

    def append(self, results: Mapping[str, Result]) -> Any:
        """The caller's table with the results behind its columns."""

    def make(self, columns: Mapping[str, Result]) -> Any:
        """A table of the caller's make of these columns alone."""


def frame(table: Any) -> Frame:
    """Wraps a table.

    Raises:
        SpecError: If it is not a table, or one of Spark's.
    """
    if isinstance(table, type):
        raise SpecError(_no_table(table))
    refuse_spark(table)
    for library, type_name, wrap in _LIBRARIES:
        module = sys.modules.get(library)
        if module is not None and isinstance(table, getattr(module, type_name)):
            return wrap(table)
    if isinstance(table, pa.RecordBatch):
        return _ArrowFrame(pa.Table.from_batches([table]), _as_batch)
    if isinstance(table, pa.Table):
        return _ArrowFrame(table, _as_table)
    if holds_arrays(table):
        return numpy_frame(table)
    if hasattr(table, "__arrow_c_stream__"):
        try:
            return _ArrowFrame(pa.table(table), _as_table)
        except (pa.ArrowInvalid, ValueError) as error:  # a stream of no columns
            raise SpecError(_no_table(table)) from error
    raise SpecError(_no_table(table))


def refuse_spark(table: Any) -> None:
    """Refuses a DataFrame of Spark, whose rows would all be collected to the driver.

    Raises:
        SpecError: If it is one, classic, of Spark Connect, or of pandas on Spark.
    """
    for name in _SPARK_MODULES:
        module = sys.modules.get(name)
        if module is not None and isinstance(table, module.DataFrame):
            raise SpecError(
                "this is a PySpark DataFrame, and all its rows would be collected to "
                "the driver: use slidewise.spark.rolling or slidewise.spark.hopping, "
                "or give df.toPandas() if its rows fit into memory"
            )


def is_lazy(table: Any) -> bool:
    """Whether this is a polars LazyFrame, which has no rows yet."""
    polars = sys.modules.get("polars")
    return polars is not None and isinstance(table, polars.LazyFrame)


def once_collected(lazy: Any, answer: Callable[[Any], Any]) -> Any:
    """A LazyFrame of what `answer` makes of the rows of another, once they are there.

    What an answer is made of is checked now, on a frame without rows.
    """
    schema = answer(lazy.collect_schema().to_frame()).schema
    return lazy.map_batches(answer, schema=schema)


def require(frame: Frame, names: Sequence[str], whose: str = "the table") -> None:
    """Refuses columns that are not there, or there twice.

    Raises:
        SpecError: Naming the column, those that are there, and a near miss.
    """
    present = list(frame.names)
    for name in names:
        found = present.count(name)
        if found == 0:
            columns = [str(column) for column in present]
            raise SpecError(_no_column(name, columns, whose))
        if found > 1:
            raise SpecError(f"{whose} has {found} columns {name!r}: rename one")


def refuse_taken(frame: Frame, results: Sequence[str]) -> None:
    """Refuses result names that the table has already.

    Raises:
        SpecError: Naming the column.
    """
    present = set(frame.names)
    for name in results:
        if name in present:
            raise SpecError(
                f"the table has a column {name!r} already: "
                "give the aggregation another name, or drop the column"
            )


def _no_column(name: str, present: list[str], whose: str) -> str:
    near = difflib.get_close_matches(name, present, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    shown = ", ".join(present[:20]) + (", ..." if len(present) > 20 else "")
    return f"{whose} has no column {name!r}; it has {shown or 'none'}.{hint}"


def _no_table(table: Any) -> str:
    if isinstance(table, str | PathLike):
        return (
            f"{str(table)!r} is a path or a text, not a table: read the file first, "
            "such as with pyarrow.csv.read_csv, pyarrow.parquet.read_table or "
            "pandas.read_csv; in a shell, slidewise rolling takes files"
        )
    if isinstance(table, list | tuple) and table and _all_mappings(table):
        return (
            "a list of dicts is not a table: pyarrow.Table.from_pylist(rows) makes one "
            "of it, and pandas.DataFrame(rows)"
        )
    kind = f"{type(table).__module__}.{type(table).__qualname__}"
    return (
        f"{kind} is not a table: give a pyarrow Table or RecordBatch, a pandas or "
        "polars DataFrame, a dict of NumPy arrays, or anything with __arrow_c_stream__"
        + (" (pyarrow.table(...) makes one of it)" * isinstance(table, Mapping))
    )


def _all_mappings(rows: Sequence[Any]) -> bool:
    return all(isinstance(row, Mapping) for row in rows)


class _ArrowFrame:
    """pyarrow, and whatever speaks the Arrow C stream interface."""

    def __init__(self, table: pa.Table, restore: Callable[[pa.Table], Any]) -> None:
        self._table = table
        self._restore = restore

    @property
    def names(self) -> Sequence[str]:
        return list(self._table.column_names)

    @property
    def length(self) -> int:
        return int(self._table.num_rows)

    def column(self, name: str) -> pa.Array:
        return _one_array(self._table.column(name))

    def never_null(self, name: str) -> bool:
        return not self._table.schema.field(name).nullable

    def flavour(self, name: str) -> Any:  # noqa: ARG002
        return None

    def append(self, results: Mapping[str, Result]) -> Any:
        table = self._table
        for name, result in results.items():
            table = table.append_column(name, result.array)
        return self._restore(table)

    def make(self, columns: Mapping[str, Result]) -> Any:
        arrays = {name: result.array for name, result in columns.items()}
        return self._restore(pa.table(arrays))


def _as_table(table: pa.Table) -> pa.Table:
    return table


def _as_batch(table: pa.Table) -> pa.RecordBatch:
    arrays = [_one_array(column) for column in table.columns]
    return pa.RecordBatch.from_arrays(arrays, schema=table.schema)


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    plain = not pa.types.is_run_end_encoded(column.type)
    if plain and column.num_chunks == 1 and column.chunk(0).offset == 0:
        return column.chunk(0)  # combine_chunks would copy it
    array = column.combine_chunks()
    if pa.types.is_run_end_encoded(column.type):
        # Its nulls are hidden: the array itself has none.
        return pc.run_end_decode(array)
    if isinstance(array, pa.ChunkedArray):
        raise SpecError(
            "a column of text is too long for one Arrow array: cast it to large_string"
        )
    return array


class _PolarsFrame:
    """A polars DataFrame."""

    def __init__(self, table: Any) -> None:
        self._table = table

    @property
    def names(self) -> Sequence[str]:
        return list(self._table.columns)

    @property
    def length(self) -> int:
        return int(self._table.height)

    def column(self, name: str) -> pa.Array:
        if self._table.schema[name] == sys.modules["polars"].Object:
            raise SpecError(
                f"column {name!r} holds Python objects, which have no Arrow type: cast "
                "it first"
            )
        try:
            return self._table.get_column(name).rechunk().to_arrow()
        except pa.ArrowInvalid as error:
            raise SpecError(
                f"column {name!r} holds {self._table.schema[name]}, which pyarrow "
                f"{pa.__version__} has no type for ({error}): cast it first, whole "
                "numbers to Int64, UInt64 or Decimal(38, 0)"
            ) from error

    def never_null(self, name: str) -> bool:  # noqa: ARG002
        return False

    def flavour(self, name: str) -> Any:
        return self._table.schema[name]

    def append(self, results: Mapping[str, Result]) -> Any:
        return self._table.with_columns(self._series(results))

    def make(self, columns: Mapping[str, Result]) -> Any:
        return sys.modules["polars"].DataFrame(self._series(columns))

    def _series(self, results: Mapping[str, Result]) -> list[Any]:
        polars = sys.modules["polars"]
        columns = []
        for name, result in results.items():
            series = polars.from_arrow(result.array).alias(name)
            if result.keeps and isinstance(result.flavour, polars.DataType):
                series = series.cast(result.flavour)
            columns.append(series)
        return columns


def dense(values: Any) -> Any:
    """A pandas column, or any array of it, that leaves out nothing."""
    sparse = isinstance(values.dtype, sys.modules["pandas"].SparseDtype)
    return values.astype(values.dtype.subtype) if sparse else values


def _refuse_mixed(name: str, values: Any, array: pa.Array | pa.ChunkedArray) -> None:
    """Refuses objects that Arrow would have changed to make them of one type.

    Raises:
        SpecError: Naming the first of them.
    """
    kind = array.type
    if pa.types.is_date(kind):
        what = "date"
    elif pa.types.is_timestamp(kind):
        what = f"time {'without' if kind.tz is None else 'with'} a zone"
    elif pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        what = "bytes"
    else:
        return
    there = array.is_valid().to_pylist()
    for row, (value, is_there) in enumerate(zip(values, there, strict=True)):
        if is_there and not _stays(value, kind):
            raise SpecError(
                f"column {name!r} holds values of several types: that in row {row} "
                f"(counting from 0) is no {what} like the others: {value!r}"
            )


def _stays(value: Any, kind: pa.DataType) -> bool:
    """Whether an object is all there as a value of a type."""
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
        return columns + [level for level in levels if level not in columns]

    @property
    def length(self) -> int:
        return len(self._table)

    def _values(self, name: str) -> Any:
        if name in self._table.columns:
            return self._table[name]
        return self._table.index.get_level_values(name).to_series()

    def column(self, name: str) -> pa.Array:
        values = dense(self._values(name))
        try:
            array = pa.Array.from_pandas(values)
        except (pa.ArrowException, OverflowError, TypeError) as error:
            held = "values of several types, or that Arrow has no type for"
            if values.dtype != object:
                held = f"{values.dtype}, which Arrow has no type for; cast it first"
            raise SpecError(f"column {name!r} holds {held}: {error}") from error
        if values.dtype == object:
            _refuse_mixed(name, values, array)
        return _one_array(array) if isinstance(array, pa.ChunkedArray) else array

    def never_null(self, name: str) -> bool:
        dtype = self._values(name).dtype
        return type(dtype).__module__.startswith("numpy") and dtype.kind in "iub"

    def flavour(self, name: str) -> Any:
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
        columns = {name: self._to_pandas(result) for name, result in results.items()}
        return sys.modules["pandas"].DataFrame(columns, index=index, copy=False)

    def _to_pandas(self, result: Result) -> Any:
        """Values in the flavour of the source: Arrow, masked, or numpy."""
        pandas = sys.modules["pandas"]
        array, flavour = result.array, result.flavour
        if isinstance(flavour, pandas.ArrowDtype):
            return array.to_pandas(types_mapper=pandas.ArrowDtype).array
        if isinstance(flavour, pandas.StringDtype) and is_text(array.type):
            # With the missing value of the column, which is NaN or NA.
            return flavour.__from_arrow__(array.cast(pa.large_string()))
        masked = isinstance(flavour, pandas.api.extensions.ExtensionDtype) and hasattr(
            flavour, "numpy_dtype"
        )
        whole = pa.types.is_integer(array.type) or pa.types.is_boolean(array.type)
        if masked or (whole and result.nullable):
            return array.to_pandas(types_mapper=_masked_dtypes(pandas).get).array
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


# Where DataFrames of Spark are defined; PySpark before 4.0 has one apart for Connect.
_SPARK_MODULES = (
    "pyspark.sql.dataframe",
    "pyspark.sql.connect.dataframe",
    "pyspark.pandas.frame",
)
_LIBRARIES: tuple[tuple[str, str, Callable[[Any], Frame]], ...] = (
    ("pandas", "DataFrame", _PandasFrame),
    ("polars", "DataFrame", _PolarsFrame),
)
