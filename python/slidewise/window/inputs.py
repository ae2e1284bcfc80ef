"""The input columns that the core keeps for the aggregations of a `Window`.

An *input column* is a column of values in one role ("number", "hash", "presence", ...)
and under one set of masks. Aggregations that need the same one share it.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple

from slidewise.aggregations.base import Aggregation
from slidewise.aggregations.call import Call
from slidewise.aggregations.compiled import Compiled, NativeAggregation
from slidewise.aggregations.custom import CustomAggregation, Functions
from slidewise.aggregations.records import RECORDS, kinds
from slidewise.errors import SpecError
from slidewise.window.window_ends import kind_of

__all__ = [
    "UDAF",
    "InputColumn",
    "InputColumns",
    "columns_read",
    "numbered",
]

# The word of the core for user-defined aggregations, and their role with a number.
UDAF = "udaf"
# The roles of columns of any type.
_OF_ANYTHING = ("presence", "any", "hash")


class InputColumn(NamedTuple):
    """A column of values in one role.

    Attributes:
        source: The number of the column.
        role: The use of its values.
        masks: Each the number of a column that must be "true" or "valid".
        paired: The number of the column whose value is lifted together with this
            one's; "time" for the time, or None.
    """

    source: int
    role: str
    masks: tuple[tuple[int, str], ...] = ()
    paired: int | Literal["time"] | None = None


def numbered(columns: tuple[str, ...] | None) -> dict[str, int] | None:
    """The numbers of columns by name; None for single values."""
    return None if columns is None else {name: at for at, name in enumerate(columns)}


def columns_read(agg: Aggregation, places: Mapping[str, int] | None) -> list[int]:
    """The numbers of the columns that an aggregation reads; 0 for single values."""
    names = [agg.of] if agg.by is None else [agg.of, agg.by]
    if agg.record.second == "compared":
        names = [agg.by] if agg.of is None else [agg.by, agg.of]
    if places is None:
        return [0]
    return [0 if name is None else places[name] for name in names]


class InputColumns:
    """Assigns input columns to aggregations; equal ones are shared.

    Attributes:
        columns: The input columns assigned so far, with their numbers.
    """

    def __init__(
        self,
        aggs: tuple[tuple[str | None, Aggregation], ...],
        places: Mapping[str, int] | None,
        dtype: str | None,
        functions: tuple[Functions, ...],
        compiled: tuple[Compiled, ...],
        objects: tuple[int, ...],
        over_objects: Mapping[Aggregation, Functions],
    ) -> None:
        self.columns: dict[InputColumn, int] = {}
        self._functions = functions
        self._object_functions = over_objects
        self._compiled = compiled
        self._all_objects = dtype == "object"
        self._objects = objects
        self._places = places
        self._numbers: set[int] = set()
        for _, agg in aggs:
            self._find_numbers(agg, dtype)

    def _find_numbers(self, agg: Aggregation, dtype: str | None) -> None:
        record = agg.record
        if record.roles[0] == "time":
            return
        if record.roles[0] in _OF_ANYTHING:
            if record.result == "values" and dtype in ("int64", "float64"):
                self._numbers.add(self._source(agg.of))
            return
        if self._holds_objects(agg):
            if record.keeps_objects:
                return
            others = (kind for kind in kinds() if RECORDS[kind].keeps_objects)
            raise SpecError(
                f"{agg!r} computes with numbers: objects can be aggregated by "
                f"{', '.join(others)}"
            )
        self._numbers.update(columns_read(agg, self._places))

    def request(self, agg: Aggregation) -> Call:
        """The call of an aggregation."""
        if agg.ddof >= 2**31:
            raise SpecError(f"ddof={agg.ddof} is too large")
        kind = kind_of(agg)
        of: int | None
        by: int | None = None
        source, other = self._source(agg.of), self._source(agg.by)
        record, objects = agg.record, self._holds_objects(agg)
        if isinstance(agg, CustomAggregation):
            _refuse_seen(agg)
            kind, of = UDAF, self._input(agg, source, self._udaf(agg.functions))
        elif isinstance(agg, NativeAggregation):
            kind = f"native:{self._compiled.index(agg.functions)}"
            of = self._input(agg, source, agg.functions.value)
        elif objects and record.objects is not None:
            kind, of = UDAF, self._over_objects(agg, source)
        elif record.second == "compared":
            by = self._input(agg, other, record.roles[1])
            of = self._selected(agg, source, record.roles[0])
        elif agg.is_over_time:
            of = self._input(agg, source, record.roles[0])
            by = self._input(agg, source, "time", (source, "valid"))
        elif record.second:
            of = self._input(agg, source, record.roles[0], (other, "valid"))
            by = self._input(agg, other, record.roles[1], (source, "valid"))
        elif record.roles[0] == "time":
            of = self._input(agg, 0, "time")
        elif record.of_rows:
            of = self._count(agg, source)
        else:
            if len(record.roles) > 1:
                by = self._input(agg, source, record.roles[1])
            role = self._role(record.roles[0], source, objects)
            of = self._input(agg, source, role)
        return Call(kind, of, by, agg.number)

    def _role(self, role: str, source: int, objects: bool) -> str:
        """The role of a column; one of numbers serves also where any value would."""
        if (role == "any" and source in self._numbers) or (
            role == "key" and not objects
        ):
            return "number"
        return role

    def _udaf(self, functions: Functions) -> str:
        return f"{UDAF}{self._functions.index(functions)}"

    def _over_objects(self, agg: Aggregation, source: int) -> int:
        role = self._udaf(self._object_functions[agg])
        if agg.record.second != "compared":
            return self._input(agg, source, role)
        paired: int | Literal["time"] = "time" if agg.of is None else source
        return self._input(agg, self._source(agg.by), role, paired=paired)

    def _selected(self, agg: Aggregation, source: int, role: str) -> int:
        """The input column that the value of the selected row is taken from."""
        role = "time" if agg.of is None else role
        return self._number(InputColumn(0 if agg.of is None else source, role))

    def _count(self, agg: Aggregation, source: int) -> int | None:
        if agg.of is None:
            if agg.where is None:
                return None
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
        paired: int | Literal["time"] | None = None,
    ) -> int:
        if agg.where is not None:
            masks = (*masks, (self._source(agg.where), "true"))
        return self._number(InputColumn(source, role, masks, paired))

    def _number(self, column: InputColumn) -> int:
        return self.columns.setdefault(column, len(self.columns))

    def _holds_objects(self, agg: Aggregation) -> bool:
        read = columns_read(agg, self._places)
        return self._all_objects or not set(read).isdisjoint(self._objects)

    def _source(self, column: str | None) -> int:
        return 0 if self._places is None or column is None else self._places[column]


def _refuse_seen(agg: CustomAggregation) -> None:
    """Refuses functions that see more than one value."""
    if not agg.seen.plain:
        raise SpecError(
            f"{agg!r} sees times, several columns or the ends of windows, which a "
            "Window does not pass: give it to rolling, hopping or KeyedWindows"
        )
