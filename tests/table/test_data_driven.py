"""Windows whose ends are rows, several slides, and both ends, against their meaning."""

import itertools
import random
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import slidewise as sw
from slidewise.spec.spec import Spec
from slidewise.table.batched_hopping import hopping_batches
from slidewise.table.batched_rolling import Order, rolling_batches

Rows = list[dict[str, Any]]
JOINED = sw.aggregation(
    lift=lambda x: (x,), combine=lambda a, b: a + b, lower=list, identity=()
)
AGGS = {
    "n": sw.count(),
    "all": sw.collect("x"),
    "text": sw.concat("s"),
    "sum": sw.sum("x"),
    "top": sw.max("x"),
    "mid": sw.median("x"),
    "last": sw.last("x"),
    "own": JOINED("x"),
}
BY: list[list[str]] = [[], ["k"], ["k", "g"]]
TYPES = {
    "t": pa.int64(),
    "k": pa.string(),
    "g": pa.int64(),
    "x": pa.int64(),
    "s": pa.string(),
    "f": pa.bool_(),
    "d": pa.int64(),
}


def made(rng: random.Random) -> Rows:
    """Rows in any order; `d` rises over all of them in order of time."""
    count = rng.choice([0, 1, 2, 7, 40, 300])
    span = rng.choice([4, 60, 1000])
    flags = rng.choice(
        [[None], [True], [None, False, False, True], [False] * 30 + [True]]
    )
    rows = [
        {
            "t": rng.randrange(-span, span),
            "k": rng.choice(["a", "b", None]),
            "g": rng.choice([1, 2]),
            "x": rng.choice([None, *range(9)]),
            "s": rng.choice([None, "p", "q", "r"]),
            "f": rng.choice(flags),
        }
        for _ in range(count)
    ]
    value = rng.randrange(-20, 20)
    for row in sorted(rows, key=lambda row: row["t"]):
        value += rng.choice([0, 0, 1, 1, 2, 9])
        row["d"] = value
    return rows


def as_arrow(rows: Rows) -> pa.Table:
    return pa.table(
        {name: pa.array([row[name] for row in rows], of) for name, of in TYPES.items()}
    )


def keys_of(rows: Rows, by: list[str]) -> dict[tuple[Any, ...], list[int]]:
    """The rows of each key, in order of time, then as in the table."""
    found: dict[tuple[Any, ...], list[int]] = {}
    for at, row in enumerate(rows):
        found.setdefault(tuple(row[name] for name in by), []).append(at)
    return {
        key: sorted(own, key=lambda at: rows[at]["t"]) for key, own in found.items()
    }


def answers(rows: Rows, window: list[int], min_rows: int = 0) -> dict[str, Any]:
    x = [rows[at]["x"] for at in window if rows[at]["x"] is not None]
    s = [rows[at]["s"] for at in window if rows[at]["s"] is not None]
    ordered, middle = sorted(x), len(x) // 2
    found = {
        "n": len(window),
        "all": x if len(x) >= min_rows else None,
        "text": "".join(s) if s and len(s) >= min_rows else None,
    }
    some = bool(x) and len(x) >= min_rows
    return {
        **found,
        "sum": sum(x) if some else None,
        "top": max(x) if some else None,
        "mid": (ordered[middle] + ordered[~middle]) / 2 if some else None,
        "last": x[-1] if some else None,
        "own": x if some else None,
    }


def rolled(
    rows: Rows, by: list[str], window: Callable[[list[int]], list[int]], label: str
) -> Rows:
    """Each row with the answers over what `window` keeps of those up to it."""
    found: Rows = [{} for _ in rows]
    for own in keys_of(rows, by).values():
        for place, at in enumerate(own):
            named = answers(rows, window(own[: place + 1]))
            found[at] = {f"{name}_{label}": value for name, value in named.items()}
    return found


def only(table: pa.Table, label: str) -> Rows:
    """The answers of one window, of every row."""
    return table.select([f"{name}_{label}" for name in AGGS]).to_pylist()


@pytest.mark.parametrize("by", BY, ids=str)
@pytest.mark.parametrize("seed", range(25))
def test_delta_goes_back_to_the_first_that_is_too_far(seed: int, by: list[str]) -> None:
    rng = random.Random(seed)
    rows = made(rng)
    width = rng.choice([1, 2, 5, 40, 10**30])

    def near(upto: list[int]) -> list[int]:
        now = rows[upto[-1]]["d"]
        back = itertools.takewhile(
            lambda at: now - rows[at]["d"] <= width, reversed(upto)
        )
        return list(back)[::-1]

    label = f"delta_d_{width}"
    windows = [3, sw.delta("d", width), sw.rows(4)]
    got = sw.rolling(as_arrow(rows), on="t", by=by, windows=windows, aggs=AGGS)
    assert only(got, label) == rolled(rows, by, near, label)
    assert only(got, "4rows") == rolled(rows, by, lambda upto: upto[-4:], "4rows")
    alone = sw.rolling(as_arrow(rows), on="t", by=by, windows=3, aggs=AGGS)
    assert only(got, "3") == only(alone, "3")


@pytest.mark.parametrize("by", BY, ids=str)
@pytest.mark.parametrize("seed", range(25))
def test_landmark_begins_at_the_last_row_with_a_flag(seed: int, by: list[str]) -> None:
    rows = made(random.Random(seed))

    def since(upto: list[int]) -> list[int]:
        marks = [place for place, at in enumerate(upto) if rows[at]["f"] is True]
        return upto[marks[-1] if marks else 0 :]

    windows = [sw.landmark("f"), 50]
    got = sw.rolling(as_arrow(rows), on="t", by=by, windows=windows, aggs=AGGS)
    label = "landmark_f"
    assert only(got, label) == rolled(rows, by, since, label)


def closed_by(rows: Rows, by: list[str], closes: Callable[[list[int]], bool]) -> Any:
    """Key and rows of each window that is closed, by key, then in order."""
    for key, own in keys_of(rows, by).items():
        window: list[int] = []
        for place, at in enumerate(own):
            window.append(at)
            if closes(own[: place + 1]):
                yield dict(zip(by, key, strict=True)), window, own[: place + 1]
                window = []


@pytest.mark.parametrize("by", BY, ids=str)
@pytest.mark.parametrize("seed", range(25))
def test_until_closes_a_window_at_a_flag(seed: int, by: list[str]) -> None:
    rng = random.Random(seed)
    rows, min_rows = made(rng), rng.choice([0, 0, 2])
    got = sw.hopping(
        as_arrow(rows),
        on="t",
        by=by,
        window=sw.until("f"),
        aggs=AGGS,
        min_rows=min_rows,
    )
    expected = [
        {
            **key,
            "window_start": rows[window[0]]["t"],
            "window_end": rows[window[-1]]["t"],
            **answers(rows, window, min_rows),
        }
        for key, window, _ in closed_by(rows, by, lambda upto: rows[upto[-1]]["f"])
    ]
    assert got.to_pylist() == expected


@pytest.mark.parametrize("by", BY, ids=str)
@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("of", ["rows", "time"])
def test_slides_by_rows_answer_every_nth_row(of: str, seed: int, by: list[str]) -> None:
    rng = random.Random(seed)
    rows = made(rng)
    every, length = rng.choice([1, 2, 3, 10]), rng.choice([1, 2, 5, 70])
    got = sw.hopping(
        as_arrow(rows),
        on="t",
        by=by,
        window=sw.rows(length) if of == "rows" else length,
        every=sw.rows(every),
        aggs=AGGS,
    )
    expected = []
    for key, _, upto in closed_by(rows, by, lambda upto: len(upto) % every == 0):
        end = rows[upto[-1]]["t"]
        if of == "rows":
            window = upto[-length:]
            start = rows[window[0]]["t"]
        else:
            start = end - length
            window = [at for at in upto if rows[at]["t"] > start]
        ends = {"window_start": start, "window_end": end}
        expected.append({**key, **ends, **answers(rows, window)})
    assert got.to_pylist() == expected


def test_rows_tumble() -> None:
    table = pa.table({"t": [3, 1, 2, 9, 4], "x": [3, 1, 2, 5, 4]})
    got = sw.hopping(table, on="t", window=sw.rows(2), aggs={"x": sw.collect("x")})
    assert got["x"].to_pylist() == [[1, 2], [3, 4]]
    assert got["window_start"].to_pylist() == [1, 3]


@pytest.mark.parametrize("by", BY, ids=str)
@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("closed", ["left", "right"])
def test_either_end_belongs_to_a_window(closed: str, seed: int, by: list[str]) -> None:
    rng = random.Random(seed)
    rows = made(rng)
    length, every = rng.randrange(1, 30), rng.randrange(1, 30)
    offset, empty = rng.randrange(-40, 40), rng.random() < 0.4
    got = sw.hopping(
        as_arrow(rows),
        on="t",
        by=by,
        window=length,
        every=every,
        offset=offset,
        empty=empty,
        closed=closed,
        aggs=AGGS,
    )
    expected = grid(rows, by, (length, every), closed, offset=offset, empty=empty)
    assert got.to_pylist() == expected


def grid(
    rows: Rows,
    by: list[str],
    hop: tuple[int, int],
    closed: str,
    *,
    offset: int = 0,
    empty: bool = False,
) -> Rows:
    """The windows of a grid, by key and time."""
    length, every = hop
    expected = []
    for key, own in keys_of(rows, by).items():
        first = min(rows[at]["t"] for at in own) - length - every
        last = max(rows[at]["t"] for at in own) + every
        found = []
        for start in range(first, last + 1):
            if (start - offset) % every:
                continue
            left = 0 if closed == "left" else 1
            inside = range(start + left, start + length + left)
            window = [at for at in own if rows[at]["t"] in inside]
            found.append((start, window))
        while found and not found[0][1]:
            found.pop(0)
        while found and not found[-1][1]:
            found.pop()
        for start, window in found:
            if window or empty:
                ends = {"window_start": start, "window_end": start + length}
                named = dict(zip(by, key, strict=True))
                expected.append({**named, **ends, **answers(rows, window)})
    return expected


@pytest.mark.parametrize("by", BY, ids=str)
@pytest.mark.parametrize("seed", range(15))
def test_several_windows_have_slides_of_their_own(seed: int, by: list[str]) -> None:
    rng = random.Random(seed)
    rows = made(rng)
    closed = rng.choice(["left", "right"])
    request: dict[str, Any] = {"on": "t", "by": by, "aggs": AGGS}
    alone: dict[str, dict[str, Any]] = {
        "7": {"window": 7, "closed": closed},
        "20 every 5": {"window": 20, "every": 5, "closed": closed},
        "3 every 11": {"window": 3, "every": 11, "closed": closed},
    }
    windows = [7, sw.Query(20, every=5), sw.Query(3, every=11)]
    got = sw.hopping(as_arrow(rows), windows=windows, closed=closed, **request)
    assert merged(rows, by, alone, request) == got.to_pylist()


@pytest.mark.parametrize("by", BY, ids=str)
@pytest.mark.parametrize("seed", range(15))
def test_several_windows_are_of_any_kind(seed: int, by: list[str]) -> None:
    rows = made(random.Random(seed))
    request: dict[str, Any] = {"on": "t", "by": by, "aggs": AGGS}
    alone: dict[str, dict[str, Any]] = {
        "until_f": {"window": sw.until("f")},
        "session_3": {"window": sw.session(3)},
        "5rows every 2rows": {"window": sw.rows(5), "every": sw.rows(2)},
        "9 every 4rows": {"window": 9, "every": sw.rows(4)},
        "30": {"window": 30},
    }
    windows = [
        sw.until("f"),
        sw.session(3),
        sw.Query(sw.rows(5), every=sw.rows(2)),
        sw.Query(9, every=sw.rows(4)),
        30,
    ]
    got = sw.hopping(as_arrow(rows), windows=windows, **request)
    assert merged(rows, by, alone, request) == got.to_pylist()


def merged(
    rows: Rows,
    by: list[str],
    alone: dict[str, dict[str, Any]],
    request: dict[str, Any],
) -> Rows:
    """The windows of several calls, by key, end, and as named."""
    found = []
    keys = list(keys_of(rows, by))
    for number, (name, window) in enumerate(alone.items()):
        for row in sw.hopping(as_arrow(rows), **window, **request).to_pylist():
            key = {column: row.pop(column) for column in by}
            rank = keys.index(tuple(key.values()))
            order = (rank, row["window_end"], number, row["window_start"])
            found.append((order, {**key, "window": name, **row}))
    # Windows by rows may begin and end at the same times, and stay in order.
    return [row for _, row in sorted(found, key=lambda each: each[0])]


def test_every_holds_for_the_windows_without_one() -> None:
    table = pa.table({"t": [1, 12]})
    got = sw.hopping(
        table,
        on="t",
        windows=[10, sw.Query(20, every=20)],
        every=5,
        aggs={"n": sw.count()},
    )
    named = zip(got["window"].to_pylist(), got["window_start"].to_pylist(), strict=True)
    assert list(named) == [
        ("10", -5),
        ("10", 0),
        ("10", 5),
        ("10", 10),
        ("20 every 20", 0),
    ]


def km(values: list[Any]) -> pa.Table:
    return pa.table({"t": range(len(values)), "km": values})


WIDTHS: list[tuple[pa.Array, Any, list[int]]] = [
    (pa.array([0.0, 0.1, 0.3, 0.3, 5e300]), 0.2, [1, 2, 2, 3, 1]),
    (pa.array([0.1, 0.2, 0.3]), Decimal("0.1"), [1, 2, 2]),
    (pa.array([-1.0, float("inf"), float("inf")]), 3, [1, 1, 2]),
    (pa.array([1, 3, 4], pa.int8()), 2.5, [1, 2, 2]),
    (pa.array([0, 2**63, 2**64 - 1], pa.uint64()), 2**63 - 1, [1, 1, 2]),
    (pa.array([-(2**63), 0, 2**63 - 1]), 2**63 - 1, [1, 1, 2]),
    (pa.array([Decimal("0.10"), Decimal("0.25")]), 0.15, [1, 2]),
    (pa.array([Decimal("0.10"), Decimal("0.26")]), 0.15, [1, 1]),
    (pa.array([date(2026, 1, 1), date(2026, 1, 3)]), "2d", [1, 2]),
    (pa.array([datetime(2026, 1, 1), datetime(2026, 1, 3)]), "47h", [1, 1]),
    (pa.array([timedelta(hours=1), timedelta(hours=3)]), timedelta(hours=2), [1, 2]),
    (pa.array([1, 3, 4]).dictionary_encode(), 1, [1, 1, 2]),
    (pa.array([], pa.null()), 1, []),
    (pa.array([], pa.decimal128(20, 2)), 1, []),
    (pa.array([0.0, 0.25, 0.5]), Fraction(1, 3), [1, 2, 2]),
    (pa.array([0.0, 1e308]), 10**400, [1, 2]),
    (pa.array([0.0, 1.0, 4.0]).cast(pa.float16()), 1, [1, 2, 1]),
    (pa.array([0.0, 1.0, 4.0], pa.float32()), 3, [1, 2, 2]),
]


@pytest.mark.parametrize(("values", "width", "expected"), WIDTHS, ids=str)
def test_delta_takes_columns_with_differences(
    values: pa.Array, width: Any, expected: list[int]
) -> None:
    window = sw.delta("km", width)
    table = pa.table({"t": pa.array(range(len(values)), pa.int64()), "km": values})
    got = sw.rolling(table, on="t", windows=window, aggs={"n": sw.count()})
    assert got[f"n_{window.label}"].to_pylist() == expected


@pytest.mark.parametrize("seed", range(20))
def test_delta_of_floats_subtracts_as_python_does(seed: int) -> None:
    rng = random.Random(seed)
    values = sorted(round(rng.random(), 2) for _ in range(300))
    got = sw.rolling(
        km(values), on="t", windows=sw.delta("km", 0.1), aggs={"n": sw.count()}
    )
    expected = [
        sum(now - then <= 0.1 for then in values[: at + 1])
        for at, now in enumerate(values)
    ]
    assert got["n_delta_km_0.1"].to_pylist() == expected


FALLS = pa.table({"t": [3, 1, 2], "k": ["a", "b", "a"], "km": [4.5, 0.0, 7.5]})


def test_a_column_that_falls_is_refused_with_its_rows() -> None:
    aggs = {"n": sw.count()}
    with pytest.raises(sw.SpecError) as error:
        sw.rolling(FALLS, on="t", by="k", windows=sw.delta("km", 5.0), aggs=aggs)
    assert str(error.value) == (
        "column 'km' falls from 7.5 in row 2 to 4.5 in row 0 (counting from 0) of "
        "k='a': sw.delta needs a column that does not fall in order of 't'"
    )


REFUSED: list[tuple[pa.Array, Any, str]] = [
    (pa.array([1.0, None]), 1, "'km' has no value in row 1"),
    (pa.array([1.0, float("nan")]), 1, "'km' has NaN in row 1"),
    (pa.array([1, 2]), "5m", "width='5m' is a duration, but column 'km' holds int64"),
    (pa.array([date(2026, 1, 1)] * 2), 5.0, "width='5.0' is a number, but column"),
    (pa.array([date(2026, 1, 1)] * 2), "5m", "width='5m' is not a whole number of"),
    (pa.array(["a", "b"]), 1, "column 'km' holds string: sw.delta takes integers"),
    (pa.array([True, True]), 1, "column 'km' holds bool: sw.delta takes integers"),
    (pa.array([None, None]), 1, "column 'km' holds null: sw.delta takes integers"),
    (pa.array([Decimal(10**20)] * 2), 1, "decimals of more than 18 digits"),
]


@pytest.mark.parametrize(("values", "width", "message"), REFUSED, ids=str)
def test_delta_refuses_columns_without_differences(
    values: pa.Array, width: Any, message: str
) -> None:
    table = pa.table({"t": [1, 2], "km": values})
    with pytest.raises(sw.SpecError, match=message):
        sw.rolling(table, on="t", windows=sw.delta("km", width), aggs={"n": sw.count()})


@pytest.mark.parametrize("windows", [sw.landmark("f"), sw.delta("f", 1)], ids=repr)
def test_a_column_that_is_not_there_is_named(windows: Any) -> None:
    with pytest.raises(sw.SpecError, match="no column 'f'"):
        sw.rolling(km([1]), on="t", windows=windows, aggs={"n": sw.count()})


@pytest.mark.parametrize("values", [[1, 0], ["a", "b"], [1.0, 0.0]], ids=str)
def test_a_flag_is_of_booleans(values: list[Any]) -> None:
    table = pa.table({"t": [1, 2], "f": values})
    aggs = {"n": sw.count()}
    with pytest.raises(sw.SpecError, match=r"column 'f' holds .*, not booleans"):
        sw.rolling(table, on="t", windows=sw.landmark("f"), aggs=aggs)
    with pytest.raises(sw.SpecError, match=r"column 'f' holds .*, not booleans"):
        sw.hopping(table, on="t", window=sw.until("f"), aggs=aggs)


def test_flags_that_are_all_missing_close_nothing() -> None:
    table = pa.table({"t": [1, 2], "f": [None, None]})
    aggs = {"n": sw.count()}
    assert not len(sw.hopping(table, on="t", window=sw.until("f"), aggs=aggs))
    got = sw.rolling(table, on="t", windows=sw.landmark("f"), aggs=aggs)
    assert got["n_landmark_f"].to_pylist() == [1, 2]


@pytest.mark.parametrize("library", ["pandas", "polars", "lazy"])
def test_frames_come_back_as_they_are(library: str) -> None:
    day = datetime(2026, 1, 1, tzinfo=UTC)
    rows = {
        "t": [day + timedelta(hours=at) for at in (3, 1, 2)],
        "k": ["a", "b", "a"],
        "f": [True, True, False],
        "km": [4.5, 0.0, 1.5],
    }
    frame: Any = pd.DataFrame(rows) if library == "pandas" else pl.DataFrame(rows)
    if library == "lazy":
        frame = frame.lazy()
    aggs = {"n": sw.count()}
    windows = [sw.landmark("f"), sw.delta("km", 3.0)]
    got = sw.rolling(frame, on="t", by="k", windows=windows, aggs=aggs)
    several = [sw.until("f"), sw.Query("2h", every=sw.rows(2)), "1h"]
    hops = sw.hopping(frame, on="t", by="k", windows=several, aggs=aggs)
    assert type(got) is type(hops) is type(frame)
    if library == "lazy":
        got, hops = got.collect(), hops.collect()
    assert got["n_landmark_f"].to_list() == [1, 1, 1]
    assert got["n_delta_km_3.0"].to_list() == [2, 1, 1]
    assert hops["window"].to_list()[:3] == ["until_f", "2h every 2rows", "1h"]
    assert hops["n"].to_list() == [2, 2, 1, 1, 1, 1]
    assert hops["window_end"].dtype == got["t"].dtype


def test_keys_that_are_categories_stay_so() -> None:
    keys = pa.array(["b", "a", "b"]).dictionary_encode()
    table = pa.table({"t": [1, 2, 3], "k": keys})
    got = sw.hopping(table, on="t", by="k", windows=[2, 5], aggs={"n": sw.count()})
    assert got["k"].type == keys.type
    assert got["k"].to_pylist() == ["b", "b", "b", "a", "a"]


def test_an_overflow_names_the_window() -> None:
    table = pa.table({"t": [1, 2], "x": [2**62, 2**62], "f": [False, False]})
    aggs = {"x": sw.sum("x")}
    with pytest.raises(sw.ResultOverflowError, match=r"'landmark_f' of row 1 "):
        sw.rolling(table, on="t", windows=[1, sw.landmark("f")], aggs=aggs)
    closed = table.set_column(2, "f", [[False, True]])
    with pytest.raises(sw.ResultOverflowError, match=r"'until_f' of window_end=2"):
        sw.hopping(closed, on="t", window=sw.until("f"), aggs=aggs)


def test_a_window_at_the_end_of_int64_is_refused() -> None:
    table = pa.table({"t": [-(2**63), 0]})
    with pytest.raises(sw.SpecError, match="reaches beyond the times"):
        sw.hopping(table, on="t", window=5, closed="right", aggs={"n": sw.count()})


ONE: dict[str, Any] = {"on": "t", "aggs": {"n": sw.count()}}
WINDOWS: list[dict[str, Any]] = [
    {"windows": [sw.landmark("f"), sw.delta("d", 9), 5]},
    {"window": sw.until("f")},
    {"window": sw.rows(3), "every": sw.rows(2)},
    {"window": 9, "every": sw.rows(4)},
    {"windows": [5, sw.until("f"), sw.Query(9, every=sw.rows(2))], "min_rows": 1},
    {"windows": [5, sw.Query(9, every=2)], "closed": "right"},
    {"window": 9, "every": 4, "closed": "right", "empty": True},
]


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("by", [[], ["k"]], ids=str)
@pytest.mark.parametrize("seed", range(8))
def test_batches_answer_as_the_table(
    seed: int, by: list[str], window: dict[str, Any]
) -> None:
    rng = random.Random(seed)
    table = as_arrow(made(rng))
    table = table.sort_by([(name, "ascending") for name in [*by, "t"]])
    typed = {name: agg for name, agg in AGGS.items() if agg is not AGGS["own"]}
    request: dict[str, Any] = {"on": "t", "by": by, "aggs": typed, **window}
    rolls = len(window) == 1 and "windows" in window
    make = Spec.make if rolls else Spec.make_hopping
    compute = rolling_batches if rolls else hopping_batches
    order = Order(min_rows=rng.choice([1, 30]))
    batches = table.to_batches(max_chunksize=rng.choice([1, 7]))
    parts = list(compute(batches, make(**request), table.schema, order))
    whole = (sw.rolling if rolls else sw.hopping)(table, **request)
    assert [row for part in parts for row in part.to_pylist()] == whole.to_pylist()


@pytest.mark.parametrize("by", BY, ids=str)
@pytest.mark.parametrize("seed", range(25))
def test_landmark_ends_at_labels(seed: int, by: list[str]) -> None:
    rng = random.Random(seed)
    rows, labels = made(rng), made(rng)
    expected: Rows = []
    for label in labels:
        key = [label[name] for name in by]
        upto = [
            at
            for at in sorted(range(len(rows)), key=lambda at: rows[at]["t"])
            if rows[at]["t"] <= label["t"] and [rows[at][name] for name in by] == key
        ]
        begin = max((at for at, row in enumerate(upto) if rows[row]["f"]), default=0)
        named = answers(rows, upto[begin:])
        expected.append({f"{name}_landmark_f": value for name, value in named.items()})
    out = sw.rolling(
        as_arrow(rows),
        on="t",
        by=by,
        windows=[4, sw.landmark("f"), sw.rows(2)],
        aggs=AGGS,
        at=as_arrow(labels).select(["t", "k", "g"]),
        threads=rng.choice([1, 2]),
    )
    assert only(out, "landmark_f") == expected


@pytest.mark.parametrize("window", [sw.landmark("f"), sw.delta("km", 1)], ids=repr)
def test_as_of_answers_have_no_rows_to_end_at(window: Any) -> None:
    table = pa.table({"t": [1], "f": [True], "km": [1], "a": [1]})
    with pytest.raises(sw.SpecError, match=r"arrival='a' does not apply to the window"):
        sw.rolling(table, windows=window, arrival="a", **ONE)


def test_delta_is_measured_from_rows() -> None:
    table = pa.table({"t": [1], "km": [1]})
    with pytest.raises(sw.SpecError, match=r"at= does not .* from the 'km' of a row"):
        sw.rolling(table, windows=sw.delta("km", 1), at=table, **ONE)


def test_explain_names_the_windows() -> None:
    table = pa.table({"t": [1], "f": [True], "km": [1]})
    said = sw.explain(table, windows=[5, sw.landmark("f"), sw.delta("km", 1)], **ONE)
    assert "landmark_f: from the last row where 'f' is true" in said
    assert "delta_km_1: back to the first row whose 'km' is too far" in said
    assert "5: every row's window is found once" in said
    said = sw.explain(table, windows=[sw.until("f"), 5, sw.rows(3)], **ONE)
    assert "until_f: a row where 'f' is true closes a window" in said
    assert "3rows: one window per 3 rows of a key" in said
    assert "5: windows do not overlap" in said
