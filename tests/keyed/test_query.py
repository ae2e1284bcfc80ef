"""Queries of `KeyedWindows` at any time: what they mean, and what they refuse.

A fresh seed each day, or that of SLIDEWISE_SEED; SLIDEWISE_QUERY_SCRIPTS many scripts.
"""

import datetime as dt
import os
import re
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from keyed_pairs.factors import CATALOGUE, Case
from keyed_queries import DifferenceError, play, scripts
from seeds import SEED

import slidewise as sw
from slidewise.aggregations import KINDS

COUNT = int(os.environ.get("SLIDEWISE_QUERY_SCRIPTS", "16"))
PARTS = 8
UTC = dt.UTC

OPTIONS = {
    "on": "t",
    "by": "card",
    "windows": [10, 4],
    "aggs": {"n": sw.count(), "sum": sw.sum("x"), "xs": sw.collect("x")},
}


def cards(*rows: tuple[int, str, int], **options: object) -> sw.KeyedWindows:
    """Windows with rows of a time, a card and a value."""
    windows = sw.KeyedWindows(**{**OPTIONS, **options})
    windows.ingest(batch(*rows))
    return windows


def batch(*rows: tuple[int, str, int]) -> pa.Table:
    """Rows of a time, a card and a value."""
    t, card, x = zip(*rows, strict=True)
    return pa.table({"t": t, "card": card, "x": pa.array(x, pa.int64())})


ROWS = [(1, "a", 1), (4, "b", 2), (4, "a", 3), (9, "a", 4)]


# Meaning.


@cache
def drawn(count: int) -> list[tuple[str, Case]]:
    """So many scripts of the seed."""
    return list(scripts(str(SEED), count))


@pytest.mark.parametrize("part", range(PARTS), ids=lambda part: f"seed{SEED}-{part}")
def test_a_query_is_rolling_over_all_rows(part: int) -> None:
    """Of any stream, at any time: windows, extra rows, and when rows leave."""
    found, cells = [], 0
    for name, case in drawn(COUNT)[part::PARTS]:
        try:
            cells += play(case, name)
        except DifferenceError as error:
            found.append(f"{name}: {error}"[:400])
    assert not found, "\n".join([f"{len(found)} scripts differ:", *found])
    assert cells


def test_the_scripts_know_the_whole_catalogue() -> None:
    """Every kind of aggregation, and one that shows the order of rows."""
    assert {agg.kind for agg in CATALOGUE.values()} >= set(KINDS)


@pytest.mark.parametrize("name", sorted(CATALOGUE))
def test_every_aggregation_is_queried(name: str) -> None:
    """Over folds and rows, with and without an extra row."""
    called, case = drawn(COUNT)[sorted(CATALOGUE).index(name) % COUNT]
    small = {"aggs": [name], "page": "small", "batches": "few"}
    play({**case, **small}, f"{called}:{name}")


@pytest.mark.parametrize("emit", ["final", "arrival", "update"])
def test_waiting_rows_and_those_of_the_watermark_count(emit: str) -> None:
    """Before the watermark passes them, and after."""
    windows = cards(*ROWS, emit=emit)
    before = windows.query("a", at=9)
    assert before == {
        "n_10": 3,
        "sum_10": 8,
        "xs_10": [1, 3, 4],
        "n_4": 1,
        "sum_4": 4,
        "xs_4": [4],
    }
    windows.advance(4)
    assert windows.query("a", at=9) == before
    windows.advance(9)
    assert windows.query("a", at=9) == before


def test_hopping_windows_are_asked_as_rolling_ones() -> None:
    """(at − length, at], under the names that `rolling` gives."""
    windows = sw.KeyedWindows(
        on="t", window=10, every=5, aggs={"n": sw.count()}, keep=11
    )
    windows.ingest(pa.table({"t": [0, 3, 10]}))
    windows.advance(4)
    assert windows.query(at=10) == {"n_10": 2}
    assert windows.query(windows=[3, 11], at=10) == {"n_3": 1, "n_11": 3}


def test_the_latest_time_is_that_of_rows_or_the_watermark() -> None:
    """Whichever is later; it is the default."""
    windows = cards(*ROWS)
    assert windows.query("a")["xs_4"] == windows.query("a", at="latest")["xs_4"] == [4]
    windows.advance(13)
    assert windows.query("a")["xs_4"] == []
    assert windows.query("a")["xs_10"] == [3, 4]


def test_late_rows_and_deleted_ones_do_not_count() -> None:
    """Dropped, or gone."""
    windows = sw.KeyedWindows(**OPTIONS, deletes="gone")
    first = batch(*ROWS).append_column("gone", pa.array([False] * 4))
    windows.ingest(first)
    windows.advance(5)
    second = batch((3, "a", 9), (9, "a", 0)).append_column(
        "gone", pa.array([False, True])
    )
    windows.ingest(second)
    assert windows.late_count == 1
    assert windows.query("a", at=9)["xs_10"] == [1, 3]


def test_an_extra_row_is_the_last_of_its_time_and_is_not_stored() -> None:
    """By arrival and by `then_by`."""
    windows = cards((9, "a", 4), (9, "a", 2), then_by="x")
    asked = windows.query("a", at=9, plus={"x": 3})
    assert asked["xs_10"] == [2, 4, 3]
    assert windows.query("a", at=9)["xs_10"] == [2, 4]
    assert windows.query("a", at=8, plus={})["n_10"] == 1
    assert windows.query("z", at=8, plus={"x": 5})["sum_10"] == 5


HALF_PAST = dt.datetime(2026, 1, 1, 0, 30, 0, 5)


@pytest.mark.parametrize(
    ("kind", "held", "fits", "others"),
    [
        (pa.int64(), 1, [2, 2.0, np.int32(2), None], [1.5, np.float64(0.5), True]),
        (pa.uint8(), 1, [255], [256, -1, 0.5, float("nan")]),
        (pa.float64(), 1.0, [2, 0.5, None], [2**53 + 1, True, np.True_, "1"]),
        (pa.timestamp("s"), 0, [HALF_PAST.replace(microsecond=0)], [HALF_PAST]),
        (pa.timestamp("s"), 0, [pd.NaT, None], [5, "2026"]),
        (pa.timestamp("us"), 0, [HALF_PAST], [HALF_PAST.replace(tzinfo=UTC)]),
        (pa.timestamp("us", "UTC"), 0, [HALF_PAST.replace(tzinfo=UTC)], [HALF_PAST]),
        (pa.duration("s"), 0, [dt.timedelta(1), None], [dt.timedelta(0, 0, 5), 5]),
        (pa.date32(), 0, [HALF_PAST.date()], [HALF_PAST]),
    ],
    ids=str,
)
def test_values_of_an_extra_row_are_taken_as_they_are_or_not_at_all(
    kind: pa.DataType, held: object, fits: list[object], others: list[object]
) -> None:
    """No fraction is cut, and no unit."""
    windows = sw.KeyedWindows(on="t", windows=9, aggs={"x": sw.collect("x")})
    windows.ingest(pa.table({"t": [1], "x": pa.array([held], kind)}))
    for value in fits:
        found = windows.query(plus={"x": value})["x_9"]
        assert found[1:] == ([] if pd.isna(value) else [value])
    for value in others:
        with pytest.raises(sw.SpecError, match=r"plus\['x'\] .* which does not fit"):
            windows.query(plus={"x": value})


@pytest.mark.parametrize("emit", ["final", "arrival"])
def test_rows_of_equal_time_are_in_the_order_of_then_by(emit: str) -> None:
    """Whichever batch they came in, and whether or not they wait."""
    windows = cards((9, "a", 4), (8, "a", 5), emit=emit, then_by="x")
    windows.ingest(batch((9, "a", 2), (8, "a", 6), (9, "a", 3)))
    for _ in range(2):
        assert windows.query("a", at=9)["xs_10"] == [5, 6, 2, 3, 4]
        assert windows.query("a", at=9, plus={"x": 0})["xs_10"] == [5, 6, 2, 3, 4, 0]
        windows.advance(9)


def test_extra_rows_see_their_own_question_alone() -> None:
    """Of equal keys, in one call."""
    windows = cards(*ROWS)
    asked = pa.table({"card": ["a", "a"], "when": [9, 9], "x": [100, 200]})
    for plus in (["x"], {"x": "x"}, "x"):
        answers = windows.query_many(asked, "when", plus=plus)
        assert answers["sum_4"].to_pylist() == [104, 204]


def test_many_extra_rows_are_answered_in_groups(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of so many rows that copies are bounded."""
    windows = cards(*ROWS)
    asked = pa.table({"card": ["a", "b", "z", "a"], "x": [100, 200, 300, None]})
    whole = windows.query_many(asked, 9, plus=["x"], valid_until=True)
    monkeypatch.setattr("slidewise.keyed.reader._MOST_ROWS", 2)
    assert windows.query_many(asked, 9, plus=["x"], valid_until=True) == whole
    assert whole["sum_10"].to_pylist() == [108, 202, 300, 8]


def test_a_row_leaves_its_window_when_it_says() -> None:
    """Until then answers stay, and then they change."""
    for closed in ("right", "both", "left", "neither"):
        windows = cards(*ROWS, closed=closed, offset=1)
        asked = windows.query("a", at=11, valid_until=True)
        until = asked["valid_until_10"]
        held = windows.query("a", at=until - 1)["xs_10"]
        assert held[0] == asked["xs_10"][0]
        assert windows.query("a", at=until)["xs_10"][:1] != held[:1]


def test_a_window_without_rows_never_changes() -> None:
    """Nor does one of so many rows, nor one whose end no time can name."""
    windows = sw.KeyedWindows(on="t", windows=[10, sw.rows(2)], aggs={"n": sw.count()})
    windows.ingest(pa.table({"t": [1, 2**63 - 5]}))
    assert windows.query(at=50, valid_until=True)["valid_until_10"] is None
    assert windows.query(at=1, valid_until=True)["valid_until_2rows"] is None
    assert windows.query(valid_until=True)["valid_until_10"] is None


def test_results_have_the_types_of_the_table() -> None:
    """Of pandas, polars, lazy polars, NumPy and record batches; rows in their order."""
    windows = cards(*ROWS)
    keys = {"card": ["b", "z", "a"], "when": [9, 9, 4]}
    found = windows.query_many(pd.DataFrame(keys, index=[7, 5, 6]), "when")
    assert list(found.index) == [7, 5, 6]
    assert list(found["n_10"]) == [1, 0, 2]
    assert windows.query_many(pl.DataFrame(keys), "when")["n_10"].to_list() == [1, 0, 2]
    lazy = windows.query_many(pl.LazyFrame(keys), "when")
    assert isinstance(lazy, pl.LazyFrame)
    assert lazy.collect()["n_10"].to_list() == [1, 0, 2]
    arrays = {"card": np.array([1, 2])}
    numbers = sw.KeyedWindows(on="t", by="card", windows=3, aggs={"n": sw.count()})
    numbers.ingest({"t": np.array([5]), "card": np.array([2])})
    assert numbers.query_many(arrays)["n_3"].tolist() == [0, 1]
    record = pa.RecordBatch.from_pydict(keys)
    assert isinstance(windows.query_many(record, "when"), pa.RecordBatch)
    assert len(windows.query_many(pa.table({"card": pa.array([], pa.string())}))) == 0


def test_times_are_given_as_advance_takes_them() -> None:
    """Datetimes in any zone, and coarser columns."""
    start = dt.datetime(2026, 1, 1, tzinfo=UTC)
    kind = pa.timestamp("us", "Europe/Berlin")
    windows = sw.KeyedWindows(on="t", by="k", windows="1h", aggs={"n": sw.count()})
    windows.ingest(pa.table({"t": pa.array([start], kind), "k": [1]}))
    asked = windows.query(1, at=start + dt.timedelta(minutes=59), valid_until=True)
    assert asked["n_1h"] == 1
    assert asked["valid_until_1h"] == start + dt.timedelta(hours=1)
    times = pa.array([start], pa.timestamp("s", "UTC"))
    table = pa.table({"k": pa.array([1], pa.int8()), "when": times})
    answers = windows.query_many(table, "when", valid_until=True)
    assert answers["valid_until_1h"].type == kind


@pytest.mark.parametrize("agg", [sw.count(), sw.collect("t")], ids=["fold", "rows"])
def test_keys_that_arrow_infers_no_type_for(agg: sw.Aggregation) -> None:
    """Integers beyond int64; and NaN is the same key in either width."""
    keys = pa.array([2**64 - 1, 2**63, 1], pa.uint64())
    windows = sw.KeyedWindows(on="t", by="k", windows=9, aggs={"n": agg})
    windows.ingest(pa.table({"t": [1, 2, 3], "k": keys}))
    for key in keys.to_pylist():
        assert key in windows
        assert windows.query(key) == windows.query({"k": key})
        assert windows.query(key)["n_9"] not in (0, [])
    assert 2**64 - 2 not in windows
    with pytest.raises(sw.SpecError, match="is not a key of column 'k'"):
        windows.query(2**64)

    narrow = pa.array([float("nan"), 1.5], pa.float32())
    windows = sw.KeyedWindows(on="t", by="k", windows=9, aggs={"n": agg})
    windows.ingest(pa.table({"t": [1, 2], "k": narrow}))
    assert windows.query(float("nan")) == windows.query((narrow[0].as_py(),))
    assert windows.query(float("nan"))["n_9"] in (1, [1])


def test_times_beyond_those_of_python_are_refused_by_their_column() -> None:
    """A column of Arrow holds them."""
    kind = pa.timestamp("s", "UTC")
    aggs = {"last": sw.max("t")}
    windows = sw.KeyedWindows(on="t", windows="9s", aggs=aggs, keep="4000000d")
    windows.ingest(pa.table({"t": pa.array([0, 10**15], pa.int64()).cast(kind)}))
    with pytest.raises(sw.SpecError, match=r"'last_9s' .* query_many\(\)"):
        windows.query()
    asked = windows.query_many(pa.table({"row": [0]}))
    assert asked["last_9s"].cast(pa.int64()).to_pylist() == [10**15]
    at = pa.scalar(0, pa.int64()).cast(kind)
    until = windows.query_many(pa.table({"row": [0]}), at, "4000000d", valid_until=True)
    assert until["valid_until_4000000d"].cast(pa.int64()).to_pylist() == [345600000000]
    with pytest.raises(sw.SpecError, match="'valid_until_4000000d'"):
        windows.query(at=at, windows="4000000d", valid_until=True)


# The horizon.


def test_windows_reach_to_the_horizon() -> None:
    """The longest window and `late`, at the watermark and later."""
    for closed in ("right", "both"):
        windows = cards(*ROWS, closed=closed, late=3)
        windows.ingest(batch((30, "a", 5)))
        windows.advance(21)
        windows.ingest(batch((34, "a", 6)))
        expected = [4] if closed == "both" else []
        for at in (22, 21):
            asked = windows.query("a", at=at, windows=13)["xs_13"]
            assert asked == ([4] if at == 21 else expected)
        with pytest.raises(
            sw.SpecError, match=r"windows=14 is beyond .* horizon of 13"
        ):
            windows.query("a", windows=14)


def test_a_horizon_beyond_int64_is_as_long_as_can_be() -> None:
    """And can be stored."""
    longest = 2**63 - 1
    windows = sw.KeyedWindows(on="t", windows=longest, aggs={"n": sw.count()}, late=5)
    windows.ingest(pa.table({"t": [1, 9]}))
    again = sw.KeyedWindows.from_bytes(
        windows.to_bytes(), on="t", windows=longest, aggs={"n": sw.count()}
    )
    assert again.query(at=9) == {f"n_{longest}": 2}


def test_keep_makes_the_horizon_longer() -> None:
    """And a snapshot keeps it."""
    windows = cards(*ROWS, keep=30)
    windows.ingest(batch((40, "a", 5)))
    windows.advance(31)
    again = sw.KeyedWindows.from_bytes(
        (windows.collect(), windows.to_bytes())[1], **OPTIONS
    )
    for one in (windows, again):
        assert one.query("a", at=31, windows=30)["xs_30"] == [3, 4]
        with pytest.raises(sw.SpecError, match="horizon of 30"):
            one.query("a", windows=31)


def test_windows_before_evicted_rows_are_refused() -> None:
    """Whether or not there were such rows."""
    windows = cards((1, "a", 1), (40, "a", 2))
    windows.advance(40)
    assert windows.query("a", at=34, windows=4)["n_4"] == 0
    with pytest.raises(sw.SpecError, match=r"'10' at 39 .* 10 behind .* 40 or later"):
        windows.query("a", at=39)
    asked = pa.table({"card": ["a", "b"], "when": [40, 33]})
    with pytest.raises(sw.SpecError, match=r"window '4' at 33 .* keep="):
        windows.query_many(asked, "when", windows=4)


def test_last_rows_are_kept_behind_later_ones() -> None:
    """`rows(n)` at the watermark, though later rows would fill the window."""
    windows = sw.KeyedWindows(
        on="t", windows=sw.rows(3), aggs={"ts": sw.collect("t")}, emit="arrival"
    )
    windows.ingest(pa.table({"t": range(200)}))
    windows.advance(100)
    windows.ingest(pa.table({"t": range(200, 210)}))
    windows.advance(101)
    assert windows.query(at=101)["ts_3rows"] == [99, 100, 101]
    assert windows.query(at=101, windows=sw.rows(2))["ts_2rows"] == [100, 101]


# What is refused.


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ({"key": {"card": "a", "t": 1}}, "the key has a column 't', and .* 'card'"),
        ({"key": {}}, "the key has no column 'card'"),
        ({"key": ("a", "b")}, "has 2 values, and the key is in column 'card'"),
        ({"key": 5}, "5 is not a key of column 'card', which holds string"),
        ({"at": dt.datetime(2026, 1, 1)}, "not of the kind of the times of column 't'"),
        ({"at": 9.5}, "9.5 is a float, which cannot hold a time exactly"),
        ({"windows": 11}, "windows=11 is beyond the horizon of 10"),
        ({"windows": "1h"}, "windows='1h' is a duration, but .* holds integers"),
        ({"windows": sw.rows(2)}, "beyond the horizon of rows, which is none"),
        ({"windows": []}, "windows= is empty"),
        ({"windows": [3, 3]}, "'n_3' would occur twice"),
        ({"plus": {"y": 1}}, "plus= names the unknown column 'y': the stream has 'x'"),
        ({"plus": {"t": 1}}, "plus= names 't', which is given already"),
        ({"plus": {"x": "1"}}, r"plus\['x'\] is '1', which does not fit int64"),
        ({"plus": ["x"]}, "is not a row: give a mapping"),
    ],
)
def test_wrong_queries_are_refused(call: dict[str, object], message: str) -> None:
    """One message each."""
    windows = cards(*ROWS)
    with pytest.raises(sw.SpecError, match=message):
        windows.query(**{"key": "a", **call})


@pytest.mark.parametrize(
    ("columns", "call", "message"),
    [
        ({"cards": ["a"]}, {}, "keys= has no column 'card'.* Did you mean 'cards'"),
        ({"card": [1]}, {}, "'card' is string in the stream, and int64 in keys="),
        ({"card": ["a"]}, {"at": "when"}, "keys= has no column 'when'"),
        ({"card": ["a"], "w": [1.5]}, {"at": "w"}, "'w' of keys= is double, which"),
        (
            {"card": ["a"], "w": [None]},
            {"at": "w"},
            "'w' of keys= has no time in row 0",
        ),
        ({"card": ["a"], "n_4": [1]}, {}, "has a column 'n_4' already"),
        ({"card": ["a"]}, {"plus": ["y"]}, "unknown column 'y'"),
        ({"card": ["a"]}, {"plus": ["x"]}, "keys= has no column 'x'"),
        ({"card": ["a"], "x": ["1"]}, {"plus": ["x"]}, "'x' of keys= is string, and"),
        ({"card": ["a"], "x": [0.5]}, {"plus": ["x"]}, "of the stream int64"),
    ],
)
def test_wrong_tables_of_keys_are_refused(
    columns: dict[str, list[object]], call: dict[str, object], message: str
) -> None:
    """One message each."""
    windows = cards(*ROWS)
    with pytest.raises(sw.SpecError, match=message):
        windows.query_many(pa.table(columns), **call)


def test_zones_of_times_must_match() -> None:
    """As for `advance`."""
    times = pa.array([dt.datetime(2026, 1, 1)], pa.timestamp("us", "UTC"))
    windows = sw.KeyedWindows(on="t", windows="1h", aggs={"n": sw.count()})
    windows.ingest(pa.table({"t": times}))
    with pytest.raises(sw.SpecError, match="give a datetime with a zone"):
        windows.query(at=dt.datetime(2026, 1, 1))
    local = pa.table({"when": pa.array([dt.datetime(2026, 1, 1)], pa.timestamp("us"))})
    with pytest.raises(sw.SpecError, match="does not convert to the times of column"):
        windows.query_many(local, "when")


def test_there_must_be_rows_and_no_sessions() -> None:
    """Without rows the columns are unknown; a session has no length."""
    windows = sw.KeyedWindows(**OPTIONS)
    with pytest.raises(
        sw.SpecError, match=r"no rows yet: ingest some before query\(\)"
    ):
        windows.query("a", at=5)
    with pytest.raises(sw.SpecError, match=r"before query_many\(\)"):
        windows.query_many(pa.table({"card": ["a"]}))
    windows.ingest(batch(*ROWS).slice(0, 0))
    with pytest.raises(sw.SpecError, match="no latest time: give at="):
        windows.query("a")
    assert windows.query("a", at=5)["n_4"] == 0
    sessions = sw.KeyedWindows(on="t", window=sw.session(3), aggs={"n": sw.count()})
    sessions.ingest(pa.table({"t": [1]}))
    with pytest.raises(sw.SpecError, match="a session has no length"):
        sessions.query(at=5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"keep": 9}, "keep=9 is shorter than the window '10'"),
        ({"keep": 10, "offset": 1}, "shorter than the window '10' with its offset"),
        ({"keep": "1h"}, "keep='1h' and the window '10' differ in kind"),
        ({"keep": "soon"}, "keep='soon' is not a duration"),
        ({"keep": -1, "windows": sw.rows(2)}, "keep=-1 is negative"),
    ],
)
def test_wrong_horizons_are_refused(options: dict[str, object], message: str) -> None:
    """Before any row."""
    with pytest.raises(sw.SpecError, match=message):
        sw.KeyedWindows(**{**OPTIONS, **options})
    with pytest.raises(sw.SpecError, match="does not apply to sessions"):
        sw.KeyedWindows(on="t", window=sw.session(3), aggs=OPTIONS["aggs"], keep=5)


def test_overflows_name_the_query() -> None:
    """By key and time."""
    windows = cards((1, "a", 2**62), (5, "a", 2**62), emit="final")
    with pytest.raises(
        sw.ResultOverflowError, match=r"'10' of the query of card='a', t=6"
    ):
        windows.query("a", at=6)
    assert windows.query("a", at=6, windows=4)["sum_4"] == 2**62


def test_nan_of_an_extra_row_is_refused() -> None:
    """With `nan="raise"`, as in a batch."""
    windows = sw.KeyedWindows(on="t", windows=3, aggs={"y": sw.sum("y")}, nan="raise")
    windows.ingest(pa.table({"t": [1], "y": [0.5]}))
    with pytest.raises(sw.SpecError, match="column 'y' is NaN"):
        windows.query(at=2, plus={"y": float("nan")})


def test_a_query_changes_nothing() -> None:
    """Neither the state nor what waits for `collect`."""
    windows = cards(*ROWS)
    before = windows.to_bytes()
    windows.query_many(pa.table({"card": ["a", "z"]}), plus={}, valid_until=True)
    assert windows.to_bytes() == before


# The keys.


def test_keys_are_in_while_windows_hold_their_rows() -> None:
    """As `keys()` and `len` have them."""
    windows = cards(*ROWS)
    assert "a" in windows
    assert ("b",) in windows
    assert {"card": "z"} not in windows
    windows.advance(14)
    assert "b" not in windows
    assert "a" in windows
    assert len(windows) == 1
    assert "a" not in sw.KeyedWindows(**OPTIONS)
    whole = sw.KeyedWindows(on="t", windows=3, aggs={"n": sw.count()})
    whole.ingest(pa.table({"t": [1]}))
    assert () in whole


@pytest.mark.parametrize(
    ("options", "length", "last"),
    [
        ({}, 10, 10),
        ({"closed": "both"}, 10, 11),
        ({"keep": 50}, 50, 50),
        ({"late": 5}, 15, 15),
        ({"late_rows": "correct"}, 20, 20),
        ({"offset": 3}, 10, 13),
    ],
    ids=str,
)
def test_keys_are_in_while_a_query_finds_their_rows(
    options: dict[str, object], length: int, last: int
) -> None:
    """Over the longest window that can be asked for, at the watermark."""
    for at in range(last + 2):
        windows = cards((0, "a", 1), windows=10, **options)
        windows.advance(at)
        found = windows.query("a", at=at, windows=length)[f"n_{length}"]
        there = at < last
        assert bool(found) == (there and at >= options.get("offset", 0))
        assert ("a" in windows, len(windows), len(windows.keys())) == (there,) * 3
        assert windows.evict_idle(at) == there
        assert "a" not in windows


def test_idle_keys_without_rows_in_the_horizon_do_not_count() -> None:
    """Whether the state has them still."""
    windows = cards((0, "a", 1), (70, "b", 2), windows=10)
    windows.advance(60)
    assert windows.keys()["card"].to_pylist() == ["b"]
    assert windows.evict_idle(60) == 0


# What windows tell of themselves.


def test_the_repr_says_where_a_stream_is() -> None:
    """Its windows, times, late rows and size."""
    windows = sw.KeyedWindows(**OPTIONS)
    assert repr(windows) == "<KeyedWindows rolling 10, 4 over t by card: empty>"
    windows.ingest(batch(*ROWS))
    windows.advance(4)
    windows.ingest(batch((1, "a", 1)))
    assert re.fullmatch(
        r"<KeyedWindows rolling 10, 4 over t by card: latest 9, watermark 4, "
        r"1 late row, \d+(\.\d+)? kB>",
        repr(windows),
    )


def test_bytes_are_those_of_the_state_and_of_waiting_results() -> None:
    """They grow by rows, and shrink as these are evicted and collected."""
    windows = cards(*ROWS)
    few = windows.nbytes
    windows.ingest(batch(*((9, f"c{at}", at) for at in range(5000))))
    many = windows.nbytes
    assert many - few > 5000 * 8
    windows.advance(10**6)
    waiting = windows.nbytes
    assert waiting > windows.collect().nbytes
    assert windows.nbytes < min(few, many / 10)


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({}, "results: from all rows of a window, because collect('x') cannot be"),
        (
            {"aggs": {"n": sw.count()}},
            "results: folds of the entries of a key",
        ),
        ({"windows": sw.rows(3)}, "all rows of a key: windows of rows(n) may begin at"),
        ({"emit": "update"}, "card: a result per batch and changed key"),
        (
            {"late": 3},
            "query: any window up to 13, at any time: no row was evicted yet",
        ),
    ],
)
def test_explain_says_what_is_read(options: dict[str, object], line: str) -> None:
    """And what can be asked for."""
    windows = cards(*ROWS, **options)
    assert line in windows.explain().replace("\n  ", " ")
    windows.advance(4)
    assert "at 4 (the watermark) or later" in windows.explain().replace("\n  ", " ")


def test_explain_knows_sessions_and_streams_without_rows() -> None:
    """Which cannot be asked."""
    sessions = sw.KeyedWindows(on="t", window=sw.session(3), aggs={"n": sw.count()})
    first, *rest = sessions.explain().splitlines()
    assert first.startswith("sessions with a gap of 3 over t: a result per key and")
    assert rest == ["  passes its end", "no rows yet: the columns are unknown"]
    sessions.ingest(pa.table({"t": [1]}))
    assert "query: not for sessions" in sessions.explain()
