"""Accepted late rows: the last answers are those of the whole table."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from keyed_streams import FOLDED, OPTIONS, SEEDS, WHOLE, Stream, assert_same, page

import slidewise as sw

__all__ = ["page"]


class Late:
    """A stream with corrections for late rows, and its results."""

    def __init__(
        self, seed: int, spec: dict[str, object], reach: int, **options: object
    ):
        self.stream = Stream(seed)
        self.stream.disorder = self.stream.random.choice([5, 60, 150])
        late = self.stream.random.choice([0, 3, 20])
        self.windows = sw.KeyedWindows(
            **spec, late=late, late_rows="correct", **options
        )
        self.accepted: list[pa.Table] = []
        self.answers: list[pa.Table] = []
        self.corrections = self.late = 0
        for at in range(12):
            self.step(at, spec, reach)

    def step(self, at: int, spec: dict[str, object], reach: int) -> None:
        """Ingests a batch, collects answers, and sometimes restores from a snapshot."""
        windows = self.windows
        batch, watermark = self.stream.batch(), windows.watermark
        windows.ingest(batch)
        accepted = batch
        if watermark is not None:
            accepted = batch.filter(pc.greater(batch["t"], watermark - reach))
        self.late += len(batch) - len(accepted)
        windows.advance()
        answers = windows.collect()
        windows.check()
        assert windows.late_count == self.late
        number = pa.repeat(pa.scalar(at, pa.int64()), len(accepted))
        self.accepted.append(accepted.append_column("batch", number))
        number = pa.repeat(pa.scalar(at, pa.int64()), len(answers))
        self.answers.append(answers.append_column("batch", number))
        if self.stream.random.random() < 0.3:
            self.windows = sw.KeyedWindows.from_bytes(windows.to_bytes(), **spec)

    def last(self, by: list[str], results: list[str]) -> pa.Table:
        """The last answer of each; the first one is not a correction, others are."""
        answers = pa.concat_tables(self.answers)
        late = answers["_late"] if "_late" in answers.column_names else None
        if late is not None:
            assert pc.sum(late).as_py() == (self.late or 0)
            answers = answers.filter(pc.invert(late))
        last: dict[tuple[object, ...], int] = {}
        for at, row in enumerate(answers.select([*by, "_correction"]).to_pylist()):
            key = tuple(row[name] for name in by)
            assert row["_correction"] == (key in last), row
            last[key] = at
            self.corrections += row["_correction"]
        return answers.take(pa.array(sorted(last.values()), pa.int64())).select(results)


@pytest.mark.parametrize("options", OPTIONS, ids=range(len(OPTIONS)))
@pytest.mark.parametrize("by", [["key"], []], ids=["key", "none"])
@pytest.mark.parametrize("seed", SEEDS)
def test_final_answers_are_corrected(
    page: int, seed: int, by: list[str], options: dict[str, object]
) -> None:
    """Rows up to the longest window behind the watermark change emitted answers."""
    spec: dict[str, object] = {"on": "t", "by": by, **options}
    reach = max(w for w in options["windows"] if isinstance(w, int))
    reach += options.get("offset", 0)
    late = Late(seed * 1000 + page + 7, spec, reach)
    table = pa.concat_tables(late.accepted).drop_columns("batch")
    expected = sw.rolling(table, **spec)
    expected = expected.filter(pc.less_equal(expected["t"], late.windows.watermark))
    assert_same(late.last(["id"], expected.column_names), expected, ["id"])


@pytest.mark.parametrize("seed", SEEDS)
def test_only_rows_whose_windows_hold_a_late_one_come_again(
    page: int, seed: int
) -> None:
    """Answers of other rows are not emitted again."""
    spec: dict[str, object] = {"on": "t", "by": "key", "windows": [9], "aggs": FOLDED}
    late = Late(seed * 1000 + page + 8, spec, 9)
    rows = pa.concat_tables(late.accepted).to_pylist()
    given: dict[int, int] = {}
    for table in late.answers:
        for row in table.filter(pc.invert(table["_late"])).to_pylist():
            if row["_correction"]:
                assert any(
                    other["batch"] == row["batch"]
                    and other["key"] == row["key"]
                    and row["t"] - 9 < other["t"] <= row["t"]
                    for other in rows
                ), row
                assert row["id"] in given
            given[row["id"]] = row["batch"]


@pytest.mark.parametrize("options", OPTIONS[:4], ids=range(4))
@pytest.mark.parametrize("seed", SEEDS)
def test_arrival_answers_take_late_rows(
    page: int, seed: int, options: dict[str, object]
) -> None:
    """A late row is answered as of its arrival, which changes no other answer."""
    spec: dict[str, object] = {"on": "t", "by": "key", **options}
    reach = max(w for w in options["windows"] if isinstance(w, int))
    reach += options.get("offset", 0)
    late = Late(seed * 1000 + page + 9, spec, reach, emit="arrival")
    table = pa.concat_tables(late.accepted)
    expected = sw.rolling(table, at=table, **{**spec, "arrival": "batch"})
    expected = expected.drop_columns("batch")
    assert_same(late.last(["id"], expected.column_names), expected, ["id"])
    assert late.corrections == 0


@pytest.mark.parametrize("options", OPTIONS[:3], ids=range(3))
@pytest.mark.parametrize("by", [["key"], []], ids=["key", "none"])
@pytest.mark.parametrize("seed", SEEDS)
def test_updates_take_late_rows(
    page: int, seed: int, by: list[str], options: dict[str, object]
) -> None:
    """The last answer of a key is its window at its latest row, late ones included."""
    spec: dict[str, object] = {"on": "t", "by": by, **options}
    reach = max(options["windows"]) + options.get("offset", 0)
    late = Late(seed * 1000 + page + 10, spec, reach, emit="update")
    seen = None
    for rows, answered in zip(late.accepted, late.answers, strict=True):
        seen = rows if seen is None else pa.concat_tables([seen, rows])
        latest = seen.group_by(by).aggregate([("t", "max"), ("batch", "max")])
        new = pc.equal(latest["batch_max"], answered["batch"][0] if len(rows) else -1)
        query_points = latest.filter(new).select([*by, "t_max"])
        query_points = query_points.rename_columns([*by, "t"])
        expected = sw.rolling(seen, at=query_points, **spec)
        assert_same(
            answered.drop_columns(["batch", "_correction"]), expected, by or ["t"]
        )
    late.last([*by, "t"], [])


@pytest.mark.parametrize("aggs", [FOLDED, WHOLE], ids=["folded", "whole"])
@pytest.mark.parametrize("grid", [(60, 10, 0), (60, 7, 3), (5, 5, 0), (4, 9, 1)])
@pytest.mark.parametrize("seed", SEEDS)
def test_slides_are_corrected(
    page: int, seed: int, grid: tuple[int, int, int], aggs: dict[str, object]
) -> None:
    """Emitted windows are emitted again, and windows that had no rows are new."""
    length, every, offset = grid
    spec: dict[str, object] = {"on": "t", "by": "key", "window": length, "aggs": aggs}
    spec |= {"every": every, "offset": offset}
    late = Late(seed * 1000 + page + 11, spec, length)
    expected = sw.hopping(pa.concat_tables(late.accepted), **spec)
    over = pc.less_equal(expected["window_end"], late.windows.watermark + 1)
    by = ["key", "window_end"]
    ours = late.last(by, expected.column_names)
    assert_same(ours, expected.filter(over), by)


def test_deletions_are_late_where_they_were() -> None:
    """A late deletion changes no earlier answer."""
    windows = sw.KeyedWindows(
        on="t",
        windows=10,
        aggs={"n": sw.count()},
        late_rows="correct",
        deletes="gone",
    )
    windows.ingest(pa.table({"t": [1, 5, 9], "gone": [False] * 3}))
    windows.advance()
    windows.ingest(pa.table({"t": [5, 4], "gone": [True, False]}))
    answers = windows.collect()
    assert windows.late_count == 1
    assert answers["t"].to_pylist() == [1, 5, 9, 4, 5, 9, 5]
    assert answers["n_10"].to_pylist() == [1, 2, 3, 2, 3, 4, None]
    assert answers["_correction"].to_pylist() == [False] * 4 + [True] * 2 + [False]
    assert answers["_late"].to_pylist() == [False] * 6 + [True]


def test_a_result_of_rows_that_time_windows_left_is_corrected() -> None:
    """`rows(n)` holds rows of any age, so such a key had a result at the watermark."""
    windows = sw.KeyedWindows(
        on="t",
        by="k",
        windows=[sw.rows(3), 20],
        aggs={"n": sw.count()},
        emit="change",
        late_rows="correct",
    )
    found = []
    for time, key in [(1, "a"), (100, "b"), (90, "a"), (90, "c")]:
        windows.ingest(pa.table({"t": [time], "k": [key]}))
        windows.advance()
        found += [tuple(row.values()) for row in windows.collect().to_pylist()]
    assert found == [
        ("a", 1, 1, 1, False),
        ("b", 100, 1, 1, False),
        ("a", 100, 1, 0, False),
        ("a", 100, 2, 1, True),
        ("c", 100, 1, 1, False),
    ]
