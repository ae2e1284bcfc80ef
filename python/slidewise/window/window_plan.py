"""`WindowPlan`: what a window computes, and of which input columns.

It maps the aggregations to *input columns* (see `inputs`), which the core keeps. It
also makes the clock of a window and the header of its snapshots, which
`snapshot_header` reads.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from slidewise.aggregations.base import Aggregation
from slidewise.aggregations.call import Call
from slidewise.aggregations.compiled import Compiled, NativeAggregation
from slidewise.aggregations.custom import CustomAggregation, Functions
from slidewise.aggregations.registry import UserDefinedAggregation
from slidewise.aggregations.sketches import Sketch
from slidewise.errors import SnapshotError
from slidewise.spec.durations import Length
from slidewise.spec.windows.base import QueryTicks
from slidewise.window.inputs import InputColumn
from slidewise.window.queries import Queries, Query, query_ticks, record_of
from slidewise.window.time_codec import Clock, clock_for, identify
from slidewise.window.window_ends import check_spans, result_at_end, span_options

__all__ = ["ALONE", "HEADER_LIMIT", "WindowPlan", "custom_functions"]

# Bytes of a header, at most. The limit bounds the memory for parsing it as a whole.
HEADER_LIMIT = 1 << 15
# The parameters of which an aggregation has one, which ends its record in a header.
ALONE = ("unit", "top", "edges")


@dataclass(frozen=True, slots=True)
class WindowPlan:
    """The plan of a window, made by `make_plan`.

    Attributes:
        aggs: Names and aggregations; one without a name gives its bare result.
        algorithm: The value of `algorithm=`: a name, or "auto".
        options: Parameters of the algorithm that the user gave, without `latency=`.
        prefer: The value of `prefer=`.
        begins: The initial algorithm without float columns, and with some. They are
            equal unless `algorithm="auto"`.
        ties: "combine" or "keep".
        dtype: The type that `dtype=` names, or None.
        nan: "propagate", "skip" or "raise".
        last: The length that the window evicts down to by itself, or None.
        granularity: The multiple that times are rounded down to, or None.
        columns: The names of the columns if values are mappings, or None.
        inputs: The input columns that the core keeps.
        requests: Of every aggregation, its call of the core.
        functions: Those of the custom aggregations, each once; then those of built-in
            aggregations over objects.
        natives: The functions of the compiled aggregations, each once.
        ranges: The ranges of a shared window, or None for a window.
        latency: The value of `latency=`, or None.
        shared_queries: The queries of a shared window, or None.
        flags: The input columns that are not null in entries with each flag.
        objects: The columns that hold objects because their first value is one, in the
            order in which these came.
    """

    aggs: tuple[tuple[str | None, Aggregation], ...]
    algorithm: str
    options: tuple[tuple[str, int], ...]
    prefer: str | None
    begins: tuple[str, str]
    ties: str
    dtype: str | None
    nan: str
    last: Length | None
    granularity: Length | None
    columns: tuple[str, ...] | None
    inputs: tuple[InputColumn, ...]
    requests: tuple[Call, ...]
    functions: tuple[Functions, ...]
    natives: tuple[Compiled, ...] = ()
    ranges: tuple[Length, ...] | None = None
    objects: tuple[int, ...] = ()
    latency: Length | None = None
    shared_queries: Queries | None = None
    flags: tuple[int, ...] = ()

    def initial_algorithm(self, dtypes: Sequence[str | None]) -> str:
        """The initial algorithm of a window with columns of these types."""
        return self.begins[_has_floats(dtypes)]

    @property
    def names(self) -> tuple[str, ...] | None:
        """The names of the results; None for one bare result."""
        names = tuple(name for name, _ in self.aggs if name is not None)
        return names if len(names) == len(self.aggs) else None

    @property
    def timed(self) -> tuple[bool, ...]:
        """The results that are times."""
        times = ["time" in (column.role, column.paired) for column in self.inputs]
        return tuple(
            agg.record.second == "compared" and call.of is not None and times[call.of]
            for (_, agg), call in zip(self.aggs, self.requests, strict=True)
        )

    @property
    def clocked(self) -> tuple[bool, ...]:
        """The results in ticks, or per tick, which `in_units` converts."""
        return tuple(bool(agg.scale) for _, agg in self.aggs)

    @property
    def ended(self) -> tuple[bool, ...]:
        """The results that depend on the end of the window, which `at_end` makes."""
        return tuple(agg.is_ended for _, agg in self.aggs)

    def at_end(self, at: int, clock: Clock, parts: list[Any], end: int) -> Any:
        """A result at the end of a window, from the core's parts; times are ticks."""
        return result_at_end(self.aggs[at][1], clock, parts, end)

    def in_units(self, at: int, clock: Clock, ticks: float) -> Any:
        """A result in units of time, from one in ticks, or per tick."""
        agg = self.aggs[at][1]
        return clock.scaled(ticks, agg.scale, agg.unit)

    @property
    def custom(self) -> tuple[Functions | Compiled, ...]:
        """The functions of custom and compiled aggregations, not of built-in ones."""
        return (*custom_functions(agg for _, agg in self.aggs), *self.natives)

    @property
    def finished(self) -> tuple[bool, ...]:
        """The results that are lists, which `finish` postprocesses."""
        return tuple(agg.record.finish is not None for _, agg in self.aggs)

    def finish(self, at: int, values: list[Any]) -> Any:
        """The result of an aggregation, made from the core's list of values."""
        finish = self.aggs[at][1].record.finish
        assert finish is not None, "only those are finished that need it"
        made = finish(values)
        top = self.aggs[at][1].top
        return made if top is None else made[:top]

    def lower_native(self, at: int, record: bytes) -> Any:
        """The result of a compiled aggregation, from its record."""
        agg = self.aggs[at][1]
        assert isinstance(agg, NativeAggregation), "only those have records"
        return agg.functions.lowered(record)

    @property
    def distinct_ranges(self) -> tuple[Length, ...]:
        """The ranges, each length once."""
        return tuple(_by_length(self.ranges or ()).values())

    @property
    def range_count(self) -> int:
        """The number of distinct ranges of a shared window; 0 for a window."""
        return len(self.distinct_ranges)

    @property
    def is_shared(self) -> bool:
        """Whether the window has several ranges or queries."""
        return self.ranges is not None or self.shared_queries is not None

    @property
    def places(self) -> tuple[int, ...]:
        """The index of each range among the distinct ones."""
        ranges = self.ranges or ()
        indices = {key: index for index, key in enumerate(_by_length(ranges))}
        return tuple(indices[length.kind, length.amount] for length in ranges)

    @property
    def queries(self) -> tuple[Query | None, ...]:
        """The queries by index; None where one was dropped."""
        return () if self.shared_queries is None else self.shared_queries.each

    @property
    def query_count(self) -> int | None:
        """The number of queries, dropped ones included; None for windows without."""
        return None if self.shared_queries is None else len(self.shared_queries.each)

    def with_queries(self, each: tuple[Query | None, ...]) -> "WindowPlan":
        """The same plan with other queries."""
        assert self.shared_queries is not None, "only windows with queries change them"
        return replace(self, shared_queries=replace(self.shared_queries, each=each))

    def with_query(self, query: object) -> "WindowPlan":
        """The same plan with one more query.

        Raises:
            SpecError: If it is not a query, or does not suit the window.
        """
        assert self.shared_queries is not None, "only windows with queries change them"
        return replace(self, shared_queries=self.shared_queries.plus(query))

    def query_ticks(self, query: Query, clock: Clock) -> QueryTicks:
        """The ticks of a query, for the core.

        Raises:
            SpecError: If its lengths do not suit times of that kind.
        """
        assert self.shared_queries is not None, "only windows with queries have some"
        return query_ticks(query, clock, self.shared_queries.flags)

    @property
    def rows(self) -> int | None:
        """The `n` of `last=rows(n)`, or None."""
        if self.last is None or self.last.kind != "rows":
            return None
        return self.last.amount

    def label(self, at: int) -> str:
        """An aggregation, for messages."""
        name, agg = self.aggs[at]
        return repr(agg) if name is None else f"{name!r}, {agg!r},"

    def clock(self, time: object) -> Clock:
        """The clock of a window whose first entry has this time."""
        return self.clock_for(*identify(time))

    def clock_for(self, kind: str, unit: str, zone: Any) -> Clock:
        """The clock for times of this kind."""
        for _, agg in self.aggs:
            check_spans(agg, kind, unit)
        last = None if self.rows is not None else self.last
        queries = self.shared_queries
        return clock_for(
            kind,
            unit,
            zone,
            last,
            self.granularity,
            self.distinct_ranges,
            self.latency,
            None if queries is None else queries.schedule(kind, unit),
        )

    def header(
        self,
        dtypes: Sequence[str | None],
        clock: Clock | None,
        migrated: bool = False,
    ) -> bytes:
        """The plan as canonical JSON, with the types of the columns, and the clock.

        Raises:
            SnapshotError: If it is too long, or the zone of the times has no name.
        """
        header: dict[str, Any] = {
            "aggs": [[name, *self._record(agg)] for name, agg in self.aggs],
            "algorithm": self.algorithm,
            "clock": None if clock is None else clock.record(),
            "dtype": self.dtype,
            "dtypes": list(dtypes),
            "granularity": _length_record(self.granularity),
            "last": _length_record(self.last),
            "nan": self.nan,
            "options": [list(option) for option in self.options],
            "prefer": self.prefer,
            "ties": self.ties,
        }
        if self.latency is not None:
            header["latency"] = _length_record(self.latency)
        if self.objects:
            header["objects"] = list(self.objects)
        if self.algorithm == "auto":
            header["begins"] = list(self.begins)
            header["runs"] = "fiba" if migrated else self.initial_algorithm(dtypes)
        if self.ranges is not None:
            header["ranges"] = [_length_record(length) for length in self.ranges]
        if self.shared_queries is not None:
            header["queries"] = record_of(self.shared_queries)
        if self.custom:
            header["udafs"] = [_reference(functions) for functions in self.custom]
        text = json.dumps(header, sort_keys=True, separators=(",", ":"))
        if len(text) > HEADER_LIMIT:
            raise SnapshotError(
                f"a window of {len(self.aggs)} aggregations is too large for a "
                "snapshot: use several windows"
            )
        return text.encode()

    def _record(self, agg: Aggregation) -> list[Any]:
        if isinstance(agg, UserDefinedAggregation):
            number = self.custom.index(agg.functions)
            return ["udaf", agg.of, None, number, agg.where, 0]
        record = [agg.kind, agg.of, agg.by, agg.ddof, agg.where, agg.k]
        if isinstance(agg, Sketch):
            return [*record, agg.parameters]
        if options := span_options(agg):
            return [*record, *options]
        for name in ALONE:
            if name in agg.record.parameters:
                return [*record, getattr(agg, name)]
        return (
            [*record, agg.q, agg.interpolation]
            if "q" in agg.record.parameters
            else record
        )


def _by_length(ranges: Iterable[Length]) -> dict[tuple[str, int], Length]:
    return {(length.kind, length.amount): length for length in ranges}


def custom_functions(aggs: Iterable[Aggregation]) -> tuple[Functions, ...]:
    """The functions of custom aggregations, each once."""
    custom = (agg.functions for agg in aggs if isinstance(agg, CustomAggregation))
    return tuple(dict.fromkeys(custom))


def _has_floats(dtypes: Sequence[str | None]) -> bool:
    """Whether any of these columns holds float64, or int64 that may widen to it."""
    return any(dtype is not None and dtype.startswith("float64") for dtype in dtypes)


def _reference(functions: Functions | Compiled) -> Any:
    """A custom aggregation in a header: its name, and of a compiled one its layout."""
    if isinstance(functions, Compiled):
        return [functions.name, functions.form]
    return functions.name


def _length_record(length: Length | None) -> list[object] | None:
    return None if length is None else [length.kind, length.amount, length.label]
