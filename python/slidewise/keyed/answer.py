"""Answers from the entries of a stream, by folds, or from its rows, by the kernel.

`answering` is the only place that asks which of these apply. Both kinds of answers give
the same results, and offer the same methods.
"""

import pyarrow as pa
import pyarrow.compute as pc

import slidewise._core as _core
from slidewise.frames.base import Result, one_array
from slidewise.keyed.columns import LATEST, NUMBER, TIME
from slidewise.keyed.hop_windows import answer_windows, naming_windows
from slidewise.keyed.horizon import Horizon
from slidewise.keyed.query import KeyedQuery
from slidewise.keyed.reader import FoldReader
from slidewise.keyed.shard import Shard
from slidewise.table.arrays import row_numbers

__all__ = ["FromEntries", "FromRows", "answering"]


def answering(shard: Shard, *, among_peers: bool = False) -> "FromEntries | FromRows":
    """What answers for a state.

    Args:
        shard: The state.
        among_peers: Whether each row of the table is answered: with `ties="rows"` or
            `exclude=`, its window has some of its peers, which have one time in the
            index.
    """
    query = shard.query
    folds = query.folds and not (among_peers and query.divides_peers)
    return FromEntries(shard) if folds else FromRows(shard)


class FromEntries:
    """Answers that are folds of the entries in the index.

    Attributes:
        needs_order: Whether `due` needs its rows in order of time.
    """

    needs_order = False

    def __init__(self, shard: Shard) -> None:
        self._shard, self._query = shard, shard.query
        self._reader: FoldReader | None = None

    def reader(self) -> FoldReader | None:
        """The reader that answers queries without the lock, if there is one."""
        if self._reader is None or self._reader.index is not self._shard.index:
            self._reader = FoldReader(self._shard)
        return self._reader

    def drop_decoded(self) -> None:
        """Drops decoded pages, if few of them are read again."""
        self._shard.pages.trim(0)

    def at(self, points: pa.Table) -> list[pa.Array]:
        """The results at keys, and times in `TIME`, window by window."""
        shard, ticks = self._shard, one_array(points.column(TIME))
        name_row = self._query.naming(points)
        return shard.index.results(points, ticks, shard.windows, name_row)

    def of_windows(self, query: KeyedQuery, windows: pa.Table) -> dict[str, Result]:
        """The results of hopping windows, given by keys and stops.

        Args:
            query: The query of the windows, one of the parts.
            windows: The windows, with their stops in `TIME`.
        """
        ticks = pc.subtract(windows.column(TIME), 1).combine_chunks()
        spans = Horizon(query, self._shard.retention, None).windows(None)
        name_row = naming_windows(query, windows)
        results: dict[str, Result]
        ends = query.grid.ends(windows.column(TIME).combine_chunks())
        bounds = query.grid.starts(ends), ends
        (results,) = self._shard.index.answers(
            windows, ticks, spans, name_row, bounds=bounds
        )
        return results

    def due(self, rows: pa.Table) -> pa.Table:
        """Rows that the watermark has passed, with their results."""
        return self._query.answered(rows, self.at(rows))

    def arrive(self, rows: pa.Table) -> list[pa.Array]:
        """Inserts the rows of a batch; gives their results as of arrival."""
        query, shard = self._query, self._shard
        if query.spec.exclude:
            return FromRows(shard).arrive(rows)
        if query.spec.arrival is None:
            shard.append(query.sort_batch(rows), pending=False)
            shard.apply()
            return self.at(rows)
        places = row_numbers(len(rows)).cast(pa.int64())
        batch = query.sort_batch(rows.append_column(NUMBER, places))
        places = batch.column(NUMBER).combine_chunks()
        found = shard.apply_answering(batch.drop_columns(NUMBER))
        back = pc.sort_indices(places)
        return [column.take(back) for column in found]


class FromRows:
    """Answers of the kernel of tables, from all rows of the windows of some keys."""

    needs_order = True

    def __init__(self, shard: Shard) -> None:
        self._shard, self._query = shard, shard.query

    def reader(self) -> FoldReader | None:
        """As in `FromEntries`: none."""
        return None

    def drop_decoded(self) -> None:
        """As in `FromEntries`: the pages are read again."""

    def at(self, points: pa.Table) -> list[pa.Array]:
        """As in `FromEntries`."""
        rows = self._shard.rows_near(points)
        return self._query.answer_points(rows, self._query.query_points(points))

    def of_windows(self, query: KeyedQuery, windows: pa.Table) -> dict[str, Result]:
        """As in `FromEntries`."""
        last = pc.subtract(windows.column(TIME), 1)
        points = windows.set_column(windows.column_names.index(TIME), TIME, last)
        return answer_windows(query, self._shard.rows_near(points), windows)

    def due(self, rows: pa.Table) -> pa.Table:
        """As in `FromEntries`; the rows are in order of time."""
        query, shard = self._query, self._shard
        due = rows.column(NUMBER).combine_chunks()
        rows = rows.drop_columns(NUMBER)
        numbers = shard.numbers_near(rows)
        earlier = numbers.filter(pc.invert(pa.array(_core.are_among(numbers, due))))
        answers = query.answer_final(shard.log.take(earlier), rows)
        return query.answered(rows, answers)

    def arrive(self, rows: pa.Table) -> list[pa.Array]:
        """As in `FromEntries`."""
        query, shard = self._query, self._shard
        batch = query.sort_batch(rows)
        # rows(n) holds the latest rows that have arrived, whatever their time.
        behind = LATEST if query.rows else 0
        earlier = shard.log.take(shard.numbers_between(rows, query.reach, behind))
        answers = query.answer_arrival(earlier, rows)
        shard.append(batch, pending=False)
        return answers
