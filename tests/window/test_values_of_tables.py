"""A window refuses the values that `rolling` refuses, unless `dtype="object"`."""

import re
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any

import pyarrow as pa
import pytest
from definitions import COMPARED, OF_TIMES, PAIRS, PARAMETERS

import slidewise as sw
from slidewise.aggregations.records import kinds

VALUES: dict[str, list[Any]] = {
    "ints": [1, 2],
    "floats": [1.5, 2.5],
    "bools": [True, False],
    "text": ["12.5", "3"],
    "bytes": [b"a", b"b"],
    "dates": [date(2024, 1, 1), date(2024, 1, 2)],
    "datetimes": [datetime(2024, 1, 1), datetime(2024, 1, 2)],
    "timedeltas": [timedelta(1), timedelta(2)],
    "decimals": [Decimal("1.5"), Decimal("2.5")],
    "lists": [[1], [2]],
    "nothing": [None, None],
}
# A window joins lists, too, as `concat` says.
EXCEPT = {("concat", "lists")}
SKETCHES = ("approx_count_distinct", "approx_quantile", "bloom", "count_min")
KINDS_OF_TABLES = (*(kind for kind in kinds() if kind not in OF_TIMES), *SKETCHES)
ARITHMETIC = ("sum", "mean", "product", "sum_of_squares", "geometric_mean", "range")
ARITHMETIC += ("variance", "stddev", "skewness", "kurtosis", "median", "any", "all")


def of_x(kind: str) -> sw.Aggregation:
    make: Callable[..., sw.Aggregation] = getattr(sw, kind)
    if kind in COMPARED:
        return make("x", by="x")
    if kind in PAIRS:
        return make("x", "x")
    return make("x", **PARAMETERS.get(kind, {}))


def refusal(call: Callable[[], object]) -> str | None:
    try:
        call()
    except sw.SpecError as error:
        return str(error)
    return None


def over_rows(kind: str, table: pa.Table) -> Callable[[], object]:
    aggs = {"a": of_x(kind)}
    return partial(sw.rolling, table, on="t", windows=9, aggs=aggs)


def insert_one(window: sw.Window | sw.SharedWindow, values: list[Any]) -> None:
    for time, value in enumerate(values):
        window.insert(time, {"x": value})


def insert_list(window: sw.Window | sw.SharedWindow, values: list[Any]) -> None:
    window.insert_many(range(len(values)), {"x": values})


def insert_table(window: sw.Window | sw.SharedWindow, values: list[Any]) -> None:
    window.insert_many(range(len(values)), pa.table({"x": values}))


INSERTS = [insert_one, insert_list, insert_table]


@pytest.mark.parametrize("insert", INSERTS)
@pytest.mark.parametrize("name", VALUES)
def test_a_window_refuses_what_rolling_refuses(name: str, insert: Any) -> None:
    table = pa.table({"t": [1, 2], "x": VALUES[name]})
    taken = [kind for kind in KINDS_OF_TABLES if not refusal(over_rows(kind, table))]
    assert "count" in taken
    for kind in set(KINDS_OF_TABLES).difference(taken):
        if (kind, name) in EXCEPT:
            continue
        window = sw.Window({"a": of_x(kind)})
        if kind == "concat":  # the query joins values, and refuses them
            insert(window, VALUES[name])
            assert refusal(window.query)
        else:
            assert refusal(partial(insert, window, VALUES[name])), kind
            assert len(window) == 0


@pytest.mark.parametrize("kind", ARITHMETIC)
@pytest.mark.parametrize("insert", INSERTS)
def test_text_is_no_number(kind: str, insert: Any) -> None:
    table = pa.table({"t": [1, 2], "x": VALUES["text"]})
    rolling = refusal(over_rows(kind, table))
    assert rolling is not None
    shared = [sw.SharedWindow(of_x(kind), ranges=[2])] if kind != "median" else []
    for window in (sw.Window(of_x(kind)), *shared):
        message = refusal(partial(insert, window, VALUES["text"]))
        assert message is not None
        words = f"{kind} takes "
        rest = message.partition(words)[2]
        assert re.search(
            rf"{kind}\('x'\) does not fit|does not fit {kind}\('x'\)", message
        )
        accepted = rolling.partition(words)[2].partition(". ")[0]
        if not getattr(sw, kind)().record.keeps_objects:  # such as durations
            accepted = "integers and floats, bool"
        assert rest.startswith(f"{accepted}. ")
        assert "dtype='object'" in rest or "float()" in rest
        assert len(window) == 0


@pytest.mark.parametrize("many", [False, True])
def test_text_after_decimals_is_refused(many: bool) -> None:
    window = sw.Window(sw.sum())
    window.insert(1, Decimal("12.5"))
    with pytest.raises(sw.SpecError, match=r"sum\(\) does not fit str '3': sum takes"):
        window.insert_many([2], ["3"]) if many else window.insert(2, "3")
    assert window.query() == Decimal("12.5")


def test_objects_are_added_and_compared_where_the_caller_says_so() -> None:
    joined = sw.Window(sw.sum(), dtype="object")
    joined.insert_many([1, 2], ["12.5", "3"])
    assert joined.query() == "12.53"
    again = sw.Window.from_bytes(joined.to_bytes())
    again.insert(3, "!")
    assert again.query() == "12.53!"
    pairs = sw.Window(sw.max(), dtype="object")
    pairs.insert_many([1, 2], [(2, "b"), (2, "a")])
    assert pairs.query() == (2, "b")
    with pytest.raises(sw.SpecError, match=r"max\(\) does not fit tuple .*'object'"):
        sw.Window(sw.max()).insert(1, (2, "b"))


def test_a_restored_window_refuses_alike() -> None:
    window = sw.Window(sw.sum())
    window.insert(1, timedelta(1))
    copies = [window.copy(), sw.Window.from_bytes(window.to_bytes())]
    for again in copies:
        with pytest.raises(sw.SpecError, match=r"sum\(\) does not fit str"):
            again.insert(2, "a")
        again.insert(2, timedelta(2))
        assert again.query() == timedelta(3)


def test_bools_have_no_range() -> None:
    for values in ([True, False], pa.array([True, False]), iter([True, False])):
        window = sw.Window({"r": sw.range(), "s": sw.sum()})
        with pytest.raises(sw.SpecError, match=r"range\(\) does not fit bool: range"):
            window.insert_many([1, 2], values)
        window.insert_many([1, 2], pa.array([None, None], pa.bool_()))
        assert window.query() == {"r": None, "s": None}
    window = sw.Window(sw.range())
    window.insert(1, 5)
    with pytest.raises(sw.SpecError, match=r"range\(\) does not fit bool"):
        window.insert(2, True)
    assert sw.Window(sw.range(), dtype="object").insert(1, True) is None
