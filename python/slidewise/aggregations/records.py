"""The facts about each aggregation, which tables, windows, streams and Spark read.

A record stands above the public function that makes the aggregation; `register` enters
it in `RECORDS`. Other modules ask the record for a fact, never for the kind.

Types of values form *families*: "integer", "float", "null" (a column of nulls), "bool",
"duration", "instant" (timestamps, dates, times of day), "text" (also binary),
"fixed_binary", "decimal", "large_decimal" (beyond the digits that sums have), "other".
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, ParamSpec

__all__ = [
    "NUMBERS",
    "ORDERED",
    "RECORDS",
    "Record",
    "arrange",
    "kinds",
    "register",
    "register_like",
]

_P = ParamSpec("_P")

# The forms of results that are the answers themselves, over numbers.
_UNDECODED = (
    *("number", "int64", "count", "sum", "difference", "change", "value"),
    *("average", "square", "deviation"),
)

NUMBERS = ("integer", "float", "null", "bool")
ORDERED = (
    *NUMBERS,
    *("duration", "instant", "text", "fixed_binary", "decimal", "large_decimal"),
)
_ALL = (*ORDERED, "other")


@dataclass(frozen=True, slots=True)
class Record:
    """The facts about one aggregation.

    Attributes:
        kind: Its name, that of its public function.
        group: "" if it has a partial of bounded size and built-in answers, "holistic"
            if it needs all values of a window, "sketch", or "udaf".
        core: Its kind and parameters for the core, a format of the aggregation `agg`;
            "" for its kind.
        numbers: Of a sketch: checks its parameters, and makes those of the core.
        kernel: Its kind for tables, if their inputs are not the values.
        second: The use of its second column, `by`: "compared", "paired", "either"
            (paired, or the times if none is named), "time" (the times), or "".
        with_by: The facts about it if a second column is named, that it may do without.
        of_rows: Whether it takes rows, if no column is named.
        parameters: Its parameters that are not columns; the command line has the first.
        max_ddof: The largest `ddof`: 1, or None.
        takes: The families of values that it takes.
        accepted: Their description, if it is not that of the families.
        between: The families that it takes if an answer may lie between two values.
        reads: The property of the values that it computes with: "number", "order",
            "equality", or "" if it only passes them on.
        inputs: The encodings of its inputs for tables, of its column and of the second.
        roles: The roles of its inputs in a window, likewise.
        result: The form of a result: "number"; "average" and "deviation", in the unit
            of the values, "square", in its square; "value", of the column; "values", a
            list of these; "counts", a list of numbers; "change", a difference of two;
            or one that a single aggregation has.
        scale: The unit of a result over times: "gap", a difference of them; "seconds",
            such a difference as a float; "rate", per `unit`; or "".
        ended: Whether a result depends on the end of its window, too.
        sparse: Whether a result may be null over some values, as over too few.
        needs_row: Whether a result is of the value of the row whose window it is.
        objects: Its functions over Python objects, given `k`; None if it has none.
        finish: Makes its result from the core's list of values, or None.
        grouped: Whether its answers depend on how rows are grouped, within an error.
        mergeable: Whether frames of Spark merge its partials in a segment tree.
        plotted: Whether results are of the size of the values, so that plots show both.
    """

    kind: str
    group: str = ""
    core: str = ""
    numbers: Callable[..., tuple[Any, ...]] | None = None
    kernel: str = ""
    second: str = ""
    with_by: "Record | None" = None
    of_rows: bool = False
    parameters: tuple[str, ...] = ()
    max_ddof: int | None = None
    takes: tuple[str, ...] = _ALL
    accepted: str = ""
    between: tuple[str, ...] = ()
    reads: str = "number"
    inputs: tuple[str, ...] = ("number",)
    roles: tuple[str, ...] = ("number",)
    result: str = "number"
    scale: str = ""
    ended: bool = False
    sparse: bool = False
    needs_row: bool = False
    objects: Callable[[int], Any] | None = None
    finish: Callable[[list[Any]], Any] | None = None
    grouped: bool = False
    mergeable: bool = False
    plotted: bool = False

    @property
    def is_built_in(self) -> bool:
        """Whether it is neither a sketch nor user-defined."""
        return self.group in ("", "holistic")

    @property
    def keeps_objects(self) -> bool:
        """Whether a window can run it over Python objects."""
        return self.objects is not None or self.roles[0] not in ("number", "int64")

    @property
    def undecoded(self) -> bool:
        """Whether a result is the answer of the kernel, if their types are equal."""
        from_core = not self.group and not self.ended and self.second != "compared"
        return from_core and self.result in _UNDECODED


# The records by kind, in the order in which messages list them.
RECORDS: dict[str, Record] = {}


def _registering(make: Callable[_P, Record]) -> Callable[_P, Record]:
    def register(*args: _P.args, **facts: _P.kwargs) -> Record:
        record = make(*args, **facts)
        RECORDS[record.kind] = record
        return record

    return register


# Makes a record and enters it in `RECORDS`: of its facts, or as `replace` of another.
register = _registering(Record)
register_like = _registering(replace)


def arrange(names: Iterable[str]) -> None:
    """Brings `RECORDS` into an order of names; other names are skipped."""
    for name in names:
        if name in RECORDS:
            RECORDS[name] = RECORDS.pop(name)


def kinds(*, every: bool = False) -> tuple[str, ...]:
    """The names of the built-in aggregations that all windows have.

    With `every` also those that need a row, and sketches.
    """
    return tuple(
        name
        for name, record in RECORDS.items()
        if every or (record.is_built_in and not record.needs_row)
    )
