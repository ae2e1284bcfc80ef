"""Rows before a stream: the emitted windows, for any division of keys into shards."""

import random

import pyarrow as pa
import pytest
from keyed_streams import SEEDS

import slidewise as sw
from slidewise.keyed.page_store import MemoryStore
from slidewise.keyed.processor import Processor
from slidewise.keyed.query import KeyedQuery
from slidewise.keyed.validation import checked
from slidewise.spec.spec import Spec

SCHEMA = pa.schema([("t", "int64"), ("k", "int64"), ("x", "int64"), ("stop", "bool")])
AGGS = {"n": sw.count(), "s": sw.sum("x"), "mid": sw.median("x")}
LATE = 40
KEYS = 12
WINDOWS = {
    "hops": {"window": 30, "every": 7},
    "right": {"window": 10, "closed": "right"},
    "empty": {"window": 10, "empty": True},
    "session": {"window": sw.session(6)},
    "until": {"window": sw.until("stop")},
}


def table(rows: list[tuple[int, int, int, bool]]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [[]] * len(SCHEMA)
    return pa.table(dict(zip(SCHEMA.names, columns, strict=True)), schema=SCHEMA)


def drawn(seed: int) -> tuple[pa.Table, list[pa.Table]]:
    """A history, and batches of a stream whose first rows lie before its end."""
    draw = random.Random(seed)

    def rows(count: int, since: int, until: int) -> pa.Table:
        return table(
            [
                (
                    draw.randrange(since, until),
                    draw.randrange(KEYS),
                    draw.randrange(100),
                    draw.random() < 0.3,
                )
                for _ in range(count)
            ]
        )

    history = rows(60, 0, 200)
    starts = [190 + 25 * at for at in range(12)]
    return history, [rows(draw.choice([0, 3, 15]), s - 20, s + 20) for s in starts]


def streamed(
    spec: Spec, history: pa.Table, batches: list[pa.Table], shards: int
) -> tuple[list[dict[str, object]], pa.Table, int]:
    """The results, the rows that were in time, and the last watermark."""
    query = checked(KeyedQuery(spec, SCHEMA, "slide"))
    states = [Processor(query, MemoryStore()) for _ in range(shards)]
    answers: list[dict[str, object]] = []
    taken, watermark, largest = [history], None, None

    def of(rows: pa.Table, shard: int) -> pa.Table:
        mine = [key % shards == shard for key in rows["k"].to_pylist()]
        return rows.filter(pa.array(mine, pa.bool_()))

    for at, state in enumerate(states):
        state.begin(max(history["t"].to_pylist()))
        state.load(of(history, at))
    for batch in batches:
        for at, state in enumerate(states):
            due = state.due
            if watermark is not None and due is not None and due <= watermark:
                found = state.advance(watermark)
                answers += [] if found is None else found.to_pylist()
            rows, _ = query.arrived(of(batch, at))
            if watermark is not None:
                rows = rows.filter(pa.compute.greater(rows["__time"], watermark))
            if len(rows):
                state.ingest(rows, watermark)
            directory = state.commit()
            states[at] = Processor(query, state.pages.store, directory)
        late = -(10**9) if watermark is None else watermark
        taken.append(batch.filter(pa.compute.greater(batch["t"], late)))
        times = batch["t"].to_pylist()
        largest = max([*times, *([] if largest is None else [largest])], default=None)
        watermark = None if largest is None else largest - LATE
    assert watermark is not None
    return answers, pa.concat_tables(taken), watermark


@pytest.mark.long
@pytest.mark.parametrize("kind", WINDOWS)
@pytest.mark.parametrize("seed", SEEDS)
def test_results_do_not_depend_on_how_keys_share_shards(kind: str, seed: int) -> None:
    """Windows that a watermark at the end of the history closes have no results."""
    for each in range(3):
        history, batches = drawn(seed * 100 + each)
        spec = Spec.make_hopping(on="t", by="k", aggs=AGGS, **WINDOWS[kind])
        expected: list[dict[str, object]] | None = None
        for shards in (1, 5, KEYS):
            answers, rows, _ = streamed(spec, history, batches, shards)
            found = sorted(answers, key=repr)
            if expected is None:
                expected = found
                assert found
                check_windows(kind, spec, history, rows, batches, answers)
            assert found == expected, shards


def check_windows(
    kind: str,
    spec: Spec,
    history: pa.Table,
    rows: pa.Table,
    batches: list[pa.Table],
    answers: list[dict[str, object]],
) -> None:
    """Compares with the windows of the whole table."""
    if kind == "empty":
        # These come with the next window of their key.
        answers = [answer for answer in answers if answer["n"]]
        spec = spec.replace(empty=False)
    # The watermark of the last call of `advance`.
    times = [time for batch in batches[:-1] for time in batch["t"].to_pylist()]
    since, until = max(history["t"].to_pylist()), max(times) - LATE

    def closed(end: int, watermark: int) -> bool:
        delay = {"session": 6, "until": 0, "right": 0}.get(kind, -1)
        return end + delay <= watermark

    expected = [
        window
        for window in sw.hopping(rows, spec).to_pylist()
        if closed(window["window_end"], until)
        and not closed(window["window_end"], since)
    ]
    assert sorted(map(repr, answers)) == sorted(map(repr, expected))


def test_windows_without_rows_continue_those_of_the_history() -> None:
    """Empty windows follow the last window of the key that the history closes."""
    spec = Spec.make_hopping(on="t", by="k", window=10, empty=True, aggs=AGGS)
    history = table([(1, 1, 0, False), (50, 2, 0, False)])
    batches = [table([(85, 1, 5, False)]), table([(300, 2, 0, False)]), table([])]
    for shards in (1, 2):
        answers, _, _ = streamed(spec, history, batches, shards)
        found = [(row["window_end"], row["n"]) for row in answers if row["k"] == 1]
        ends = [(end, 0) for end in range(20, 90, 10)]
        assert sorted(found) == [*ends, (90, 1)]
