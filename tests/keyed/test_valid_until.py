"""`valid_until=True`: when answers change because rows leave, against its definition.

`rolling(at=)` answers for each time at which a row leaves the window. The answer holds
until the first of these times at which it differs.
"""

import datetime as dt
import math
import random
import re
from decimal import Decimal
from itertools import permutations, product
from typing import Any

import pyarrow as pa
import pytest
from definitions import PAIRS
from keyed_pairs.factors import CATALOGUE
from seeds import SEED

import slidewise as sw
from slidewise.keyed.expiry import changes_of_folds

TYPES: dict[str, Any] = {
    "t": pa.int64(),
    "k": pa.string(),
    "id": pa.int64(),
    "x": pa.int64(),
    "y": pa.float64(),
    "z": pa.float64(),
    "p": pa.int64(),
    "b": pa.bool_(),
    "w": pa.bool_(),
    "s": pa.string(),
    "v": pa.binary(),
    "d": pa.decimal128(20, 2),
    "u": pa.duration("us"),
    "ts": pa.timestamp("us"),
    "f": pa.bool_(),
    "pair": pa.list_(pa.float64(), 2),
    "map": pa.map_(pa.string(), pa.float64()),
}
# Few values, so that an answer often stays when a row leaves.
VALUES: dict[str, list[Any]] = {
    "x": [None, None, 0, 1, 1, 5, -5],
    "y": [None, 0.0, -0.0, 1.5, 1.5, float("nan"), -1.5],
    "z": [None, 0.5, 1.0, 1.0, 2.0],
    "p": [None, 1, 1, -1, 2],
    "b": [None, True, False],
    "w": [None, True, False, False],
    "s": [None, "a", "a", "b"],
    "v": [None, b"a", b"b"],
    "d": [None, Decimal("0.00"), Decimal("42949672.96"), Decimal("-0.01")],
    "u": [None, dt.timedelta(0), dt.timedelta(seconds=1)],
    "ts": [None, dt.datetime(2026, 1, 1), dt.datetime(2026, 1, 2)],
    "f": [None, False, False, False, True],
    "pair": [
        None,
        [1.0, math.nan],
        [1.0, math.nan],
        [1.0, 2.0],
        [-0.0, 2.0],
        [0.0, 2.0],
    ],
    "map": [
        None,
        [],
        [("a", math.nan)],
        [("a", math.nan)],
        [("a", None)],
        [("b", 1.0)],
    ],
}
AGGS = {
    **CATALOGUE,
    "last pair": sw.last("pair"),
    "last map": sw.last("map"),
    "maps": sw.collect("map"),
}
# Whose answers over equal values may differ in their last bits.
ROUNDED = {
    "variance",
    "variance ddof",
    "stddev",
    "stddev where",
    "skewness",
    "kurtosis",
}
ROUNDED |= {*PAIRS, "geometric_mean"}
EXTRA = ["id", "x", "y", "z", "p", "b", "w", "s", "v", "d", "u", "pair", "map"]


def rows(draw: random.Random, count: int) -> list[dict[str, Any]]:
    """Rows of two keys within some ticks of time, in order of time."""
    made = [
        {
            "t": draw.randrange(14),
            "k": draw.choice("aab"),
            "id": number,
            **{name: draw.choice(values) for name, values in VALUES.items()},
        }
        for number in range(count)
    ]
    return sorted(made, key=lambda row: row["t"])


def table(of: list[dict[str, Any]]) -> pa.Table:
    """Rows as a table."""
    return pa.Table.from_pylist(of, pa.schema(list(TYPES.items())))


def meant(
    held: list[dict[str, Any]], key: str, at: int, length: int, spec: dict[str, Any]
) -> tuple[list[Any], int | None]:
    """The first time at which the answer over these rows changes.

    Also the times up to it at which a float may differ in its last bits.
    """
    closed, offset = spec["closed"], spec["offset"]

    def holds(tick: int, at: int) -> bool:
        end = at - offset
        after = (
            tick >= end - length if closed in ("left", "both") else tick > end - length
        )
        before = tick <= end if closed in ("right", "both") else tick < end
        return after and before

    held = [row for row in held if row["k"] == key and holds(row["t"], at)]
    times = {row["t"] + length + offset for row in held}
    times = [time + holds(time - length - offset, time) for time in sorted(times)]
    labels = pa.table({"t": [at, *times], "k": [key] * (1 + len(times))})
    given = {name: spec[name] for name in ("aggs", "closed", "offset", "min_rows")}
    found = sw.rolling(table(held), on="t", by="k", windows=length, at=labels, **given)
    first, *others = found.drop_columns(["t", "k"]).to_pylist()
    near: list[Any] = []
    for time, other in zip(times, others, strict=True):
        if not are_near(first, other):
            return near, time
        near.append(time)
    return near, None


def are_near(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether answers differ by rounding alone."""
    floats = all(isinstance(value, float) for value in (*one.values(), *other.values()))
    near = {"rel_tol": 2.0**-44, "abs_tol": 2.0**-44}
    return shown(one) == shown(other) or (
        floats and all(math.isclose(one[name], other[name], **near) for name in one)
    )


def shown(answer: object) -> str:
    """Answers as text, in which NaN equals NaN and both zeros are equal."""
    return re.sub(r"-0\.0(?!\d)", "0.0", repr(answer))


@pytest.mark.parametrize("name", sorted(AGGS))
def test_answers_hold_until_rows_that_matter_leave(name: str) -> None:
    """Cases have `closed`, `offset`, `min_rows` and an extra row."""
    draw = random.Random(f"{SEED} {name}")
    agg = AGGS[name]
    cases = product(["right", "left", "both", "neither"], [0, 1, 3], [False, True])
    for closed, min_rows, plus in draw.sample([*cases], 3):
        spec = {
            "aggs": {"n": agg},
            "closed": closed,
            "offset": draw.choice([0, 0, 2]),
            "min_rows": min_rows,
        }
        held = rows(draw, draw.choice([3, 14]))
        counted = [sw.rows(3)] if closed == "right" and not spec["offset"] else []
        windows = sw.KeyedWindows(
            on="t", by="k", windows=[9, *counted], keep=20, **spec
        )
        windows.ingest(table(held))
        points = [(draw.choice("abz"), draw.randrange(2, 22)) for _ in range(6)]
        extra = rows(draw, len(points))
        call = {"plus": EXTRA} if plus else {}
        keys = (
            table(extra)
            .drop_columns(["t", "k"])
            .append_column("k", pa.array([key for key, _ in points]))
        )
        keys = keys.append_column("at", pa.array([at for _, at in points]))
        lengths = [9, 4, *counted]
        found = windows.query_many(keys, "at", lengths, valid_until=True, **call)
        for length in (9, 4):
            until = found[f"valid_until_{length}"].to_pylist()
            for (key, at), row, mine in zip(points, extra, until, strict=True):
                own = {**row, "t": at, "k": key, "ts": None, "f": None}
                all_rows = [*held, own] if plus else held
                near, wanted = meant(all_rows, key, at, length, spec)
                right = mine == wanted or (name in ROUNDED and mine in near)
                assert right, f"{mine}, not {wanted}: {spec} {key} at {at}, {plus}"
        if counted:
            assert found["valid_until_3rows"].null_count == len(points)
        one = windows.query(points[0][0], points[0][1], 9, valid_until=True)
        if not plus:
            assert one["valid_until_9"] == found["valid_until_9"][0].as_py()


@pytest.mark.parametrize("min_rows", [0, 2])
@pytest.mark.parametrize("plus", [False, True], ids=["stored", "plus"])
def test_windows_that_rows_begin_or_close_do_not_expire(
    plus: bool, min_rows: int
) -> None:
    """These are `landmark` and `until`; a window of time beside them expires."""
    draw = random.Random(SEED)
    aggs = {"n": sw.count("x", where="w"), "m": sw.median("x")}
    held = rows(draw, 14)
    extra = {"plus": {"x": 1, "w": True}} if plus else {}
    spec = {"aggs": aggs, "min_rows": min_rows}
    windows = sw.KeyedWindows(on="t", by="k", windows=[sw.landmark("f"), 9], **spec)
    windows.ingest(table(held))
    found = windows.query("a", 12, valid_until=True, **extra)
    assert found["valid_until_landmark_f"] is None
    own = (
        [{**dict.fromkeys(TYPES), "t": 12, "k": "a", "x": 1, "w": True}] if plus else []
    )
    whole = {**spec, "closed": "right", "offset": 0}
    assert found["valid_until_9"] == meant([*held, *own], "a", 12, 9, whole)[1]
    windows = sw.KeyedWindows(on="t", by="k", window=sw.until("f"), **spec)
    windows.ingest(table(held))
    found = windows.query("a", 12, valid_until=True, **extra)
    assert [value for name, value in found.items() if "valid" in name] == [None]


NEVER, ALL = {"a": None, "b": None}, {"a": 2, "b": 1}
IN_TIME = ({"a": 1, "b": 1}, {"a": 14, "b": 12})
# Per kind of windows: the options; by label, the counts and `valid_until` of keys.
KINDS: dict[str, tuple[dict[str, Any], dict[str, tuple[Any, Any]]]] = {
    "time": ({"windows": 9}, {"9": IN_TIME}),
    "rows": ({"windows": sw.rows(2)}, {"2rows": (ALL, NEVER)}),
    "landmark": ({"windows": sw.landmark("f")}, {"landmark_f": (ALL, NEVER)}),
    "until": ({"window": sw.until("f")}, {"until_f": (ALL, NEVER)}),
    "landmark and time": (
        {"windows": [9, sw.landmark("f")]},
        {"9": IN_TIME, "landmark_f": (ALL, NEVER)},
    ),
    "rows and time": (
        {"windows": [sw.rows(2), 9]},
        {"2rows": (ALL, NEVER), "9": IN_TIME},
    ),
    "hops": ({"window": 9, "every": 3}, {"9": IN_TIME}),
    "hops by rows": (
        {"window": sw.rows(2), "every": sw.rows(1)},
        {"2rows": (ALL, NEVER)},
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_keys_without_rows_may_be_anywhere(kind: str) -> None:
    """They have the answers of empty windows, which never change."""
    options, answers = KINDS[kind]
    windows = sw.KeyedWindows(on="t", by="k", aggs={"n": sw.count()}, **options)
    rows = {"t": [1, 3, 5], "k": [*"aba"], "x": [1, 3, 5], "f": [False] * 3}
    windows.ingest(pa.table(rows))
    for keys in permutations(["a", "zz", "b", "yy"]):
        found = windows.query_many({"k": [*keys]}, 10, valid_until=True)
        for label, (held, until) in answers.items():
            assert found[f"n_{label}"] == [held.get(key, 0) for key in keys]
            right = [until.get(key) for key in keys]
            assert found[f"valid_until_{label}"] == right


def test_a_null_of_min_rows_stays_as_rows_leave() -> None:
    """With `min_rows` of four, two rows are too few, and so is one."""
    windows = sw.KeyedWindows(on="t", windows=9, aggs={"x": sw.sum("x")}, min_rows=4)
    windows.ingest(pa.table({"t": [1, 2, 3, 4, 5], "x": [1, 2, 3, 4, 5]}))
    assert windows.query(at=7, valid_until=True)["valid_until_9"] == 10
    assert windows.query(at=3, valid_until=True)["valid_until_9"] is None


def test_a_row_may_leave_more_than_int64_after_its_time() -> None:
    least, most = -(2**63), 2**63 - 1
    windows = sw.KeyedWindows(on="t", windows=most, offset=most, aggs={"n": sw.count()})
    windows.ingest(pa.table({"t": [least, least + 5]}))
    results = [windows.query(at=at, valid_until=True) for at in (0, 4, most)]
    assert [result[f"n_{most}"] for result in results] == [1, 2, 1]
    until = [result[f"valid_until_{most}"] for result in results]
    assert until == [most - 1, most - 1, None]  # the other row leaves at most + 4


def test_a_rounded_answer_changes_when_its_rounding_does() -> None:
    """The deviation of durations is 2 s with 4 and 3 of the rows, and 1 s with two."""
    windows = sw.KeyedWindows(on="t", windows=45, aggs={"d": sw.stddev("x")})
    seconds = pa.array([10, 13, 10, 13, 11], pa.duration("s"))
    windows.ingest(pa.table({"t": [0, 10, 20, 30, 40], "x": seconds}))
    windows.advance(40)
    found = windows.query((), valid_until=True)
    assert found == {"d_45": dt.timedelta(seconds=2), "valid_until_45": 65}


def test_an_overflow_changes_the_answer() -> None:
    """`rolling` would refuse it; with "null" it stays null."""
    rows = pa.table({"t": [1, 2, 3, 4], "x": [-(2**62), 2**62, 2**62, 0]})
    aggs = {"x": sw.sum("x")}
    windows = sw.KeyedWindows(on="t", windows=9, aggs=aggs)
    windows.ingest(rows)
    assert windows.query(at=4, valid_until=True)["valid_until_9"] == 10
    windows = sw.KeyedWindows(on="t", windows=9, aggs=aggs, overflow="null")
    windows.ingest(rows.slice(1))
    assert windows.query(at=4, valid_until=True)["x_9"] is None
    assert windows.query(at=4, valid_until=True)["valid_until_9"] == 11


@pytest.mark.parametrize(
    ("agg", "values", "kind"),
    [
        (sw.sum("x"), [Decimal("0.01"), Decimal("-0.01"), 5], TYPES["d"]),
        (sw.first("x"), [-0.0, 0.0, 1.0], pa.float64()),
        (sw.sum("x"), [0, 0, 2**63], pa.uint64()),
    ],
    ids=["decimals", "zeros", "uint64"],
)
def test_results_are_compared_not_their_components(
    agg: sw.Aggregation, values: list[Any], kind: pa.DataType
) -> None:
    """Both zeros are equal; decimals are sums of parts."""
    windows = sw.KeyedWindows(on="t", windows=9, aggs={"x": agg})
    windows.ingest(pa.table({"t": [1, 1, 2], "x": pa.array(values, kind)}))
    assert windows.query(at=4, valid_until=True)["valid_until_9"] == (
        10 if agg.kind == "first" else 11
    )


def test_lists_with_offsets_and_sizes_are_compared_like_lists() -> None:
    """NaN in them equals NaN. Old versions of Arrow cannot select among them."""
    windows = sw.KeyedWindows(on="t", windows=9, aggs={"x": sw.last("x")})
    values = pa.array([[1.0, math.nan], [1.0, math.nan]], pa.list_view(pa.float64()))
    try:
        values.take(pa.array([0]))
    except pa.ArrowNotImplementedError as error:
        pytest.skip(str(error))
    windows.ingest(pa.table({"t": [1, 2], "x": values}))
    assert windows.query(at=4, valid_until=True)["valid_until_9"] == 11


@pytest.mark.parametrize("same", [1, 7, 8, 9, 63, 64, 65, 200])
def test_few_changes_are_compared_before_many(
    same: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Folds change with each row, and results with the row after `same` others."""
    looked: list[int] = []

    def noted(of: Any, counts: Any, times: pa.Array, left: Any) -> list[pa.Array]:
        looked.append(len(times))
        return changes_of_folds(of, counts, times, left)

    monkeypatch.setattr("slidewise.keyed.index.changes_of_folds", noted)
    aggs = {"x": sw.first("x")}
    windows = sw.KeyedWindows(on="t", by="k", windows=[1000, 900], aggs=aggs)
    # Zeros of both signs are equal, and their bits are not.
    zeros = [(-0.0, 0.0)[at % 2] for at in range(same)]
    others = [float(at) for at in range(1, 300)]
    count = same + len(others)
    rows = {"t": [*range(count)], "k": ["a"] * count, "x": [*zeros, *others]}
    windows.ingest(pa.table(rows))
    windows.ingest(pa.table({"t": [count - 1], "k": ["b"], "x": [1.0]}))
    keys = pa.table({"k": [*"bacc"]})
    found = windows.query_many(keys, at=count - 1, valid_until=True)
    for length in (1000, 900):
        never = [None, None]
        until = [count - 1 + length, same - 1 + length, *never]
        assert found[f"valid_until_{length}"].to_pylist() == until
    # Two windows of "a", and one change of "b" in each.
    assert max(looked) <= 2 * max(8, 8 * same) + 2
    assert len(looked) <= 1 + math.ceil(math.log(max(1, same / 8), 8)) + (same >= 8)


def test_changes_are_of_the_rows_of_their_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A batch between two steps counts for both."""
    windows = sw.KeyedWindows(on="t", by="k", windows=1000, aggs={"x": sw.first("x")})
    zeros = [(-0.0, 0.0)[at % 2] for at in range(50)]
    ticks = [*range(10, 60)]
    windows.ingest(pa.table({"t": ticks, "k": ["a"] * 50, "x": zeros}))
    done: list[int] = []

    def late(of: Any, counts: Any, times: pa.Array, left: Any) -> list[pa.Array]:
        if not done:
            windows.ingest(pa.table({"t": [5, 5], "k": [*"ab"], "x": [7.0, 8.0]}))
        done.append(len(times))
        return changes_of_folds(of, counts, times, left)

    windows.ingest(pa.table({"t": [60], "k": ["a"], "x": [1.0]}))
    monkeypatch.setattr("slidewise.keyed.index.changes_of_folds", late)
    keys = pa.table({"k": [*"ab"]})
    found = windows.query_many(keys, at=60, valid_until=True)
    assert len(done) == 2
    assert found["x_1000"].to_pylist() == [7.0, 8.0]
    assert found["valid_until_1000"].to_pylist() == [1005, 1005]
