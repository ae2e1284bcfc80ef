"""User-defined aggregations that see times, several columns or the ends of windows."""

import pickle
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

import slidewise as sw


@sw.aggregation
class Paid:
    """The mean price, weighted by sizes."""

    identity = (0, 0)

    def lift(self, price: float, size: int) -> tuple[float, int]:
        return (price * size, size)

    def combine(self, a: Any, b: Any) -> tuple[float, int]:
        return (a[0] + b[0], a[1] + b[1])

    def lower(self, partial: Any) -> float:
        paid, size = partial
        return paid / size


@sw.aggregation
class Held:
    """The times and values of the entries, and both ends of the window."""

    identity = ()

    @staticmethod
    def lift(time: Any, x: int, y: int) -> tuple[Any, ...]:
        return ((time, x + y),)

    @staticmethod
    def combine(a: Any, b: Any) -> Any:
        return a + b

    @staticmethod
    def lower(partial: Any, start: Any, end: Any) -> str:
        return f"{start} {end} {partial}"


paid: Any = Paid
held: Any = Held
since: Any = sw.aggregation(
    lambda time, x: (time, x),
    combine=lambda a, b: max(a, b),
    lower=lambda partial, end: end - partial[0],
    identity=(0, 0),
    name="test_seen:since",
)
TABLE = pa.table(
    {
        "k": [1, 1, 2, 1],
        "t": [1, 4, 5, 9],
        "x": [2, None, 3, 4],
        "y": [1, 2, 3, 4],
        "w": [True, True, None, True],
    }
)
AGGS = {
    "paid": paid("x", "y"),
    "held": held("x", "y", where="w"),
    "since": since("y"),
}


def test_tables_pass_what_the_functions_see() -> None:
    out = sw.rolling(TABLE, on="t", by="k", windows=[6, sw.rows(2)], aggs=AGGS)
    assert out["paid_6"].to_pylist() == [2.0, 2.0, 3.0, 4.0]
    assert out["held_6"].to_pylist() == [
        "-5 1 ((1, 3),)",
        "-2 4 ((1, 3),)",
        None,
        "3 9 ((9, 8),)",
    ]
    assert out["held_2rows"][3].as_py() == "None 9 ((9, 8),)"
    assert out["since_6"].to_pylist() == [0, 0, 0, 0]
    at = pa.table({"k": [2, 1], "t": [10, 20]})
    asked = sw.rolling(TABLE, on="t", by="k", windows=6, aggs=AGGS, at=at)
    assert asked["paid_6"].to_pylist() == [3.0, None]
    assert asked["since_6"].to_pylist() == [5, None]
    few = sw.rolling(TABLE, on="t", windows=2, aggs=AGGS, min_rows=2)
    assert few["paid_2"].null_count == 4  # one row of two lacks x
    hop = sw.hopping(TABLE, on="t", by="k", window=6, every=6, aggs=AGGS).to_pylist()
    assert [row["held"] for row in hop] == ["0 6 ((1, 3),)", "6 12 ((9, 8),)", None]
    assert [row["since"] for row in hop] == [2, 3, 1]


@pytest.mark.parametrize("emit", ["final", "arrival"])
def test_streams_pass_what_the_functions_see(emit: str) -> None:
    spec = sw.Spec(on="t", by="k", windows=6, aggs=AGGS)
    kw = sw.KeyedWindows(spec, late=3, emit=emit)
    kw.ingest(TABLE)
    assert kw.query(1, at=11) == {
        "paid_6": 4.0,
        "held_6": "5 11 ((9, 8),)",
        "since_6": 2,
    }
    more = {"x": 1, "y": 4, "w": True}
    assert kw.query(1, at=11, plus=more)["paid_6"] == 2.5
    kw.advance(99)
    want = sw.rolling(TABLE, spec)
    assert kw.collect().sort_by("t").to_pylist() == want.to_pylist()


def test_times_are_those_of_the_table() -> None:
    start = datetime(2024, 1, 1)
    times = [start, start + timedelta(hours=2)]
    table = pa.table({"t": times, "y": [1, 2]})
    aggs = {"since": since("y", where="w")}
    table = table.append_column("w", pa.array([True, False]))
    out = sw.rolling(table, on="t", windows="9h", aggs=aggs)
    assert out["since_9h"].to_pylist() == [timedelta(0), timedelta(hours=2)]


def test_a_struct_column_is_still_one_value() -> None:
    joined: Any = sw.aggregation(
        lambda row: row["a"] * row["b"], combine=lambda a, b: a + b, identity=0
    )
    table = pa.table({"t": [1, 2], "s": [{"a": 2, "b": 3}, {"a": 1, "b": 4}]})
    out = sw.rolling(table, on="t", windows=9, aggs={"p": joined("s")})
    assert out["p_9"].to_pylist() == [6, 10]


def test_one_parameter_is_the_value_whatever_its_name() -> None:
    last: Any = sw.aggregation(lambda time: time, combine=max, identity=0)
    out = sw.rolling(TABLE, on="t", windows=9, aggs={"l": last("y")})
    assert out["l_9"].to_pylist() == [1, 2, 3, 4]


def test_several_columns_are_shown_written_and_pickled() -> None:
    assert repr(paid("x", "y")) == "Paid('x', 'y')"
    assert paid("x", "y").columns == ("x", "y")
    assert pickle.loads(pickle.dumps(AGGS)) == AGGS
    spec = sw.Spec(on="t", windows=6, aggs={"paid": paid("x", "y")})
    assert sw.Spec.from_json(spec.to_json()) == spec


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: paid("x"), r"takes 2 columns, as its lift does \(price, size\)"),
        (lambda: held("x", "y", "w"), r"takes 2 columns, as its lift does \(x, y\)"),
        (lambda: sw.Spec(on="t", windows=6, aggs={"p": paid}), "needs 2 columns"),
        (lambda: sw.Window(AGGS), "sees times, several columns or the ends of windows"),
        (
            lambda: sw.Window(since()),
            "which a Window does not pass: give it to rolling",
        ),
    ],
)
def test_other_numbers_of_columns_are_refused(
    call: Callable[[], object], words: str
) -> None:
    with pytest.raises(sw.SpecError, match=words):
        call()


def test_results_that_see_the_end_change_with_the_time() -> None:
    """So no stream can tell when they change, as of `since_last`."""
    own = sw.aggregation(
        combine=lambda a, b: a + b,
        lower=lambda partial, end: (partial, end),
        identity=0,
    )
    given = {"on": "t", "windows": 5, "aggs": {"n": own("x")}}
    rows = pa.table({"t": [1], "x": [2]})
    windows = sw.KeyedWindows(**given)
    windows.ingest(rows)
    with pytest.raises(sw.SpecError, match=r"valid_until=True asks when results chang"):
        windows.query((), at=3, valid_until=True)
    with pytest.raises(sw.SpecError, match=r"emit='change' asks when results change,"):
        sw.KeyedWindows(**given, emit="change", schema=rows.schema)
