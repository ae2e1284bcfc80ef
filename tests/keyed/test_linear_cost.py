"""The cost of a call by the windows, aggregations, columns and keys in it is linear."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from steps import CountedName, Steps, count_steps

import slidewise as sw

Call = Callable[[], Any]
X = {"a": sw.sum("x")}


def names(count: int) -> list[str]:
    return [CountedName(f"c{at}") for at in range(count)]


def rows(**columns: Any) -> pa.Table:
    return pa.table({"t": [1, 2, 3], "x": [1.0, 2.0, 3.0], **columns})


def wide(count: int) -> pa.Table:
    return rows(**{name: [1, 2, 3] for name in names(count)})


def many_keys(count: int) -> pa.Table:
    keys = list(range(count))
    return pa.table({"t": keys, "x": [1.0] * count, "k": keys})


def sums(count: int) -> dict[str, Any]:
    return {CountedName(f"a{at}"): sw.sum(name) for at, name in enumerate(names(count))}


def of_rows(count: int) -> list[Any]:
    return [sw.rows(at + 1) for at in range(count)]


Made = tuple[pa.Table, dict[str, Any]]
# Of each dimension: a table, and the keywords of a Spec.
ROLLING: dict[str, Callable[[int], Made]] = {
    "windows": lambda n: (rows(), {"windows": range(1, n + 1), "aggs": X}),
    "windows of rows": lambda n: (rows(), {"windows": of_rows(n), "aggs": X}),
    "aggregations": lambda n: (
        rows(),
        {"windows": 5, "aggs": {name: sw.sum("x") for name in names(n)}},
    ),
    "aggregated columns": lambda n: (wide(n), {"windows": 5, "aggs": sums(n)}),
    "other columns": lambda n: (wide(n), {"windows": 5, "aggs": X}),
    "by": lambda n: (wide(n), {"windows": 5, "aggs": X, "by": names(n)}),
    "keys": lambda n: (many_keys(n), {"windows": 5, "aggs": X, "by": "k"}),
}
HOPPING: dict[str, Callable[[int], Made]] = {
    "windows": lambda n: (
        rows(),
        {"windows": [sw.Query(at + 1) for at in range(n)], "aggs": X},
    ),
    "aggregated columns": lambda n: (wide(n), {"window": 5, "aggs": sums(n)}),
    "other columns": lambda n: (wide(n), {"window": 5, "aggs": X}),
    "by": lambda n: (wide(n), {"window": 5, "aggs": X, "by": names(n)}),
    "keys": lambda n: (many_keys(n), {"window": 5, "aggs": X, "by": "k"}),
}
ARRIVALS = {
    "arrival": lambda n: (wide(n), {"windows": 5, "aggs": X, "arrival": names(n)}),
}


def spec_calls(given: dict[str, Any], folder: Path) -> Iterator[Call]:
    spec = sw.Spec(on="t", **given)
    yield lambda: sw.Spec(on="t", **given)
    yield lambda: repr(spec)
    yield lambda: (spec == sw.Spec(on="t", **given), spec.hash)
    yield lambda: spec.replace(nan="skip")
    yield lambda: sw.Spec.from_json(spec.to_json())


def yaml_calls(given: dict[str, Any], folder: Path) -> Iterator[Call]:
    spec, file = sw.Spec(on="t", **given), folder / "spec.yaml"
    yield lambda: (spec.save(file), sw.Spec.load(file))


def table_calls(table: pa.Table, given: dict[str, Any]) -> Iterator[Call]:
    spec = sw.Spec(on="t", **given)
    yield lambda: sw.explain(table, spec)
    if spec.is_hopping:
        yield lambda: sw.hopping(table, spec)
        return
    yield lambda: sw.rolling(table, spec)
    points = table if spec.arrival else table.drop_columns("x")
    yield lambda: sw.rolling(table, spec, at=points)


def stream_calls(table: pa.Table, given: dict[str, Any]) -> Iterator[Call]:
    """A stream by every `emit=` and with corrections, its snapshots and queries."""
    spec = sw.Spec(on="t", **given)
    options: list[dict[str, Any]] = [{"emit": "arrival"}]
    if spec.is_hopping:
        options = [{}, {"late_rows": "correct"}]
    elif not spec.arrival:
        options += [{"emit": emit} for emit in ("final", "update", "change")]
        options += [{"late_rows": "flag", "then_by": "x"}]
    for each in options:

        def stream(each: dict[str, Any] = each) -> None:
            windows = sw.KeyedWindows(spec, late=1, **each)
            windows.ingest(table)
            windows.advance()
            windows.ingest(table)
            windows.advance(table["t"][-1].as_py())
            windows.collect()
            windows.explain()
            sw.KeyedWindows.from_bytes(windows.to_bytes(), spec)

        yield stream


def query_calls(table: pa.Table, given: dict[str, Any]) -> Iterator[Call]:
    spec = sw.Spec(on="t", **given)
    windows = sw.KeyedWindows(spec)
    windows.ingest(table)
    key = {name: table[name][0].as_py() for name in spec.by}
    points = table.select([*spec.by, "t"])
    longest = given["windows"]
    plus = dict.fromkeys(set(table.column_names) - {"t", *spec.by}, 1)
    yield lambda: windows.query(key)
    yield lambda: windows.query(key, windows=longest)
    yield lambda: windows.query(key, plus=plus, valid_until=True)
    yield lambda: windows.query_many(points)
    yield lambda: windows.query_many(points, at="t", valid_until=True)
    yield lambda: windows.query_many(table, at=3, plus=list(plus))
    yield lambda: (windows.keys(), repr(windows))


def assert_linear(calls: Callable[[int], Iterator[Call]], sizes: list[int]) -> None:
    """A step more per element at the third size than at the second is too many."""
    counts = [[count_steps(call) for call in calls(size)] for size in sizes]
    for at, (small, medium, large) in enumerate(zip(*counts, strict=True)):
        for kind in Steps._fields:
            few, more, most = (getattr(each, kind) for each in (small, medium, large))
            first = (more - few) / (sizes[1] - sizes[0])
            second = (most - more) / (sizes[2] - sizes[1])
            assert second <= 1.2 * max(first, 0) + 1, (at, kind, few, more, most)


@pytest.mark.parametrize("dimension", [*ROLLING, *ARRIVALS])
def test_specs_and_tables_take_linear_time(dimension, tmp_path):
    made = (ROLLING | ARRIVALS)[dimension]

    def calls(size: int) -> Iterator[Call]:
        table, given = made(size)
        yield from spec_calls(given, tmp_path)
        yield from table_calls(table, given)

    assert_linear(calls, [10, 40, 160])


@pytest.mark.parametrize("dimension", HOPPING)
def test_hopping_takes_linear_time(dimension, tmp_path):
    def calls(size: int) -> Iterator[Call]:
        table, given = HOPPING[dimension](size)
        yield from spec_calls(given, tmp_path)
        yield from table_calls(table, given)

    assert_linear(calls, [10, 40, 160])


@pytest.mark.parametrize("dimension", [*ROLLING, *ARRIVALS])
def test_streams_take_linear_time(dimension):
    made = (ROLLING | ARRIVALS)[dimension]
    assert_linear(lambda size: stream_calls(*made(size)), [4, 12, 36])


@pytest.mark.parametrize("dimension", HOPPING)
def test_hopping_streams_take_linear_time(dimension):
    assert_linear(lambda size: stream_calls(*HOPPING[dimension](size)), [4, 12, 36])


@pytest.mark.parametrize("dimension", ROLLING)
def test_queries_take_linear_time(dimension):
    assert_linear(lambda size: query_calls(*ROLLING[dimension](size)), [8, 24, 72])


def test_windows_of_columns_are_planned_in_linear_time():
    def calls(size: int) -> Iterator[Call]:
        yield lambda: sw.Window(sums(size))
        yield lambda: sw.SharedWindow(sums(size), ranges=[5])

    assert_linear(calls, [10, 40, 160])


def test_yaml_takes_linear_time(tmp_path):
    pytest.importorskip("yaml")
    for made in (ROLLING["windows"], HOPPING["windows"], ROLLING["aggregations"]):
        assert_linear(
            lambda size, made=made: yaml_calls(made(size)[1], tmp_path), [4, 12, 36]
        )
