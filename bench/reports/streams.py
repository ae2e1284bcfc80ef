"""Reports of streaming engines: late rows, watermarks, restarts, and state.

The three libraries that are asked elsewhere have no streams of event time.
"""

import random
from typing import Any

import pyarrow as pa
from bench.reports.report import Given, report

import slidewise as sw


def _stream(**options: Any) -> sw.KeyedWindows:
    return sw.KeyedWindows(
        **{"on": "t", "windows": 10, "aggs": {"n": sw.count()}, **options}
    )


def _feed(windows: sw.KeyedWindows, *batches: list[int]) -> sw.KeyedWindows:
    """Ingests batches of times, and advances after each."""
    for times in batches:
        windows.ingest(pa.table({"t": pa.array(times, pa.int64())}))
        windows.advance()
    return windows


@report("ksql#4579")
def a_late_row_is_traced() -> Given:
    def ours() -> Any:
        windows = _feed(_stream(late=2, late_rows="flag"), [1, 9], [4, 12])
        out = windows.collect()
        late = out.filter(out["_late"])["t"].to_pylist()
        return [windows.late_count, late]

    question = "lateness 2, rows at 1, 9, then 4, 12: how many are late, and which"
    return question, [1, [4]], {"slidewise": ours}


@report("flink#15495")
def a_late_row_corrects_its_windows() -> Given:
    def ours() -> Any:
        windows = _feed(_stream(late=2, late_rows="correct"), [1, 9, 20], [15], [60])
        out = windows.collect()
        last = dict(zip(out["t"].to_pylist(), out["n_10"].to_pylist(), strict=True))
        return [last[t] for t in (1, 9, 15, 20)]

    # Of (−9, 1], (−1, 9], (5, 15] and (10, 20].
    question = "rows at 1, 9, 20, then 15 behind the watermark: the last counts of 10"
    return question, [1, 2, 2, 2], {"slidewise": ours}


@report("flink#17509")
def a_restart_changes_nothing() -> Given:
    def ours() -> Any:
        batches = [[1, 9], [4, 12], [30, 28], [27, 41]]
        whole = _feed(_stream(late=3), *batches)
        again = _feed(_stream(late=3), *batches[:2])
        first = again.collect()
        again = sw.KeyedWindows.from_bytes(again.to_bytes())
        second = _feed(again, *batches[2:]).collect()
        return whole.collect().equals(pa.concat_tables([first, second]))

    question = "four batches, with a restart from a snapshot between: the same answers"
    return question, True, {"slidewise": ours}


@report("sql-flow#358")
def one_row_from_the_future() -> Given:
    def ours() -> Any:
        windows = _stream(late=5, ahead=60, clock=lambda: 100)
        windows = _feed(windows, [99, 4_000_000_000], [97, 98, 100])
        return [windows.late_count, windows.ahead_count, windows.watermark]

    question = "rows at 99 and 4e9, then 97, 98, 100; the clock is at 100: late, ahead"
    return question, [0, 1, 95], {"slidewise": ours}


@report("spark#56043")
def rows_of_the_latest_time_are_not_late() -> Given:
    def ours() -> Any:
        return _feed(_stream(late=1), [5, 9], [9, 9], [9]).late_count

    question = "lateness of one tick, rows at 9 in three batches: how many are late"
    return question, 0, {"slidewise": ours}


@report("kafka#9039")
def an_answer_when_a_row_leaves() -> Given:
    def ours() -> Any:
        windows = _stream(windows=10, emit="change")
        found = []
        for t in (1, 4, 8):
            windows.ingest(pa.table({"t": [t]}))
            found += windows.collect()["n_10"].to_pylist()
        for t in range(9, 31):
            windows.advance(t)
            found += windows.collect()["n_10"].to_pylist()
        return found

    question = "rows at 1, 4, 8, then silence until 30: the counts of 10 as they change"
    return question, [1, 2, 3, 2, 1, 0], {"slidewise": ours}


@report("feldera#3164")
def a_window_is_not_closed_too_early() -> Given:
    def ours() -> Any:
        hops: dict[str, Any] = {"windows": None, "window": 60, "every": 60}
        windows = _feed(_stream(late=15, **hops), [10, 70], [57, 73])
        early = windows.collect()["n"].to_pylist()
        return [early, _feed(windows, [59, 76]).collect()["n"].to_pylist()]

    question = "windows of 60, lateness 15: rows at 10, 70, then 57, 73, then 59, 76"
    return question, [[], [3]], {"slidewise": ours}


@report("bytewax#413")
def large_times_with_short_hops() -> Given:
    start = 1_700_000_000_000

    def ours() -> Any:
        hops: dict[str, Any] = {"windows": None, "window": 1_600, "every": 700}
        times = [start + 100 * at for at in range(40)]
        windows = _feed(_stream(late=0, **hops), times[:20], times[20:])
        windows.advance(start + 10_000)
        out = sw.hopping(
            pa.table({"t": times}),
            on="t",
            window=1_600,
            every=700,
            aggs={"n": sw.count()},
        )
        same = windows.collect()["n"].to_pylist() == out["n"].to_pylist()
        return [windows.late_count, same]

    question = "windows of 1.6 s every 0.7 s at 1.7e12 ms: late rows; stream = table"
    return question, [0, True], {"slidewise": ours}


@report("quix#728")
def a_late_row_opens_no_window() -> Given:
    def ours() -> Any:
        hops: dict[str, Any] = {"windows": None, "window": 10, "every": 10}
        windows = _feed(_stream(late=0, **hops), [5, 25], [3], [40])
        return [windows.late_count, windows.collect()["window_start"].to_pylist()]

    question = "windows of 10, rows at 5, 25, then 3, then 40: late, and emitted"
    return question, [1, [0, 20]], {"slidewise": ours}


@report("risingwave#13907")
def keys_that_do_not_return_leave_no_state() -> Given:
    def ours() -> Any:
        windows = _stream(by="key", late=0)
        most = 0
        for at in range(100):
            keys = pa.array([at * 10 + each for each in range(10)])
            windows.ingest(pa.table({"t": [at] * 10, "key": keys}))
            windows.advance()
            most = max(most, len(windows))
        windows.advance(1_000)
        return [most <= 120, len(windows)]

    question = "1,000 keys, each once, windows of 10: few are kept, and none after"
    return question, [True, 0], {"slidewise": ours}


@report("feast#6308")
def answers_fall_without_new_rows() -> Given:
    def ours() -> Any:
        windows = _feed(_stream(emit="none", late=5), [1, 4, 8])
        answers = [windows.query(at=at)["n_10"] for at in (8, 11, 14, 18)]
        return [*answers, windows.query(at=8, valid_until=True)["valid_until_10"]]

    question = (
        "rows at 1, 4, 8: counts of 10 at 8, 11, 14, 18; the first is valid until"
    )
    return question, [3, 2, 1, 0, 11], {"slidewise": ours}


@report("chronon#276")
def queries_of_two_lengths() -> Given:
    def ours() -> Any:
        draw = random.Random(5)
        times = sorted(draw.randrange(1_000) for _ in range(200))
        windows = _stream(windows=[60, 120], emit="none", keep=1_000)
        for at in range(0, 200, 20):
            windows.ingest(pa.table({"t": times[at : at + 20]}))
        wrong = 0
        for at in range(0, 1_000, 37):
            found = windows.query(at=at)
            for length in (60, 120):
                held = sum(at - length < t <= at for t in times)
                wrong += found[f"n_{length}"] != held
        return wrong

    question = "counts of 60 and 120 at 28 times, of 200 rows: how many are wrong"
    return question, 0, {"slidewise": ours}


@report("spark#53159")
def a_stream_is_checked_without_a_cluster() -> Given:
    def ours() -> Any:
        spec = sw.Spec(on="t", windows=10, aggs={"n": sw.count()})
        rows = pa.table({"t": [1, 9, 4, 12, 30]})
        from slidewise.testing import check_stream

        check_stream(spec, rows, late=10, runs=3, seed=7)
        return "checked"

    question = "a stream cut at random and restarted, compared with a table: in process"
    return question, "checked", {"slidewise": ours}


@report("beam#18677", "hazelcast-jet#747")
def a_late_row_joins_no_session() -> Given:
    def ours() -> Any:
        sessions: dict[str, Any] = {"windows": None, "window": sw.session(5)}
        windows = _feed(_stream(late=0, **sessions), [0], [6], [3], [30])
        out = windows.collect()
        starts, ends = (out[f"window_{side}"].to_pylist() for side in ("start", "end"))
        return [windows.late_count, starts, ends]

    question = "sessions of gap 5, rows at 0, 6, then 3, then 30: late, starts, ends"
    return question, [1, [0, 6], [0, 6]], {"slidewise": ours}
