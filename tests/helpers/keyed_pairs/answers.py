"""The answers that are due, by the table engine and in plain Python.

The model lists the rows of each window, in order. `sw.rolling` aggregates these lists,
each as a key of its own; for few rows `values` does, too. If the lists would be too
long together, `sw.rolling` answers all rows of the whole table at once, or only some
answers are compared.
"""

from typing import Any

import pyarrow as pa

import slidewise as sw
from keyed_pairs.factors import CATALOGUE, HOPPING
from keyed_pairs.model import Due, Model
from keyed_pairs.plan import Plan, of_ticks, plain
from keyed_pairs.stream import Row, Stream
from keyed_pairs.values import UNKNOWN, ApproximateQuantiles, answer

# The most rows of all lists of a step, and the most rows for which answers are also
# computed in Python.
_MAX_WINDOW_ROWS = 300_000
_MAX_RECALCULATED = 4_000
_ALL = sw.rows(1_000_000)
_LIST = "__list"
_INEXACT = "approx_quantile"

ENDS = ("window_start", "window_end")
Values = dict[str, Any]


class Answers:
    """Computes the answers that are due.

    Attributes:
        types: The types of the result columns, as far as they are known.
    """

    def __init__(self, plan: Plan, stream: Stream, model: Model) -> None:
        self.plan, self.stream, self.model = plan, stream, model
        self.types: dict[str, pa.DataType] = {}
        self.aggs = plan.request["aggs"]
        self.spans = plan.spans or [("grid", 0, "")]
        self._python: dict[int, dict[str, Any]] = {}

    def columns(self) -> list[str]:
        """The names of the result columns."""
        if self.plan.case["windows"] in HOPPING:
            return list(self.aggs)
        return [f"{n}_{label}" for _, _, label in self.spans for n in self.aggs]

    def of(self, due: list[Due]) -> list[tuple[Values, Values]]:
        """The values of the columns of each answer, by the table and by Python."""
        nothing = dict.fromkeys(self.columns())
        found: list[tuple[Values, Values]] = [(nothing, {}) for _ in due]
        checked = [at for at, one in enumerate(due) if not one.late]
        if not checked:
            return found
        long = self._length([due[at] for at in checked])
        if long > _MAX_WINDOW_ROWS and self._by_rolling():
            whole = self._whole([due[at] for at in checked])
            for at, values in zip(checked, whole, strict=True):
                found[at] = (values, {})
            return found
        if long > _MAX_WINDOW_ROWS:
            unknown = dict.fromkeys(self.columns(), UNKNOWN)
            for at in checked:
                found[at] = (unknown, {})
            each = max(1, len(checked) * _MAX_WINDOW_ROWS // long)
            checked = sorted(self.plan.random.sample(checked, each))
        lists = [
            [self.model.members(due[at], span) for span in self.spans] for at in checked
        ]
        tables = self._tables(lists)
        size = sum(len(rows) for windows in lists for rows in windows)
        for number, at in enumerate(checked):
            second = self._plainly(lists[number], few=size <= _MAX_RECALCULATED)
            # Over many values, sketches of another grouping may answer differently.
            inexact = {
                n: v for n, v in second.items() if isinstance(v, ApproximateQuantiles)
            }
            found[at] = ({**tables[number], **inexact}, second)
        return found

    def _length(self, due: list[Due]) -> int:
        return sum(
            high - low
            for one in due
            for low, high in (self.model.span(one, span) for span in self.spans)
        )

    def _by_rolling(self) -> bool:
        """Whether one call of `rolling` over the whole table gives the same answers."""
        case = self.plan.case
        counted = any(kind == "rows" for kind, _, _ in self.spans)
        inexact = any(agg.kind == _INEXACT for agg in self.aggs.values())
        if inexact or case["emit"] not in ("final", "arrival"):
            return False
        return case["emit"] == "final" or not (case["arrival"] or counted)

    def _whole(self, due: list[Due]) -> list[Values]:
        model = self.model
        rows = [row for key in model.held for row in model.ordered(key).rows]
        table = self._taken(rows)
        request = {**self.plan.request, "arrival": None}
        if self.plan.case["emit"] == "arrival":
            at = self._taken([one.row for one in due if one.row is not None])
            answered = sw.rolling(table, at=at, **request)
        else:
            answered = sw.rolling(table, **request)
            places = {row.at: place for place, row in enumerate(rows)}
            answered = answered.take([places[one.name[0]] for one in due])
        return self._named(answered, self.columns())

    def _tables(self, lists: list[list[list[Row]]]) -> list[Values]:
        """Answers over lists of rows, each of which is a key of its own."""
        rows, numbers = [], []
        flat = [members for windows in lists for members in windows]
        for number, members in enumerate(flat):
            rows += members
            numbers += [number] * len(members)
        table = self._taken(rows).append_column(_LIST, pa.array(numbers, pa.int64()))
        ever = max((row.tick for row in self.stream.rows), default=0)
        at = pa.table(
            {
                "t": of_ticks([ever] * len(flat), self.plan.kind),
                _LIST: pa.array(range(len(flat)), pa.int64()),
            }
        )
        request = {name: self.plan.request[name] for name in ("nan", "min_rows")}
        answered = sw.rolling(
            table, on="t", by=_LIST, windows=_ALL, aggs=self.aggs, at=at, **request
        )
        names = [f"{name}_{_ALL.n}rows" for name in self.aggs]
        values = self._named(answered, names, list(self.aggs))
        each = len(self.spans)
        grouped = [values[at : at + each] for at in range(0, len(values), each)]
        return [self._labelled(windows) for windows in grouped]

    def _labelled(self, windows: list[Values]) -> Values:
        if self.plan.case["windows"] in HOPPING:
            return windows[0]
        found = {}
        for (_, _, label), values in zip(self.spans, windows, strict=True):
            found |= {f"{name}_{label}": value for name, value in values.items()}
        return found

    def _named(
        self, table: pa.Table, names: list[str], called: list[str] | None = None
    ) -> list[Values]:
        called = called or names
        for name, call in zip(names, called, strict=True):
            self.types[call] = table[name].type
        columns = [plain(table[name]) for name in names]
        return [
            dict(zip(called, row, strict=True)) for row in zip(*columns, strict=True)
        ]

    def _taken(self, rows: list[Row]) -> pa.Table:
        tables = pa.concat_tables(self.stream.tables)
        return tables.take(pa.array([row.at for row in rows], pa.int64()))

    def _plainly(self, windows: list[list[Row]], *, few: bool) -> Values:
        """Answers in Python: all of them over few rows, else only quantiles."""
        request = self.plan.request
        inexact = [n for n, agg in self.aggs.items() if few or agg.kind == _INEXACT]
        found = []
        for rows in windows:
            values = [self._values(row) for row in rows] if inexact else []
            found.append(
                {
                    name: answer(CATALOGUE[name], values, *map(request.get, _RULES))
                    for name in inexact
                }
            )
        return self._labelled(found)

    def _values(self, row: Row) -> dict[str, Any]:
        if row.at not in self._python:
            first = len(self._python)
            table = pa.concat_tables(self.stream.tables).slice(first)
            columns = [plain(column) for column in table.columns]
            for at, values in enumerate(zip(*columns, strict=True)):
                self._python[first + at] = dict(
                    zip(table.column_names, values, strict=True)
                )
        return self._python[row.at]

    def type_of_ends(self) -> pa.DataType:
        """The type of `window_start` and `window_end`, as `hopping` has it."""
        request = {**self.plan.request, "aggs": {"n": sw.count()}}
        rows = pa.concat_tables(self.stream.tables).slice(0, 1)
        kinds = {sw.hopping(rows, **request)[name].type for name in ENDS}
        assert len(kinds) == 1, kinds
        return kinds.pop()

    def type_of(self, column: str) -> pa.DataType | None:
        """The type of a result column."""
        if column in self.types:
            return self.types[column]
        for _, _, label in self.spans:
            name = column.removesuffix(f"_{label}")
            if name != column and name in self.types:
                return self.types[name]
        return None


_RULES = ("nan", "min_rows")
