"""The columns that the core keeps for the aggregations of a `Window`.

A *feed* is a column of the caller's in the role in which it is needed, and under the
conditions under which it counts. Aggregations that need the same share one.
"""

from slidewise.aggregations import BITS, PAIRS, Aggregation, Sketch
from slidewise.aggregations.compiled import Compiled, NativeAggregation
from slidewise.aggregations.custom import CustomAggregation, Functions
from slidewise.aggregations.objects import OBJECT_KINDS, object_functions
from slidewise.errors import SpecError

__all__ = ["NOTHING", "TIME", "Feed", "Feeds", "may_round", "places_read"]

# The column, the role, the conditions (another column that must be "true", or "there"),
# and the column that goes with it: `NOTHING`, or the `TIME`, for most.
Feed = tuple[int, str, tuple[tuple[int, str], ...], int]

NOTHING, TIME = -1, -2
_NONE = -1
# Of which every answer is a number of its own making, so that values may be rounded.
_ROUNDING = (
    *("count", "mean", "median", "geometric_mean", "approx_quantile", "any", "all"),
    *("variance", "stddev", "skewness", "kurtosis", *PAIRS),
)
# Which need no numbers.
_OF_ANYTHING = ("count", "collect", "concat", "collect_distinct", "own")
_COMPARED = ("arg_min", "arg_max")
# Which can do with values that are equal or not.
_KEYED = ("count_distinct", "mode")


def places_read(agg: Aggregation, columns: tuple[str, ...] | None) -> list[int]:
    """The columns that an aggregation computes with, by number.

    Args:
        agg: The aggregation.
        columns: The columns of the window, or None where entries are single values.
    """
    names = [agg.of]
    if agg.kind in PAIRS:
        names = [agg.of, agg.by]
    elif agg.kind in _COMPARED:
        names = [agg.by] if agg.of is None else [agg.by, agg.of]
    if columns is None:
        return [0]
    return [0 if name is None else columns.index(name) for name in names]


def may_round(agg: Aggregation) -> bool:
    """Whether decimals may be read as floats: no answer is one of them, or their sum.

    Example:
        >>> import slidewise as sw
        >>> may_round(sw.variance()), may_round(sw.min())
        (True, False)
    """
    if agg.kind == "quantile":
        return agg.interpolation in ("linear", "midpoint")
    return agg.kind in _ROUNDING


class Feeds:
    """Finds the feeds of aggregations, sharing what can be shared.

    Attributes:
        feeds: Those found so far.
    """

    def __init__(
        self,
        aggs: tuple[tuple[str | None, Aggregation], ...],
        columns: tuple[str, ...] | None,
        dtype: str | None,
        own: tuple[Functions, ...],
        natives: tuple[Compiled, ...] = (),
        objects: tuple[int, ...] = (),
    ) -> None:
        self.feeds: list[Feed] = []
        self._own = own
        self._natives = natives
        self._all_objects = dtype == "object"
        self._objects = objects
        self._columns = columns
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
            if agg.kind in OBJECT_KINDS or agg.kind in _KEYED:
                return
            others = ", ".join((*_KEYED, *OBJECT_KINDS))
            raise SpecError(
                f"{agg!r} computes with numbers: over objects there are count, "
                f"collect, concat, collect_distinct, {others}"
            )
        self._numbers.update(places_read(agg, self._columns))

    def request(self, agg: Aggregation) -> tuple[str, int, int, int]:
        """Kind, feed, feed compared, and the number that goes with it."""
        if agg.ddof >= 2**31:
            raise SpecError(f"ddof={agg.ddof} is too large")
        source = self._source(agg.of)
        if isinstance(agg, CustomAggregation):
            role = f"own{self._own.index(agg.functions)}"
            return (agg.kind, self._feed(agg, source, role), _NONE, agg.ddof)
        if isinstance(agg, NativeAggregation):
            kind = f"native:{self._natives.index(agg.functions)}"
            return (kind, self._feed(agg, source, agg.functions.value), _NONE, 0)
        if isinstance(agg, Sketch):
            return self._sketched(agg, source)
        objects = self._holds_objects(agg)
        if objects and agg.kind in OBJECT_KINDS:
            return ("own", self._ordered(agg, source), _NONE, agg.ddof)
        if agg.kind in _COMPARED:
            by = self._feed(agg, self._source(agg.by), "number")
            return (agg.kind, self._picked(agg, source), by, agg.ddof)
        if agg.kind in PAIRS:
            other = self._source(agg.by)
            of = self._feed(agg, source, "number", (other, "there"))
            by = self._feed(agg, other, "number", (source, "there"))
            return (agg.kind, of, by, agg.ddof)
        if agg.kind == "count":
            return (agg.kind, self._counted(agg, source), _NONE, agg.ddof)
        if objects and agg.kind in _KEYED:
            return (agg.core_kind, self._feed(agg, source, "key"), _NONE, agg.ddof)
        if agg.kind in BITS:
            return (agg.kind, self._feed(agg, source, "int64"), _NONE, 0)
        lists = agg.kind in ("collect", "concat", "collect_distinct")
        kind = "collect" if lists else agg.core_kind
        any_role = lists and source not in self._numbers
        of = self._feed(agg, source, "any" if any_role else "number")
        return (kind, of, _NONE, agg.k or agg.ddof)

    def _sketched(self, agg: Sketch, source: int) -> tuple[str, int, int, int]:
        if not agg.hashed:
            return (agg.core_kind, self._feed(agg, source, "number"), _NONE, 0)
        hashes = self._feed(agg, source, "hash")
        if agg.kind != "heavy_hitters":
            return (agg.core_kind, hashes, _NONE, 0)
        role = "number" if source in self._numbers else "any"
        return (agg.core_kind, self._feed(agg, source, role), hashes, 0)

    def _ordered(self, agg: Aggregation, source: int) -> int:
        role = f"own{self._own.index(object_functions(agg))}"
        if agg.kind not in _COMPARED:
            return self._feed(agg, source, role)
        beside = TIME if agg.of is None else source
        return self._feed(agg, self._source(agg.by), role, beside=beside)

    def _picked(self, agg: Aggregation, source: int) -> int:
        """What `arg_min` and `arg_max` give back: a column as it is, or the time."""
        role = "time" if agg.of is None else "number"
        return self._find((0 if agg.of is None else source, role, (), NOTHING))

    def _counted(self, agg: Aggregation, source: int) -> int:
        if agg.of is None:
            if agg.where is None:
                return _NONE
            source = self._source(agg.where)
            return self._feed(agg, source, "presence")
        plain = source in self._numbers and agg.where is None
        return self._feed(agg, source, "number" if plain else "presence")

    def _feed(
        self,
        agg: Aggregation,
        source: int,
        role: str,
        *masks: tuple[int, str],
        beside: int = NOTHING,
    ) -> int:
        if agg.where is not None:
            masks = (*masks, (self._source(agg.where), "true"))
        return self._find((source, role, masks, beside))

    def _find(self, feed: Feed) -> int:
        if feed not in self.feeds:
            self.feeds.append(feed)
        return self.feeds.index(feed)

    def _holds_objects(self, agg: Aggregation) -> bool:
        read = places_read(agg, self._columns)
        return self._all_objects or not set(read).isdisjoint(self._objects)

    def _source(self, column: str | None) -> int:
        if self._columns is None or column is None:
            return 0
        return self._columns.index(column)
