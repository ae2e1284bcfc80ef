"""Many keys over a stream of rows, compared with the same call over the whole table."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from keyed_streams import (
    FOLDED,
    OPTIONS,
    SEEDS,
    WHOLE,
    Stream,
    assert_same,
    page,
    run,
    stream_of,
)

import slidewise as sw

__all__ = ["page"]


@pytest.mark.parametrize("options", OPTIONS, ids=range(len(OPTIONS)))
@pytest.mark.parametrize("by", [["key"], ["key", "k2"], []], ids=["key", "two", "none"])
@pytest.mark.parametrize("seed", SEEDS)
def test_final_answers_are_those_of_the_whole_table(
    page: int, seed: int, by: list[str], options: dict[str, object]
) -> None:
    """Every accepted row is answered once, as `rolling` does over all of them."""
    spec: dict[str, object] = {"on": "t", "by": by, **options}
    table, answers, watermark = stream_of(seed * 1000 + page, spec, (0, 3, 50))
    expected = sw.rolling(table, **spec)
    expected = expected.filter(pc.less_equal(expected["t"], watermark))
    assert_same(answers, expected, ["id"])


@pytest.mark.parametrize("options", OPTIONS[:4], ids=range(4))
@pytest.mark.parametrize("arrival", [None, "came"])
@pytest.mark.parametrize("seed", SEEDS)
def test_arrival_answers_see_the_rows_that_have_arrived(
    page: int, seed: int, arrival: str | None, options: dict[str, object]
) -> None:
    """Rows are answered at once, over the rows of earlier batches and of their own."""
    stream = Stream(seed * 1000 + page + 1)
    spec: dict[str, object] = {"on": "t", "by": "key", "arrival": arrival, **options}
    windows = sw.KeyedWindows(
        **spec, emit="arrival", late=stream.random.choice([0, 60])
    )
    accepted, answers = [], []
    for at, (rows, answered, _, after) in enumerate(run(stream, windows, spec, 12)):
        order = pa.repeat(pa.scalar(at * 10, pa.int64()), len(rows))
        if arrival:
            order = pc.add(order, rows[arrival])
        accepted.append(rows.append_column("order", order))
        assert answered["id"].to_pylist() == rows["id"].to_pylist(), "in their order"
        answers.append(answered)
        windows = after
    table = pa.concat_tables(accepted)
    expected = sw.rolling(table, at=table, **{**spec, "arrival": "order"})
    assert_same(pa.concat_tables(answers), expected.drop_columns("order"), ["id"])


@pytest.mark.parametrize("options", OPTIONS[:3], ids=range(3))
@pytest.mark.parametrize("seed", SEEDS)
def test_updates_are_the_windows_at_the_latest_rows(
    page: int, seed: int, options: dict[str, object]
) -> None:
    """Each batch answers its keys once, at their latest time so far."""
    stream = Stream(seed * 1000 + page + 2)
    spec: dict[str, object] = {"on": "t", "by": "key", **options}
    windows = sw.KeyedWindows(**spec, emit="update", late=stream.random.choice([0, 60]))
    seen = None
    for rows, answered, _, _ in run(stream, windows, spec, 12):
        seen = rows if seen is None else pa.concat_tables([seen, rows])
        latest = seen.group_by("key").aggregate([("t", "max"), ("id", "max")])
        new = pc.greater(latest["id_max"], len(seen) and _last(seen, rows))
        query_points = (
            latest.filter(new).select(["key", "t_max"]).rename_columns(["key", "t"])
        )
        assert_same(answered, sw.rolling(seen, at=query_points, **spec), ["key"])


@pytest.mark.parametrize("emit", ["final", "arrival", "update"])
@pytest.mark.parametrize("seed", SEEDS)
def test_deleted_rows_were_never_there(page: int, seed: int, emit: str) -> None:
    """The deletion removes the first row of its key and time from later answers."""
    stream = Stream(seed * 1000 + page + 4)
    spec: dict[str, object] = {"on": "t", "by": "key", "windows": [9, 100]}
    spec["aggs"] = FOLDED if seed % 2 else WHOLE
    windows = sw.KeyedWindows(**spec, emit=emit, late=60, deletes="gone")
    held: list[dict[str, object]] = []
    answers = []
    for _ in range(12):
        rows = stream.batch().to_pylist()
        sources = [row for row in held + rows if stream.random.random() < 0.05]
        deleted = [{"t": row["t"], "key": row["key"], "gone": True} for row in sources]
        batch = rows + deleted
        stream.random.shuffle(batch)
        schema = stream.batch().schema.append(pa.field("gone", pa.bool_()))
        watermark = windows.watermark
        windows.ingest(pa.Table.from_pylist(batch, schema))
        batch = [row for row in batch if watermark is None or row["t"] > watermark]
        new = [row for row in batch if not row.get("gone")]
        changed = {row["key"] for row in batch}
        for row in batch:
            if row.get("gone"):
                where = [
                    (rows, at)
                    for rows in (held, new)
                    for at, other in enumerate(rows)
                    if (other["t"], other["key"]) == (row["t"], row["key"])
                ]
                if where:
                    rows, at = where[0]
                    del rows[at]
        held += new
        now = pa.Table.from_pylist(held, schema)
        windows.advance()
        windows.check()
        answered = windows.collect()
        if emit == "arrival":
            points = pa.Table.from_pylist(new, schema)
            assert_same(answered, sw.rolling(now, at=points, **spec), ["id"])
        elif emit == "update":
            latest = now.group_by("key").aggregate([("t", "max")]).to_pylist()
            rows = [
                {"key": row["key"], "t": row["t_max"]}
                for row in latest
                if row["key"] in changed
                and (watermark is None or row["t_max"] > watermark)
            ]
            points = pa.Table.from_pylist(
                rows, pa.schema([("key", pa.string()), ("t", pa.int64())])
            )
            assert_same(answered, sw.rolling(now, at=points, **spec), ["key"])
        answers.append(answered)
    if emit == "final":
        expected = sw.rolling(now, **spec)
        expected = expected.filter(pc.less_equal(expected["t"], windows.watermark))
        assert_same(pa.concat_tables(answers), expected, ["id"])


def _last(seen: pa.Table, rows: pa.Table) -> int:
    earlier = seen.slice(0, len(seen) - len(rows))
    return pc.max(earlier["id"]).as_py() or 0


@pytest.mark.parametrize("aggs", [FOLDED, WHOLE], ids=["folded", "whole"])
@pytest.mark.parametrize("grid", [(60, 10, 0), (60, 7, 3), (5, 5, 0), (4, 9, 1)])
@pytest.mark.parametrize("seed", SEEDS)
def test_slides_are_the_hops_of_the_whole_table(
    page: int, seed: int, grid: tuple[int, int, int], aggs: dict[str, object]
) -> None:
    """Every closed window is answered once."""
    length, every, offset = grid
    spec: dict[str, object] = {
        "on": "t",
        "by": "key",
        "window": length,
        "every": every,
        "offset": offset,
        "aggs": aggs,
    }
    table, answers, watermark = stream_of(seed * 1000 + page + 3, spec)
    expected = sw.hopping(table, **spec)
    over = pc.less_equal(expected["window_end"], watermark + 1)
    assert_same(answers, expected.filter(over), ["key", "window_end"])
