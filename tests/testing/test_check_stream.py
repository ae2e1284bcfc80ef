"""`check_stream` passes on right streams, and finds faults by small cuts."""

import datetime as dt
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from seeds import SEED

import slidewise as sw
from slidewise.keyed.clock import Guards
from slidewise.testing import check_stream
from slidewise.testing.script import Step, smallest

AGGS = {
    "n": sw.count(),
    "sd": sw.stddev("y"),
    "all": sw.collect("x"),
    "last": sw.last("y", where="flag"),
}


def drawn(rows: int, seed: int = SEED) -> dict[str, list[Any]]:
    """Rows with ties, nulls and disorder."""
    draw, now = random.Random(seed), 0
    columns: dict[str, list[Any]] = {
        name: [] for name in ("t", *"kxyo", "flag", "came")
    }
    for at in range(rows):
        now += draw.choice([0, 0, 1, 2, 6])
        columns["t"].append(now - draw.randrange(4))
        columns["k"].append(draw.choice(["a", "b", None]))
        columns["x"].append(draw.choice([1, 2, None, 7]))
        columns["y"].append(draw.choice([draw.random(), 1e6, None]))
        columns["o"].append(draw.choice([1, 2, None]))
        columns["flag"].append(draw.choice([True, False, None]))
        columns["came"].append(at // 3)
    return columns


ROLLING: dict[str, Any] = {"by": "k", "windows": [7, sw.rows(3)]}
CASES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"windows": [7, 20]}, {"late": 4}),
    (ROLLING, {"late": 4, "then_by": "o", "keep": 50}),
    (
        {"by": ["k", "o"], "windows": 9, "closed": "left", "offset": 2},
        {"late": 3, "late_rows": "flag"},
    ),
    ({"by": "k", "windows": 7, "ties": "rows", "min_rows": 2}, {}),
    ({"by": "k", "windows": sw.landmark("flag")}, {"late": 4}),
    (ROLLING, {"late": 4, "emit": "arrival"}),
    (
        {**ROLLING, "arrival": "came"},
        {"late": 2, "emit": "arrival", "then_by": ["o"], "late_rows": "flag"},
    ),
    (ROLLING, {"late": 4, "emit": "update"}),
    ({"windows": [3, 7], "by": "k"}, {"late": 4, "emit": "change"}),
    ({"windows": 5, "closed": "left", "offset": 1}, {"emit": "change"}),
    ({"windows": 7}, {"late": 4, "ahead": 2, "idle": 5, "late_rows": "flag"}),
    ({"windows": 7, "by": "k"}, {"late": 2, "idle": 0, "emit": "change"}),
    ({"windows": 7, "by": "k"}, {"late": 2, "ahead": 0, "emit": "arrival"}),
    ({"by": "k", "window": 10, "every": 3}, {"late": 4}),
    (
        {"by": "k", "window": 4, "closed": "right", "empty": True},
        {"late": 4, "then_by": "o"},
    ),
    ({"by": "k", "windows": [5, sw.Query(10, every=5)]}, {"late": 4}),
    ({"by": "k", "window": sw.session(3)}, {"late": 4}),
    ({"by": "k", "window": sw.until("flag")}, {"late": 4}),
    ({"by": "k", "window": sw.rows(3), "every": sw.rows(2)}, {"late": 4}),
    ({"by": "k", "window": 6, "every": sw.rows(2)}, {"late": 4}),
]


@pytest.mark.parametrize("case", range(len(CASES)))
def test_right_streams_pass(case: int) -> None:
    windows, options = CASES[case]
    spec = sw.Spec(on="t", aggs=AGGS, **windows)
    check_stream(spec, pa.table(drawn(16)), runs=1, seed=SEED, **options)


@pytest.mark.parametrize(
    "times",
    [pa.timestamp("ns", "Europe/Berlin"), pa.timestamp("s"), pa.date32()],
    ids=str,
)
def test_times_of_any_type(times: pa.DataType) -> None:
    columns = drawn(9)
    ticks = pa.array(columns["t"], pa.int32())
    columns["t"] = (
        ticks.cast(pa.int64()).view(times)
        if times != pa.date32()
        else (ticks.view(times))
    )
    lengths = {"timestamp[s]": ("7s", "3s"), "date32[day]": ("7d", "3d")}
    length, late = lengths.get(str(times), (dt.timedelta(microseconds=1), "1us"))
    spec = sw.Spec(on="t", by="k", windows=length, aggs=AGGS)
    check_stream(spec, pa.table(columns), late=late, runs=1, seed=SEED)
    spec = sw.Spec(on="t", by="k", window=length, aggs=AGGS)
    check_stream(spec, pa.table(columns), late=late, runs=1, seed=SEED)


def test_tables_of_pandas_without_rows_and_with_other_columns() -> None:
    columns = pd.DataFrame({**drawn(8), "other": [object()] * 8})
    spec = sw.Spec(on="t", by="k", windows=5, aggs={"n": sw.count()})
    check_stream(spec, columns, runs=2)
    check_stream(spec, columns.iloc[:0], runs=2)


@pytest.mark.parametrize(
    "windows", [{"window": sw.until("flag")}, {"window": 6, "every": sw.rows(2)}]
)
def test_windows_with_equal_ends(windows: dict[str, Any]) -> None:
    """Rows of one time may close several."""
    rows = pa.table({"t": [1] * 7, "flag": [True] * 7, "x": [*range(7)]})
    spec = sw.Spec(on="t", aggs={"all": sw.collect("x")}, **windows)
    check_stream(spec, rows, runs=2)


# Faults, and what finds them.

RIGHT = sw.KeyedWindows
SPEC = sw.Spec(on="t", by="k", windows=9, aggs={"n": sw.count(), "sum": sw.sum("x")})
ROWS = pa.table(
    {
        "t": [*range(0, 24, 2)],
        "k": ["a", "b", "a"] * 4,
        "x": [1, 2, 7, 4, 5, 6] * 2,
    }
)


def fault_of(monkeypatch: pytest.MonkeyPatch, name: str, fault: Any) -> None:
    """Replaces a method of `KeyedWindows`; the fault gets the right one first."""
    right = getattr(RIGHT, name)
    monkeypatch.setattr(
        RIGHT, name, lambda *given, **named: fault(right, *given, **named)
    )


def found(spec: sw.Spec = SPEC, rows: Any = ROWS, **options: Any) -> str:
    with pytest.raises(AssertionError) as raised:
        check_stream(spec, rows, **{"late": 5, **options})
    return str(raised.value)


def counts_of(message: str) -> tuple[int, ...]:
    """The batches, rows and restarts of a cut."""
    shown = re.search(r"found: (\d+) batch\w*, (\d+) rows?, (\d+) restarts?", message)
    assert shown, message
    return tuple(map(int, shown.groups()))


def test_a_row_that_ingest_drops(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its message is that of the page."""

    def drop(right: Any, self: Any, batch: pa.Table) -> None:
        right(self, batch.filter(pa.compute.not_equal(batch["x"], 7)))

    fault_of(monkeypatch, "ingest", drop)
    message = found()
    assert counts_of(message) == (1, 1, 0)
    page = Path(__file__).parents[2] / "docs" / "checks.md"
    assert f"```text\n{message}\n```" in page.read_text("utf-8")


def test_a_query_that_leaves_out_the_last_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def earlier(right: Any, self: Any, key: Any, at: int) -> dict[str, Any]:
        answers: dict[str, Any] = right(self, key, at)
        return {name: value and value - 1 for name, value in answers.items()}

    fault_of(monkeypatch, "query", earlier)
    message = found()
    assert counts_of(message) == (1, 1, 0)
    assert re.search(r"rows: n_9 of k='[ab]', t=\d+ is 0, not 1\n", message)


@pytest.mark.parametrize("emit", ["final", "slide", "change"])
def test_a_watermark_that_is_one_tick_behind(
    monkeypatch: pytest.MonkeyPatch, emit: str
) -> None:
    spec = SPEC
    if emit == "slide":
        spec = sw.Spec(on="t", window=4, aggs={"n": sw.count()})

    def wait(right: Any, self: Any, watermark: Any = None) -> None:
        view = self._state.view
        if watermark is None and view is not None and view.largest is not None:
            watermark = view.largest - 6
        right(self, watermark)

    fault_of(monkeypatch, "advance", wait)
    message = found(spec, emit=emit)
    assert counts_of(message)[1:] == (1, 0)
    assert message.splitlines()[-1] == "  advance()"


def test_keys_that_a_restart_loses(monkeypatch: pytest.MonkeyPatch) -> None:
    restore = RIGHT.from_bytes

    def lose(blob: bytes, spec: sw.Spec) -> Any:
        windows = restore(blob, spec)
        if windows.watermark is not None:
            windows.evict_idle(windows.watermark)
        return windows

    monkeypatch.setattr(RIGHT, "from_bytes", lose)
    message = found(rows=ROWS.slice(0, 9), emit="update", late=0)
    assert counts_of(message)[1:] in [(1, 1), (2, 1)]
    assert "\n  from_bytes(to_bytes())\n" in message
    assert " is 1, not 2\n" in message or " is 0, not 1\n" in message


def test_a_query_that_ends_late(monkeypatch: pytest.MonkeyPatch) -> None:
    def later(right: Any, self: Any, points: pa.Table, at: str) -> pa.Table:
        place = points.column_names.index(at)
        moved = points.set_column(place, at, pa.compute.add(points[at], 1))
        return right(self, moved, at).set_column(place, at, points[at])

    fault_of(monkeypatch, "query_many", later)
    message = found()
    assert counts_of(message)[1] <= 2
    assert re.search(r"n_9 of k='[ab]', t=\d+ is (0, not 1|1, not 0)\n", message)
    assert re.search(r"\n  query\(\{'k': '[ab]', 't': \d+\}\)$", message)


def changed(change: Callable[[pa.Table], pa.Table]) -> Any:
    return lambda right, self: change(right(self))


def test_a_float_beyond_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of 128 ulp is within it."""
    spec = sw.Spec(on="t", windows=9, aggs={"avg": sw.mean("x")})
    by = [1 + 2.0**-46]

    def scale(table: pa.Table) -> pa.Table:
        place = table.column_names.index("avg_9")
        values = pa.compute.multiply(table["avg_9"], by[0])
        return table.set_column(place, "avg_9", values)

    fault_of(monkeypatch, "collect", changed(scale))
    check_stream(spec, ROWS, runs=1)
    by[0] = 1 + 2.0**-44
    assert counts_of(found(spec)) == (1, 1, 0)


@pytest.mark.parametrize("emit", ["final", "arrival", "update", "change"])
def test_results_that_are_given_twice(
    monkeypatch: pytest.MonkeyPatch, emit: str
) -> None:
    def twice(table: pa.Table) -> pa.Table:
        return pa.concat_tables([table, table.slice(0, 1)])

    fault_of(monkeypatch, "collect", changed(twice))
    if emit == "change":  # a result may come again, if it is right
        check_stream(SPEC, ROWS, late=5, emit=emit, runs=1)
    else:
        message = found(emit=emit)
        assert counts_of(message)[1] <= 3
        assert "is given again, not no row" in message


def test_a_result_of_change_that_does_not_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row left the window, and the key was not emitted."""
    collect = RIGHT.collect
    held: list[pa.Table] = []

    def advance(right: Any, self: Any, watermark: Any = None) -> None:
        held.append(collect(self))
        right(self, watermark)
        collect(self)

    fault_of(monkeypatch, "advance", advance)
    monkeypatch.setattr(
        RIGHT, "collect", lambda self: held.pop() if held else collect(self)
    )
    check_stream(SPEC, ROWS, emit="update", runs=1)
    message = found(emit="change")
    assert counts_of(message)[1] <= 2
    assert re.search(r"n_9 of k='[ab]', t=\d+ is 1, not 0\n", message)


def test_a_call_that_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(right: Any, self: Any) -> bytes:
        if len(self) > 1:
            raise KeyError("page 3")
        return right(self)

    fault_of(monkeypatch, "to_bytes", fail)
    message = found()
    assert counts_of(message) == (1, 2, 1)
    assert "rows: it raises KeyError: 'page 3'\n" in message


@pytest.mark.parametrize(
    ("guard", "faulty", "cell"),
    [
        ({"idle": 2}, "pace", "watermark|n_7"),
        ({"ahead": 2}, "limit", "ahead_count|late_count|watermark|n_7"),
    ],
)
def test_a_guard_that_is_one_tick_off(
    monkeypatch: pytest.MonkeyPatch, guard: dict[str, Any], faulty: str, cell: str
) -> None:
    right = getattr(Guards, faulty)

    def wrong(self: Guards, *args: int) -> int:
        found: int = right(self, *args)
        return found - 1 if found else found

    monkeypatch.setattr(Guards, faulty, wrong)
    spec = sw.Spec(on="t", windows=7, aggs={"n": sw.count()})
    with pytest.raises(AssertionError, match=f"({cell}) of .*\n.*\n  tick"):
        check_stream(spec, pa.table({"t": range(20)}), late=1, seed=SEED, **guard)


def test_a_late_row_that_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RIGHT, "late_count", property(lambda _: 0))
    message = found(rows=ROWS.slice(0, 6))
    assert counts_of(message) == (2, 2, 0)
    assert "late_count of the stream is 0, not 1" in message


def test_the_smallest_script_has_nothing_to_spare() -> None:
    """It fails, and would not with one row, batch, restart or call fewer."""
    script = tuple(
        Step(tuple(range(at, at + 9)), restart=True, asked=((at, 1),) * 3)
        for at in range(0, 90, 9)
    )

    def fails(steps: tuple[Step, ...]) -> bool:
        rows = [row for step in steps for row in step.rows]
        before = [step for step in steps if step.restart and 13 in step.rows]
        return bool(before) and 77 in rows and 77 not in before[0].rows

    assert smallest(script, fails) == (
        Step((13,), advance=False, restart=True),
        Step((77,), advance=False),
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"runs": 0}, "runs=0 is not a number of runs: give an int from 1"),
        ({"emit": "never"}, "emit='never'"),
        ({"then_by": "z"}, "no column 'z'"),
    ],
)
def test_wrong_arguments(options: dict[str, Any], message: str) -> None:
    with pytest.raises(sw.SpecError, match=re.escape(message)):
        check_stream(SPEC, ROWS, **options)


def test_aggregations_without_one_right_answer_are_refused() -> None:
    aggs = {"q": sw.approx_quantile(0.5, "x")}
    spec = sw.Spec(on="t", windows=9, aggs=aggs)
    with pytest.raises(sw.SpecError, match=r"not support approx_quantile.*'q' out"):
        check_stream(spec, ROWS)


def test_an_unknown_argument_has_a_hint() -> None:
    with pytest.raises(TypeError, match="did you mean emit="):
        check_stream(SPEC, ROWS, emits="final")  # type: ignore[call-arg]
