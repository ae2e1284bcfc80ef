"""Quantiles, modes and distinct counts, also beside other libraries."""

import math
import pickle
import random
import statistics
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from tables_oracle import answer, same

import slidewise as sw
from slidewise.window.algorithms import ALGORITHMS

INTERPOLATIONS = ("linear", "lower", "higher", "nearest", "midpoint")
AGGS = {
    "d": sw.count_distinct("x"),
    "mode": sw.mode("x"),
    "median": sw.median("x"),
    "p90": sw.quantile("x", 0.9),
    "low": sw.quantile("x", 0.25, interpolation="lower"),
    "high": sw.quantile("x", 0.25, interpolation="higher"),
    "near": sw.quantile("x", 0.7, interpolation="nearest"),
    "mid": sw.quantile("x", 0.4, interpolation="midpoint"),
}


class Model:
    """A window by its definition: entries in a list."""

    def __init__(self, ties: str) -> None:
        self.ties = ties
        self.entries: list[tuple[int, list[Any]]] = []

    def insert(self, time: int, value: Any) -> None:
        at = sum(present <= time for present, _ in self.entries)
        if self.ties == "combine" and at and self.entries[at - 1][0] == time:
            self.entries[at - 1][1].append(value)
        else:
            self.entries.insert(at, (time, [value]))

    def evict(self, time: int) -> bool:
        for at, (present, _) in enumerate(self.entries):
            if present == time:
                del self.entries[at]
                return True
        return False

    def evict_until(self, time: int) -> int:
        before = len(self.entries)
        self.entries = [entry for entry in self.entries if entry[0] > time]
        return before - len(self.entries)

    def query(self, lo: int = -(10**9), hi: int = 10**9) -> dict[str, Any]:
        inside = [values for time, values in self.entries if lo <= time <= hi]
        column = {"x": [value for values in inside for value in values]}
        rows = list(range(len(column["x"])))
        return {name: answer(agg, rows, column) for name, agg in AGGS.items()}


def agree(got: dict[str, Any], expected: dict[str, Any]) -> bool:
    return all(same(got[name], expected[name]) for name in expected)


@pytest.mark.parametrize("algorithm", ["auto", "recalculate"])
@pytest.mark.parametrize("ties", ["combine", "keep"])
@pytest.mark.parametrize("floats", [False, True])
def test_a_window_is_its_definition(algorithm: str, ties: str, floats: bool) -> None:
    for seed in range(8):
        draw = random.Random(seed)
        spread = draw.choice([3, 10**12])

        def value(draw: random.Random = draw, spread: int = spread) -> Any:
            if draw.random() < 0.1:
                odd = [None, None, math.nan, math.inf] if floats else [None]
                return draw.choice(odd)
            number = draw.randint(-spread, spread)
            return number / 8 if floats else number

        options: Any = {"dtype": "float64" if floats else "int64"}
        w = sw.Window(AGGS, algorithm=algorithm, ties=ties, **options)
        model = Model(ties)
        for step in range(150):
            do_the_same(draw, w, model, value)
            assert agree(w.query(), model.query()), (seed, step)
            assert len(w) == len(model.entries)
            if step % 25 == 0:
                w.check()
                for other in (w.copy(), pickle.loads(pickle.dumps(w))):
                    assert str(other.query()) == str(w.query())
                    assert str(other.items()) == str(w.items())
                    other.check()
                    other.clear()
                    assert (len(other), other.query()["median"]) == (0, None)


def do_the_same(draw: random.Random, w: sw.Window, model: Model, value: Any) -> None:
    time = draw.randrange(40)
    match draw.randrange(8):
        case 0 | 1 | 2:
            given = value()
            w.insert(time, {"x": given})
            model.insert(time, given)
        case 3:
            times = [draw.randrange(40) for _ in range(draw.randrange(9))]
            values = [value() for _ in times]
            w.insert_many(times, {"x": values})
            for at in sorted(range(len(times)), key=times.__getitem__):
                model.insert(times[at], values[at])
        case 4 if model.entries:
            assert w.evict() == model.entries.pop(0)[0]
        case 5:
            assert w.evict(time) == model.evict(time)
        case 6 if draw.random() < 0.2:
            assert w.evict_until(time) == model.evict_until(time)
        case _:
            assert agree(w.query(time, time + 9), model.query(time, time + 9))


@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
@pytest.mark.parametrize("q", [0, 0.1, 0.25, 0.5, 0.9, 0.99, 1])
def test_quantiles_are_those_of_numpy(q: float, interpolation: Any) -> None:
    values = [float(value) for value in np.random.default_rng(7).normal(5, 3, 257)]
    w = sw.Window(sw.quantile(q, interpolation=interpolation))
    w.insert_many(range(257), values)
    for size in (257, 100, 8, 3, 2, 1):
        w.evict_until(256 - size)
        expected = np.quantile(values[257 - size :], q, method=interpolation)
        assert w.query() == pytest.approx(expected, rel=1e-15)
        assert w.query(hi=10**6) == w.query(0, 300) == w.query()


def test_results_have_the_types_one_expects() -> None:
    w = sw.Window(
        {
            "median": sw.median("x"),
            "lower": sw.quantile("x", 0.5, interpolation="lower"),
            "mode": sw.mode("x"),
            "d": sw.count_distinct("x"),
        }
    )
    w.insert_many([1, 2], {"x": [3, 4]})
    got = w.query()
    assert got == {"median": 3.5, "lower": 3, "mode": 3, "d": 2}
    kinds = [type(value) for value in got.values()]
    assert kinds == [float, int, int, int]


def test_nulls_and_nans() -> None:
    w = sw.Window(
        {"m": sw.median("x"), "mode": sw.mode("x"), "d": sw.count_distinct("x")}
    )
    assert w.query() == {"m": None, "mode": None, "d": 0}
    w.insert_many([1, 2, 3, 4], {"x": [1.0, None, math.nan, -math.nan]})
    assert math.isnan(w.query()["m"])
    assert math.isnan(w.query()["mode"])
    assert w.query()["d"] == 2
    w.evict_until(1)
    w.evict(3)
    w.evict(4)
    assert w.query() == {"m": None, "mode": None, "d": 0}
    w.insert(9, {"x": -0.0})
    w.insert(10, {"x": 0.0})
    assert w.query() == {"m": 0.0, "mode": 0.0, "d": 1}
    skipping = sw.Window(sw.median(), nan="skip")
    skipping.insert_many([1, 2, 3], [1.0, math.nan, 4.0])
    assert skipping.query() == 2.5


def test_integers_are_compared_exactly() -> None:
    w = sw.Window({"d": sw.count_distinct("x"), "q": sw.quantile("x", 1)})
    w.insert_many([1, 2], {"x": [2**62, 2**62 + 1]})
    assert w.query()["d"] == 2
    ends = sw.Window(sw.median())
    ends.insert_many([1, 2], [-(2**63), 2**63 - 1])
    assert ends.query() == -0.5 or ends.query() == 0.0


def test_where_and_last_go_with_them() -> None:
    w = sw.Window({"m": sw.median("x", where="ok")}, last=10)
    w.insert_many([1, 2, 3], {"x": [1, 5, 9], "ok": [True, False, True]})
    assert w.query() == {"m": 5.0}
    w.insert(12, {"x": 2, "ok": True})
    assert (w.query(), len(w)) == ({"m": 5.5}, 2)


@pytest.mark.parametrize("name", sorted(set(ALGORITHMS) - {"fiba", "recalculate"}))
def test_algorithms_that_combine_refuse_them(name: str) -> None:
    with pytest.raises(sw.SpecError, match=r"holistic .*\(median\(\)\) need all"):
        sw.Window({"m": sw.median(), "s": sw.sum()}, algorithm=name)


def test_auto_accepts_every_hint() -> None:
    for prefer in (None, "throughput", "latency"):
        w = sw.Window(sw.median(), prefer=prefer)  # type: ignore[arg-type]
        w.insert_many([3, 1, 2], [1, 2, 3])
        assert (w.evict(2), w.query(), w.algorithm) == (True, 1.5, "fiba")
        assert "need all values" in w.explain().replace("\n  ", " ")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: sw.quantile(1.5), "from 0 to 1"),
        (lambda: sw.quantile("x", math.nan), "from 0 to 1"),
        (lambda: sw.quantile("x", True), "from 0 to 1"),
        (lambda: sw.quantile(0.5, 0.5), "a column and q="),
        (lambda: sw.quantile("x", 0.5, interpolation="cubic"), "linear, lower"),
        (lambda: sw.Aggregation("sum", "x", q=0.9), "no q="),
    ],
)
def test_wrong_arguments_are_refused(make: Any, words: str) -> None:
    with pytest.raises(sw.SpecError, match=words):
        make()


def test_how_they_are_written() -> None:
    assert repr(sw.quantile("x", 0.9)) == "quantile('x', q=0.9)"
    lower = sw.quantile(0.25, interpolation="lower")
    assert repr(lower) == "quantile(q=0.25, interpolation='lower')"
    assert (repr(sw.median()), repr(sw.mode("x"))) == ("median()", "mode('x')")


# Tables


def column(values: Any) -> pa.Table:
    return pa.table({"t": range(len(values)), "x": values})


@pytest.mark.parametrize(
    "values",
    [
        pa.array([2**63 + 5, 7, 2**63 + 5, None], pa.uint64()),
        pa.array([3, 1, 3, None], pa.int8()),
        pa.array([1.5, 0.5, 1.5, None], pa.float32()),
        pa.array([True, False, True, None]),
        pa.array(["b", "a", "b", None]),
        pa.array([b"b", b"a", b"b", None]),
        pa.array([30, 10, 30, None], pa.timestamp("ms", "UTC")),
        pa.array([30, 10, 30, None], pa.duration("s")),
        pa.array([30, 10, 30, None], pa.date32()),
        pa.array([Decimal("1.5"), Decimal("0.5"), Decimal("1.5"), None]),
    ],
)
def test_columns_of_any_type(values: pa.Array) -> None:
    aggs = {
        "d": sw.count_distinct("x"),
        "mode": sw.mode("x"),
        "low": sw.quantile("x", 0, interpolation="lower"),
        "high": sw.quantile("x", 1, interpolation="nearest"),
    }
    out = sw.rolling(column(values), on="t", windows=9, aggs=aggs)
    big, small = values[0].as_py(), values[1].as_py()
    assert out["d_9"].to_pylist() == [1, 2, 2, 2]
    assert out["mode_9"].to_pylist() == [big, small, big, big]
    assert out["low_9"].to_pylist() == [big, small, small, small]
    assert out["high_9"].to_pylist() == [big, big, big, big]
    assert {out[name].type for name in ("mode_9", "low_9", "high_9")} == {values.type}


def test_types_that_do_not_interpolate_are_refused() -> None:
    table = column(pa.array([1, 2], pa.timestamp("s")))
    with pytest.raises(sw.SpecError, match="interpolation='lower'"):
        sw.rolling(table, on="t", windows=2, aggs={"q": sw.quantile("x", 0.5)})
    with pytest.raises(sw.SpecError, match="median takes"):
        sw.rolling(column(["a"]), on="t", windows=2, aggs={"m": sw.median("x")})


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("window", [7, 400, sw.rows(50)])
def test_long_tables_against_pandas_and_sql(window: Any, shuffled: bool) -> None:
    """Windows that cross the chunks that kernels sort."""
    draw = np.random.default_rng(3)
    count = 40_000
    frame = pd.DataFrame(
        {
            "t": np.cumsum(draw.integers(1, 3, count)),
            "v": draw.normal(100, 15, count),
            "i": draw.integers(0, 50, count),
        }
    )
    frame.loc[draw.random(count) < 0.05, "v"] = None
    given = frame.sample(frac=1, random_state=5) if shuffled else frame
    aggs = {
        "p90": sw.quantile("v", 0.9),
        "med": sw.median("v"),
        "low": sw.quantile("v", 0.3, interpolation="lower"),
        "mode": sw.mode("i"),
        "d": sw.count_distinct("i"),
        "dv": sw.count_distinct("v"),
    }
    label = "50rows" if not isinstance(window, int) else str(window)
    out = sw.rolling(given, on="t", windows=window, aggs=aggs).sort_index()
    if isinstance(window, int):
        timed = frame.set_index(pd.to_datetime(frame["t"], unit="s"))
        frames = timed["v"].rolling(f"{window}s")
        over = f"ORDER BY t RANGE BETWEEN {window - 1} PRECEDING AND CURRENT ROW"
    else:
        frames = frame["v"].rolling(50, min_periods=1)
        over = "ORDER BY t ROWS BETWEEN 49 PRECEDING AND CURRENT ROW"
    for name, expected in {
        "p90": frames.quantile(0.9),
        "med": frames.median(),
        "low": frames.quantile(0.3, interpolation="lower"),
    }.items():
        got = out[f"{name}_{label}"].to_numpy(dtype=float, na_value=np.nan)
        np.testing.assert_allclose(got, expected.to_numpy(), rtol=1e-12)
    # DuckDB returns the first of several modes, and NaN is a value there as here.
    table = pa.Table.from_pandas(frame)
    with duckdb.connect() as connection:
        connection.register("data", table)
        sql = connection.sql(
            "SELECT count(DISTINCT i) OVER w AS d, count(DISTINCT v) OVER w AS dv "
            f"FROM data WINDOW w AS ({over}) ORDER BY t"
        ).to_arrow_table()
    for name in ("d", "dv"):
        assert out[f"{name}_{label}"].tolist() == sql[name].to_pylist(), name
    times = frame["t"].to_numpy()
    for at in draw.integers(0, count, 300):
        first = max(at - 49, 0)
        if isinstance(window, int):
            first = times.searchsorted(times[at] - window, "right")
        seen = frame["i"][first : at + 1].tolist()
        assert out[f"mode_{label}"].iloc[at] == min(statistics.multimode(seen))


def test_thousands_of_short_groups() -> None:
    draw = np.random.default_rng(11)
    count = 30_000
    frame = pd.DataFrame(
        {
            "t": draw.integers(0, 10**6, count),
            "k": draw.integers(0, 5_000, count),
            "v": draw.integers(0, 9, count),
        }
    ).sort_values("t", ignore_index=True)
    aggs = {"m": sw.median("v"), "d": sw.count_distinct("v"), "mode": sw.mode("v")}
    out = sw.rolling(frame, on="t", by="k", windows=sw.rows(3), aggs=aggs)
    groups = frame.groupby("k")["v"]
    for name, expected in {
        "m": groups.rolling(3, min_periods=1).median(),
        "d": groups.rolling(3, min_periods=1).apply(lambda v: len(set(v)), raw=True),
        "mode": groups.rolling(3, min_periods=1).apply(
            lambda v: min(statistics.multimode(v)), raw=True
        ),
    }.items():
        expected = expected.droplevel(0).sort_index()
        got = out[f"{name}_3rows"].to_numpy(dtype=float)
        np.testing.assert_array_equal(got, expected.to_numpy())


# Objects


WORDS = ["b", "a", "", "ß", b"a", (1, "x"), 7, 7.0, 2.5, True, Decimal("2.5"), None]


@pytest.mark.parametrize("ties", ["combine", "keep"])
def test_objects_count_as_keys_of_a_dict_do(ties: Any) -> None:
    for seed in range(6):
        draw = random.Random(seed)
        w = sw.Window(sw.count_distinct(), dtype="object", ties=ties)
        model = Model(ties)
        for step in range(120):
            time = draw.randrange(30)
            match draw.randrange(6):
                case 0 | 1 | 2:
                    value = draw.choice(WORDS)
                    w.insert(time, value)
                    model.insert(time, value)
                case 3:
                    assert w.evict(time) == model.evict(time)
                case 4 if draw.random() < 0.2:
                    assert w.evict_until(time) == model.evict_until(time)
                case _:
                    w.insert_many([time, time], ["ß", "a"])
                    model.insert(time, "ß")
                    model.insert(time, "a")
            values = [value for _, values in model.entries for value in values]
            assert w.query() == len(set(values) - {None}), (seed, step)
            w.check()
        assert w.copy().query() == w.query()
        w.clear()
        w.check()


def test_text_in_windows_and_snapshots() -> None:
    w = sw.Window({"d": sw.count_distinct(), "m": sw.mode()}, dtype="object")
    w.insert_many(range(5), ["b", "a", "b", None, "a"])
    assert w.query() == {"d": 2, "m": "a"}
    assert w.query(0, 2) == {"d": 2, "m": "b"}
    for other in (sw.Window.from_bytes(w.to_bytes()), pickle.loads(pickle.dumps(w))):
        other.check()
        assert other.items() == w.items()
        other.insert_many([8, 9], ["c" * 2, "cc"])
        other.evict_until(3)
        other.check()
        assert other.query() == {"d": 2, "m": "cc"}
        assert other.query(4, 4) == {"d": 1, "m": "a"}


def test_nans_are_one_key() -> None:
    w = sw.Window({"d": sw.count_distinct(), "m": sw.mode()}, dtype="object")
    w.insert_many([1, 2, 3], [math.nan, float("nan"), "x"])
    assert w.query()["d"] == 2
    assert math.isnan(sw.Window.from_bytes(w.to_bytes()).query()["m"])
    skipping = sw.Window(sw.count_distinct(), dtype="object", nan="skip")
    skipping.insert(1, math.nan)
    assert skipping.query() == 0


def test_unhashable_and_incomparable_values_are_refused() -> None:
    w = sw.Window({"d": sw.count_distinct(), "m": sw.mode()}, dtype="object")
    w.insert(1, "a")
    with pytest.raises(sw.SpecError, match="dict's key"):
        w.insert(2, ["a"])
    with pytest.raises(sw.SpecError, match=r"row 1: .* dict's key"):
        w.insert_many([2, 3], ["a", {}])
    assert (len(w), w.query()) == (1, {"d": 1, "m": "a"})
    w.insert(2, 1)
    with pytest.raises(sw.SpecError, match="do not compare"):
        w.query()


class Word:
    alive = 0

    def __init__(self, text: str) -> None:
        self.text = text
        Word.alive += 1

    def __hash__(self) -> int:
        return hash(self.text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Word) and self.text == other.text

    def __del__(self) -> None:
        Word.alive -= 1


def test_of_equal_objects_one_is_kept_until_the_last_leaves() -> None:
    w = sw.Window(sw.count_distinct(), dtype="object", last=10)
    for time in range(500):
        w.insert(time, Word(f"w{time % 7}"))
    assert (w.query(), Word.alive) == (7, 7)
    w.check()
    w.clear()
    assert Word.alive == 0


def test_a_comparison_that_fails_or_calls_back_changes_nothing() -> None:
    w = sw.Window(sw.count_distinct(), dtype="object")

    class Odd:
        raises: Any = None

        def __hash__(self) -> int:
            return 1

        def __eq__(self, other: object) -> bool:
            if self.raises is not None:
                raise self.raises
            w.query()
            return False

    w.insert(1, Odd())
    with pytest.raises(sw.WindowBusyError):
        w.insert(2, Odd())
    Odd.raises = ValueError("odd")
    with pytest.raises(ValueError, match="odd"):
        w.insert(2, Odd())
    assert (len(w), w.query()) == (1, 1)
    w.check()
