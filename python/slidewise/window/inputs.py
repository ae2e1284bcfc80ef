"""The input columns that the core keeps for the aggregations of a `Window`.

An *input column* is a column of values in one role ("number", "hash", "presence", ...)
and under one set of masks. Aggregations that need the same one share it.
"""

from collections.abc import Mapping

from slidewise.aggregations.base import BITS, PAIRS, Aggregation
from slidewise.aggregations.compiled import Compiled, NativeAggregation
from slidewise.aggregations.custom import CustomAggregation, Functions
from slidewise.aggregations.objects import OBJECT_KINDS
from slidewise.aggregations.sketches import Sketch
from slidewise.errors import SpecError

__all__ = [
    "NOTHING",
    "TIME",
    "InputColumn",
    "InputColumns",
    "columns_read",
    "keeps_objects",
]

# The number of the column; its role; its masks (each the number of a column that must
# be "true" or "there"); its paired column: a number, `NOTHING` or `TIME`.
InputColumn = tuple[int, str, tuple[tuple[int, str], ...], int]

NOTHING, TIME = -1, -2
_NONE = -1
# Kinds that take values of any type.
_OF_ANYTHING = ("count", "collect", "concat", "collect_distinct", "own")
_COMPARED = ("arg_min", "arg_max")
# Kinds that only test values for equality.
_EQUALITY = ("count_distinct", "mode")


def columns_read(agg: Aggregation, columns: tuple[str, ...] | None) -> list[int]:
    """The numbers of the columns that an aggregation reads; 0 for single values."""
    names = [agg.of]
    if agg.kind in PAIRS:
        names = [agg.of, agg.by]
    elif agg.kind in _COMPARED:
        names = [agg.by] if agg.of is None else [agg.by, agg.of]
    if columns is None:
        return [0]
    return [0 if name is None else columns.index(name) for name in names]


def keeps_objects(agg: Aggregation) -> bool:
    """Whether an aggregation of a window can run over Python objects.

    Example:
        >>> import slidewise as sw
        >>> keeps_objects(sw.max()), keeps_objects(sw.variance())
        (True, False)
    """
    hashed = isinstance(agg, Sketch) and agg.hashed
    kinds = (*_OF_ANYTHING, *_EQUALITY, *OBJECT_KINDS)
    return hashed or isinstance(agg, NativeAggregation) or agg.kind in kinds


class InputColumns:
    """Assigns input columns to aggregations; equal ones are shared.

    Attributes:
        columns: The input columns assigned so far.
    """

    def __init__(
        self,
        aggs: tuple[tuple[str | None, Aggregation], ...],
        columns: tuple[str, ...] | None,
        dtype: str | None,
        functions: tuple[Functions, ...],
        compiled: tuple[Compiled, ...],
        objects: tuple[int, ...],
        over_objects: Mapping[Aggregation, Functions],
    ) -> None:
        self.columns: list[InputColumn] = []
        self._functions = functions
        self._object_functions = over_objects
        self._compiled = compiled
        self._all_objects = dtype == "object"
        self._objects = objects
        self._names = columns
        self._numbers: set[int] = set()
        for _, agg in aggs:
            self._find_numbers(agg, dtype)

    def _find_numbers(self, agg: Aggregation, dtype: str | None) -> None:
        typed = isinstance(agg, NativeAggregation)
        if typed or (isinstance(agg, Sketch) and agg.hashed):
            return
        if agg.kind in _OF_ANYTHING:
            if agg.kind == "collect" and dtype in ("int64", "float64"):
                self._numbers.add(self._source(agg.of))
            return
        if self._holds_objects(agg):
            if keeps_objects(agg):
                return
            others = ", ".join((*_EQUALITY, *OBJECT_KINDS))
            raise SpecError(
                f"{agg!r} computes with numbers: objects can be aggregated by count, "
                f"collect, concat, collect_distinct, {others}"
            )
        self._numbers.update(columns_read(agg, self._names))

    def request(self, agg: Aggregation) -> tuple[str, int, int, int]:
        """Kind, input column, compared input column (-1: none), and ddof or k."""
        if agg.ddof >= 2**31:
            raise SpecError(f"ddof={agg.ddof} is too large")
        source = self._source(agg.of)
        if isinstance(agg, CustomAggregation):
            role = f"own{self._functions.index(agg.functions)}"
            return (agg.kind, self._input(agg, source, role), _NONE, agg.ddof)
        if isinstance(agg, NativeAggregation):
            kind = f"native:{self._compiled.index(agg.functions)}"
            return (kind, self._input(agg, source, agg.functions.value), _NONE, 0)
        if isinstance(agg, Sketch):
            return self._sketch(agg, source)
        objects = self._holds_objects(agg)
        if objects and agg.kind in OBJECT_KINDS:
            return ("own", self._over_objects(agg, source), _NONE, agg.ddof)
        if agg.kind in _COMPARED:
            by = self._input(agg, self._source(agg.by), "number")
            return (agg.kind, self._selected(agg, source), by, agg.ddof)
        if agg.kind in PAIRS:
            other = self._source(agg.by)
            of = self._input(agg, source, "number", (other, "there"))
            by = self._input(agg, other, "number", (source, "there"))
            return (agg.kind, of, by, agg.ddof)
        if agg.kind == "count":
            return (agg.kind, self._count(agg, source), _NONE, agg.ddof)
        if objects and agg.kind in _EQUALITY:
            return (agg.core_kind, self._input(agg, source, "key"), _NONE, agg.ddof)
        if agg.kind in BITS:
            return (agg.kind, self._input(agg, source, "int64"), _NONE, 0)
        is_list = agg.kind in ("collect", "concat", "collect_distinct")
        kind = "collect" if is_list else agg.core_kind
        any_role = is_list and source not in self._numbers
        of = self._input(agg, source, "any" if any_role else "number")
        return (kind, of, _NONE, agg.k or agg.ddof)

    def _sketch(self, agg: Sketch, source: int) -> tuple[str, int, int, int]:
        if not agg.hashed:
            return (agg.core_kind, self._input(agg, source, "number"), _NONE, 0)
        hashes = self._input(agg, source, "hash")
        if agg.kind != "heavy_hitters":
            return (agg.core_kind, hashes, _NONE, 0)
        role = "number" if source in self._numbers else "any"
        return (agg.core_kind, self._input(agg, source, role), hashes, 0)

    def _over_objects(self, agg: Aggregation, source: int) -> int:
        role = f"own{self._functions.index(self._object_functions[agg])}"
        if agg.kind not in _COMPARED:
            return self._input(agg, source, role)
        paired = TIME if agg.of is None else source
        return self._input(agg, self._source(agg.by), role, paired=paired)

    def _selected(self, agg: Aggregation, source: int) -> int:
        """The input column that `arg_min` and `arg_max` return a value of."""
        role = "time" if agg.of is None else "number"
        return self._number((0 if agg.of is None else source, role, (), NOTHING))

    def _count(self, agg: Aggregation, source: int) -> int:
        if agg.of is None:
            if agg.where is None:
                return _NONE
            source = self._source(agg.where)
            return self._input(agg, source, "presence")
        plain = source in self._numbers and agg.where is None
        return self._input(agg, source, "number" if plain else "presence")

    def _input(
        self,
        agg: Aggregation,
        source: int,
        role: str,
        *masks: tuple[int, str],
        paired: int = NOTHING,
    ) -> int:
        if agg.where is not None:
            masks = (*masks, (self._source(agg.where), "true"))
        return self._number((source, role, masks, paired))

    def _number(self, column: InputColumn) -> int:
        if column not in self.columns:
            self.columns.append(column)
        return self.columns.index(column)

    def _holds_objects(self, agg: Aggregation) -> bool:
        read = columns_read(agg, self._names)
        return self._all_objects or not set(read).isdisjoint(self._objects)

    def _source(self, column: str | None) -> int:
        if self._names is None or column is None:
            return 0
        return self._names.index(column)
