"""`StoreReader`: answers questions from a native store of the rows of a stream.

The store keeps the entries of each key in order of time, and folds a window when it is
asked for. So it serves what can be folded beforehand, over windows of time. It takes in
the rows of a shard once, and follows the batches from then on. Questions need no lock,
and see whole batches.
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import slidewise._core as _core
from slidewise.aggregations import PAIRS
from slidewise.frames.adapt import frame
from slidewise.keyed.horizon import Horizon
from slidewise.keyed.page_store import TIME
from slidewise.keyed.query import Query
from slidewise.keyed.questions import Questions
from slidewise.keyed.reader import Answers, expiry_of, extra_rows, named_by
from slidewise.keyed.shard_state import EVER, ShardState
from slidewise.spec.spec import WindowSpec
from slidewise.table.kernel_call import KernelCall, QueryPoints

__all__ = ["StoreReader"]

# Sets of windows whose calls are kept.
_MOST_CALLS = 64
# Entries go once so much more of the horizon has passed.
_SHARE = 16
_EARLIEST = -(2**63)
# Aggregations whose results are the answers of the kernel, if their types are the same.
_AS_THEY_ARE = {
    *("count", "sum", "mean", "min", "max", "range", "first", "last"),
    *("variance", "stddev", "skewness", "kurtosis", *PAIRS),
    *("product", "sum_of_squares", "min_count", "max_count"),
}


class StoreReader:
    """Answers from the entries of all keys, by a store of its own.

    Args:
        shard: The state, whose rows it takes in.
    """

    def __init__(self, shard: ShardState) -> None:
        self.query = shard.query
        self._by = list(self.query.spec.by)
        self._calls: dict[tuple[WindowSpec, ...], KernelCall] = {}
        self._evicted: int | None = None
        self._kept = shard.kept
        _, call = self.query.request([])
        keys = self._keys(self.query.leaf.empty_table())
        columns, natives = call.inputs.columns, call.inputs.natives
        # Encodings of a column may be one array, which is stored once.
        first = {id(column): at for at, column in reversed([*enumerate(columns)])}
        self._stored = sorted(first.values())
        place = {at: self._stored.index(first[id(c)]) for at, c in enumerate(columns)}
        calls = [
            (kind, place.get(of, -1), place.get(by, -1), number)
            for kind, of, by, number in call.calls
        ]
        stored = [columns[at] for at in self._stored]
        self._store = _core.KeyedStore(calls, keys, stored, natives)
        self._question = self._common_question()
        horizon = Horizon(self.query, shard.kept, None)
        self._longest = max(map(horizon.leaving, horizon.windows(None)), default=0)
        for slot in shard.slots:
            self._insert(self._sorted(shard.rows_between(slot, *EVER)))

    @staticmethod
    def serves(query: Query) -> bool:
        """Whether such a store can answer for a query."""
        return query.folds

    @property
    def nbytes(self) -> int:
        """The bytes of the store."""
        return self._store.nbytes

    def follow(self, shard: ShardState, rows: pa.Table) -> None:
        """Takes in a batch of rows that the shard has accepted."""
        query = self.query
        rows = query.arranged(rows, query.ticks(rows))
        deletes = query.deletes is not None and pc.any(rows[query.deletes]).as_py()
        if len(rows) and (deletes or query.then_by or query.spec.arrival is not None):
            self.reload(shard, rows)
        else:
            self._insert(query.kept(rows))

    def reload(self, shard: ShardState, rows: pa.Table) -> None:
        """Takes the entries of the keys of some rows from the shard again."""
        gone = self._keys(rows)
        slots = [slot for slot, _ in shard.partition_rows(rows)]
        held = self._sorted(
            part for slot in slots for part in shard.rows_between(slot, *EVER)
        )
        if self._by:
            tables = [held.select(self._by), rows.select(self._by)]
            codes = self.query.codes(tables)
            own = pc.is_in(codes.slice(0, len(held)), codes.slice(len(held)))
            held = held.filter(own)
        self._insert(held, (gone, len(rows)))

    def evict(self, watermark: int) -> None:
        """Lets the entries behind the horizon go, once in a while."""
        until = max(watermark - self._kept, _EARLIEST)
        if self._evicted is None or until - self._evicted > self._kept // _SHARE:
            self._store.evict(until)
            self._evicted = until

    def earliest(self, watermark: int | None) -> int:
        """The earliest time at which all rows of the windows of the Spec are kept."""
        if watermark is None:
            return _EARLIEST
        return watermark - self._kept + self._longest

    def ask(self, key: Any, tick: int) -> dict[str, Any] | None:
        """The results over the windows of the Spec; None if they need `answer`.

        They do where they are not numbers as the kernel gives them, or do not fit.
        """
        if self._question is None:
            return None
        return self._store.ask(self._question, key, tick)

    def answer(
        self,
        asked: Questions,
        windows: Sequence[WindowSpec],
        horizon: Horizon,
        *,
        expiry: bool,
    ) -> Answers:
        """As in `Reader`. Cost: O(log n) per question, and the ends of its windows."""
        # A call notes whom its messages name.
        call = copy(self._call(tuple(windows)))
        call.name_row = named_by(asked, self.query)
        keys = self._keys(asked.keys)
        answers, beyond = self._store.query(
            keys, asked.ticks, call.spans, self._inputs_of_extra_rows(asked), False
        )
        points = QueryPoints(asked.ticks, None, None, None, "query")
        results = call.decode(answers, beyond, points)
        until = None
        if expiry:
            extra = asked.plus is not None
            earliest = self._store.first_times(keys, asked.ticks, call.spans, extra)
            until = [
                expiry_of(pa.array(first), window, horizon)
                for first, window in zip(earliest, windows, strict=True)
            ]
        return Answers(results, until)

    def _keys(self, rows: pa.Table) -> list[pa.Array]:
        return [rows.column(name).combine_chunks() for name in self._by]

    def _sorted(self, tables: Any) -> pa.Table:
        """Rows of the state in one table, those of equal time in the query's order."""
        rows = pa.concat_tables([self.query.leaf.empty_table(), *tables])
        return self.query.sort(rows.combine_chunks())

    def _insert(
        self, rows: pa.Table, gone: tuple[list[pa.Array], int] = ([], 0)
    ) -> None:
        """Inserts rows of the state, after the entries of some keys have gone."""
        ticks = rows.column(TIME).combine_chunks()
        self._store.replace_keys(gone, self._keys(rows), ticks, self._inputs(rows))

    def _inputs(self, rows: pa.Table) -> list[pa.Array]:
        """The inputs of the kernel, in the order of rows of the state."""
        call = KernelCall(frame(self.query.timed(rows)), self.query.spec_of_points)
        return [call.inputs.columns[at] for at in self._stored]

    def _inputs_of_extra_rows(self, asked: Questions) -> list[pa.Array] | None:
        if asked.plus is None:
            return None
        return self._inputs(extra_rows(asked, self.query))

    def _call(self, windows: tuple[WindowSpec, ...]) -> KernelCall:
        """The call of some windows, bound to no rows."""
        call = self._calls.get(windows)
        if call is None:
            table = self.query.timed(self.query.leaf.empty_table())
            spec = replace(self.query.spec_of_points, windows=windows, empty=False)
            call = KernelCall(frame(table), spec)
            if len(self._calls) >= _MOST_CALLS:
                self._calls.clear()
            self._calls[windows] = call
        return call

    def _common_question(self) -> _core.Question | None:
        """The windows of the Spec, for `ask`; None if results must be decoded."""
        spec = self.query.spec
        if spec.is_hopping or spec.min_rows or spec.overflow != "raise":
            return None
        call = self._call(spec.windows)
        calls, names = call.calls, {}
        answers, _ = self._store.query(
            self._keys(self.query.leaf.empty_table()),
            pa.array([], pa.int64()),
            call.spans,
            None,
            False,
        )
        results = copy(call).decode(answers, [], None)[0]
        for (name, agg), plan in zip(spec.aggs, call.plans, strict=True):
            at = calls.index(plan.calls[0])
            kind = pa.array(answers[0][at]).type
            plain = len(plan.calls) == 1 and agg.kind in _AS_THEY_ARE
            if not plain or results[name].array.type != kind or at in names:
                return None
            names[at] = name
        of_windows = [
            [f"{names[at]}_{window.label}" for at in range(len(calls))]
            for window in spec.windows
        ]
        return _core.Question(call.spans, of_windows)
