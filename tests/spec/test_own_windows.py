"""`windows=` of an aggregation: its own windows, in place of those of the Spec."""

import inspect
import pickle
import re
from datetime import timedelta
from typing import Any

import own_aggregations as own
import pyarrow as pa
import pytest

import slidewise as sw
from slidewise import aggregations
from slidewise.aggregations.records import kinds

ROWS = pa.table(
    {
        "t": [1, 3, 4, 9, 9, 12],
        "k": [*"abaaba"],
        "x": [5, 2, 7, None, 3, 1],
        "came": [2, 1, 3, 9, 8, 9],
        "f": [True, False, False, True, False, False],
    }
)
# Each kind of pass over a table: folds, holistic ones, and Python.
AGGS = {
    "n": sw.count(),
    "sum": sw.sum("x", windows=5),
    "mid": sw.median("x", windows=[3, sw.rows(2)]),
    "max": sw.max("x"),
    "own": own.TOTAL("x", windows=[5, 2]),
}
FOLDS = {
    "n": sw.count(),
    "sum": sw.sum("x", windows=[5, 4]),
    "max": sw.max("x", windows=3),
    "avg": sw.mean("x"),
}
EMITS = ["arrival", "final", "update", "change"]


def roll(**changes: Any) -> dict[str, Any]:
    return {"on": "t", "by": "k", "windows": [3, 8], "aggs": AGGS} | changes


def apart(request: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """A request per aggregation, with its windows as those of the request."""
    found = []
    for name, agg in request["aggs"].items():
        record = {part: getattr(agg, part) for part in ("of", "where")}
        shared = (
            agg(record["of"])
            if hasattr(agg, "functions")
            else type(agg)(agg.kind, record["of"], q=agg.q)
        )
        windows = [*agg.windows] if agg.windows else request["windows"]
        found.append((name, request | {"aggs": {name: shared}, "windows": windows}))
    return found


def by_hand(results: list[pa.Table], spec: sw.Spec) -> pa.Table:
    """The columns of the results of several requests, in the order of a Spec."""
    columns = {
        name: table[name]
        for table in results
        for name in table.column_names
        if name in spec.results
    }
    return pa.table({name: columns[name] for name in spec.results})


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"closed": "both", "min_rows": 1, "windows": 8, "aggs": FOLDS},
        {"offset": 1, "aggs": FOLDS},
        {"arrival": "came", "windows": [8], "aggs": FOLDS},
        {"windows": [sw.landmark("f"), 8], "aggs": FOLDS},
        {"by": None},
    ],
    ids=str,
)
def test_results_are_those_of_separate_calls(changes: dict[str, Any]) -> None:
    spec = sw.Spec(**roll(**changes))
    results = sw.rolling(ROWS, spec)
    alone = [sw.rolling(ROWS, **each) for _, each in apart(roll(**changes))]
    assert results.column_names == [*ROWS.column_names, *spec.results]
    assert results.select(spec.results).equals(by_hand(alone, spec))
    labels = ROWS.select(["t", "k", "came"]).slice(2)
    at = sw.rolling(ROWS, spec, at=labels)
    alone = [sw.rolling(ROWS, **each, at=labels) for _, each in apart(roll(**changes))]
    assert at.select(spec.results).equals(by_hand(alone, spec))


def test_columns_are_window_by_window_in_order_of_mention() -> None:
    spec = sw.Spec(**roll())
    assert spec.results == (
        *("n_3", "mid_3", "max_3", "n_8", "max_8", "sum_5", "own_5"),
        *("mid_2rows", "own_2"),
    )
    assert [window.label for window in spec.windows] == ["3", "8", "5", "2rows", "2"]


def test_no_windows_are_needed_where_all_have_their_own() -> None:
    aggs = {"n": sw.count(windows="1h"), "sum": sw.sum("x", windows=["1d", "1h"])}
    spec = sw.Spec(on="t", aggs=aggs)
    assert spec.results == ("n_1h", "sum_1h", "sum_1d")
    rows = pa.table({"t": pa.array([0, 7200], pa.timestamp("s")), "x": [1, 2]})
    results = sw.rolling(rows, on="t", aggs=aggs)
    assert results["sum_1d"].to_pylist() == [1, 3]
    assert results["sum_1h"].to_pylist() == [1, 2]
    # Windows of the call that no aggregation has are not there.
    assert sw.Spec(on="t", windows="5m", aggs=aggs) == spec
    with pytest.raises(sw.SpecError, match=r"^windows= is missing"):
        sw.Spec(on="t", aggs=aggs | {"m": sw.max("x")})


@pytest.mark.parametrize("emit", EMITS)
@pytest.mark.parametrize("aggs", [AGGS, FOLDS], ids=["rows", "folds"])
def test_results_of_streams_are_those_of_separate_streams(
    emit: str, aggs: dict[str, Any]
) -> None:
    def run(request: dict[str, Any]) -> pa.Table:
        # All rows are kept alike, so that all results go out alike.
        stream = sw.KeyedWindows(**request, emit=emit, late=2, keep=20)
        for start in range(0, 6, 2):
            stream.ingest(ROWS.slice(start, 2))
            stream.advance()
        stream.advance(40)
        return stream.collect()

    request = roll(aggs=aggs)
    if emit == "change":  # which depends on all windows
        longest = [sw.KeyedWindows(**one, emit="update") for _, one in apart(request)]
        assert len(longest) == len(aggs)
        results = run(request)
        at = results.select(["k", "t"])
        names = sw.Spec(**request).results
        expected = sw.rolling(ROWS.slice(0, 6), **request, at=at)
        last = results.num_rows - 1
        assert (
            results.slice(last).select(names).equals(expected.slice(last).select(names))
        )
        return
    results = run(request)
    alone = [run(each) for _, each in apart(request)]
    spec = sw.Spec(**request)
    assert results.select(spec.results).equals(by_hand(alone, spec))


@pytest.mark.parametrize("aggs", [AGGS, FOLDS], ids=["rows", "folds"])
def test_results_of_queries_are_those_of_tables(aggs: dict[str, Any]) -> None:
    request = roll(aggs=aggs)
    spec = sw.Spec(**request)
    stream = sw.KeyedWindows(spec, late=30)
    stream.ingest(ROWS)
    labels = pa.table({"k": [*"abza"], "t": [4, 9, 9, 12]})
    expected = sw.rolling(ROWS, spec, at=labels)
    assert stream.query_many(labels, at="t").equals(expected)
    for at, row in enumerate(expected.drop_columns(["k", "t"]).to_pylist()):
        key, time = labels["k"][at].as_py(), labels["t"][at].as_py()
        assert stream.query(key, at=time) == row
        assert [*stream.query(key, at=time)] == [*row]
    lists = stream.query_many({"k": [*"abz"]}, at=9)
    table = sw.rolling(ROWS, spec, at=pa.table({"k": [*"abz"], "t": [9, 9, 9]}))
    assert pa.table(lists) == table.drop_columns("t")
    batch = pa.RecordBatch.from_pydict({"k": [*"abz"]})
    assert pa.table(stream.query_many(batch, at=9)) == table.drop_columns("t")
    # Windows that are asked for replace those of the Spec, not those of aggregations.
    asked = sw.rolling(ROWS, spec.replace(windows=[6, 5]), at=labels)
    assert stream.query_many(labels, at="t", windows=[6, 5]).equals(asked)
    assert stream.query("a", at=4, windows=[6, 5], plus={"x": 3}).keys() == {
        *asked.column_names[2:]
    }


@pytest.mark.parametrize(
    "aggs", [FOLDS, FOLDS | {"mid": sw.median("x", windows=3)}], ids=len
)
def test_times_of_changes_are_those_of_the_aggregations_of_a_window(aggs: Any) -> None:
    request = roll(aggs=aggs)
    stream = sw.KeyedWindows(**request, late=30)
    stream.ingest(ROWS)
    found = stream.query("a", at=9, valid_until=True)
    until: dict[str, Any] = {}
    for _, each in apart(request):
        alone = sw.KeyedWindows(**each, late=30)
        alone.ingest(ROWS)
        for name, time in alone.query("a", at=9, valid_until=True).items():
            if name.startswith("valid_until"):
                times = [one for one in (until.get(name), time) if one is not None]
                until[name] = min(times, default=None)
    assert {name: found[name] for name in until} == until


def test_an_overflow_outside_its_windows_does_not_count() -> None:
    """The store folds all aggregations over all windows; only some are results."""
    rows = pa.table({"t": [1, 2, 3], "k": [*"aaa"], "x": [2**62, 2**62, 2**62]})
    aggs = {"n": sw.count(), "s": sw.sum("x", windows=1)}
    request: dict[str, Any] = {"on": "t", "by": "k", "windows": 9, "aggs": aggs}
    assert sw.rolling(rows, **request)["s_1"].to_pylist() == [2**62] * 3
    stream = sw.KeyedWindows(**request, emit="arrival", late=9)
    stream.ingest(rows)
    assert stream.collect()["s_1"].to_pylist() == [2**62] * 3
    assert stream.query("a", at=3) == {"n_9": 3, "s_1": 2**62}
    assert stream.query_many({"k": ["a"]}, at=3)["s_1"] == [2**62]
    with pytest.raises(sw.ResultOverflowError, match=r"sum\('x', windows=2\) over the"):
        sw.rolling(rows, **request | {"aggs": {"s": sw.sum("x", windows=2)}})


def test_own_windows_are_part_of_a_spec() -> None:
    aggs = {
        "a": sw.sum("x", windows=timedelta(hours=1)),
        "b": sw.max("x", windows=[sw.rows(3), "1d", sw.landmark("f")]),
        "c": own.TOTAL("x", windows="2h"),
        "d": sw.approx_count_distinct("x", windows="1h"),
        "n": sw.count(),
    }
    spec = sw.Spec(on="t", windows="1h", aggs=aggs)
    again = sw.Spec.from_json(spec.to_json())
    assert (again, again.hash, hash(again)) == (spec, spec.hash, hash(spec))
    assert pickle.loads(pickle.dumps(spec)) == spec
    assert "'a': sum('x', windows='1h')" in repr(again)
    assert "max('x', windows=[rows(3), '1d', landmark('f')])" in repr(again)
    assert spec != sw.Spec(on="t", windows=["1h", "2h"], aggs=aggs)
    shared = {name: sw.sum("x") for name in "ab"}
    two, one = (
        sw.Spec(on="t", windows=windows, aggs=shared | {"a": sw.sum("x", windows="2h")})
        for windows in (["1h", "2h"], ["1h"])
    )
    # The windows and the aggregations are equal, but not what is over which.
    assert two.windows == one.windows
    assert two != one
    assert two.hash != one.hash


@pytest.mark.parametrize("kind", kinds(every=True))
def test_every_aggregation_takes_windows(kind: str) -> None:
    make = getattr(aggregations, kind)
    names = inspect.signature(make).parameters
    columns = {name: name for name in ("column", "of", "by", "x", "y") if name in names}
    required = {"q": 0.5, "k": 3, "edges": [1.0]}
    for name, parameter in names.items():
        needed = parameter.default in (inspect.Parameter.empty, ())
        if name in required and needed:
            columns[name] = required[name]  # type: ignore[assignment]
    agg = make(**columns, windows=["1h", "1d"])
    assert agg.windows == ("1h", "1d")
    assert agg != make(**columns)
    assert repr(agg).endswith("windows=['1h', '1d'])")


@pytest.mark.parametrize(
    ("windows", "message"),
    [
        ([], "sum(windows=) is empty"),
        ({"1h": 1}, "sum(windows=) takes one window or a list of them"),
        ("1.5.1h", "aggs['s']: windows='1.5.1h' is not a duration"),
        (["1h", "1h"], "windows= of aggs['s'], '1h', is there twice"),
        (sw.session("5m"), "aggs['s']: session('5m') is a window of hopping"),
    ],
)
def test_wrong_windows_are_refused(windows: Any, message: str) -> None:
    with pytest.raises(sw.SpecError, match=re.escape(message)):
        sw.Spec(on="t", aggs={"s": sw.sum("x", windows=windows)})


def test_other_calls_refuse_them() -> None:
    aggs = {"s": sw.sum("x", windows=5)}
    with pytest.raises(sw.SpecError, match="hopping has a row per window, with all"):
        sw.hopping(ROWS, on="t", window=5, aggs=aggs)
    for given in (aggs, aggs["s"]):
        with pytest.raises(sw.SpecError, match="has windows=, which are for tables"):
            sw.Window(given)
    with pytest.raises(sw.SpecError, match="has windows=, which are for tables"):
        sw.SharedWindow(aggs["s"], ranges=[1, 5])
