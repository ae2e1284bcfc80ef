"""Queries of `KeyedWindows` at any time: their results and their errors.

The seed is that of the day or SLIDEWISE_SEED; SLIDEWISE_QUERY_SCRIPTS is the number of
scripts.
"""

import datetime as dt
import os
from decimal import Decimal
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from cards import OPTIONS, ROWS, batch, cards
from keyed_pairs.factors import CATALOGUE, ENDED, Case
from keyed_queries import DifferenceError, play, scripts
from seeds import SEED

import slidewise as sw
from slidewise.aggregations.records import kinds

COUNT = int(os.environ.get("SLIDEWISE_QUERY_SCRIPTS", "8"))
PARTS = 8
UTC = dt.UTC


# Meaning.


@cache
def drawn(count: int) -> list[tuple[str, Case]]:
    """The first `count` scripts of the seed."""
    return list(scripts(str(SEED), count))


@pytest.mark.parametrize("part", range(PARTS), ids=lambda part: f"seed{SEED}-{part}")
def test_a_query_is_rolling_over_all_rows(part: int) -> None:
    """Scripts vary streams, times, windows, extra rows and `valid_until`."""
    found, cells = [], 0
    for name, case in drawn(COUNT)[part::PARTS]:
        try:
            cells += play(case, name)
        except DifferenceError as error:
            found.append(f"{name}: {error}"[:400])
    assert not found, "\n".join([f"{len(found)} scripts differ:", *found])
    assert cells


def test_a_variance_may_round_differently_after_a_row_leaves() -> None:
    """The store folds the remaining rows in other groups, and counts another result."""
    case: Case = {
        "aggs": ["range float", "variance ddof", "last", "max_count", "min_count"],
        "company": "many",
        "windows": "uneven hop",
        "emit": "slide",
        "nan": "skip",
        "life": "copy",
        "deletes": False,
        "min_rows": 2,
        "late": 6,
        "batches": "few",
        "late_rows": "drop",
        "arrival": False,
        "page": "medium",
        "closed": "right",
        "then_by": "none",
        "ties": "peers",
        "key": "none",
        "advance": "each",
        "offset": 3,
        "time": "uint32",
        "empty": True,
    }
    assert play(case, "20261128000000:166")


def test_the_scripts_have_every_kind_of_aggregation() -> None:
    """The catalogue also has one that shows the order of rows."""
    assert {agg.kind for agg in CATALOGUE.values()} >= set(kinds()) - ENDED


@pytest.mark.parametrize("name", sorted(CATALOGUE))
def test_every_aggregation_is_queried(name: str) -> None:
    """Queries use folds and rows, with and without an extra row."""
    called, case = drawn(COUNT)[sorted(CATALOGUE).index(name) % COUNT]
    small = {"aggs": [name], "page": "small", "batches": "few"}
    play({**case, **small}, f"{called}:{name}")


@pytest.mark.parametrize("emit", ["final", "arrival", "update"])
def test_queries_include_waiting_rows(emit: str) -> None:
    """Answers are equal before and after the watermark passes the rows."""
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


def test_hopping_windows_are_queried_as_rolling_ones() -> None:
    """The window is (at − length, at], and names are those of `rolling`."""
    windows = sw.KeyedWindows(
        on="t", window=10, every=5, aggs={"n": sw.count()}, keep=11
    )
    windows.ingest(pa.table({"t": [0, 3, 10]}))
    windows.advance(4)
    assert windows.query(at=10) == {"n_10": 2}
    assert windows.query(windows=[3, 11], at=10) == {"n_3": 1, "n_11": 3}


def test_the_latest_time_is_that_of_rows_or_the_watermark() -> None:
    """It is the later of the two, and the default."""
    windows = cards(*ROWS)
    assert windows.query("a")["xs_4"] == windows.query("a", at="latest")["xs_4"] == [4]
    windows.advance(13)
    assert windows.query("a")["xs_4"] == []
    assert windows.query("a")["xs_10"] == [3, 4]


def test_queries_exclude_late_and_deleted_rows() -> None:
    """Late rows are dropped, and deleted rows are removed."""
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
    """It comes last by arrival and by `then_by`."""
    windows = cards((9, "a", 4), (9, "a", 2), then_by="x")
    answer = windows.query("a", at=9, plus={"x": 3})
    assert answer["xs_10"] == [2, 4, 3]
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
def test_values_of_an_extra_row_are_converted_without_loss(
    kind: pa.DataType, held: object, fits: list[object], others: list[object]
) -> None:
    """A value that would lose a fraction or a unit is refused."""
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
    """The order depends neither on batches nor on waiting."""
    windows = cards((9, "a", 4), (8, "a", 5), emit=emit, then_by="x")
    windows.ingest(batch((9, "a", 2), (8, "a", 6), (9, "a", 3)))
    for _ in range(2):
        assert windows.query("a", at=9)["xs_10"] == [5, 6, 2, 3, 4]
        assert windows.query("a", at=9, plus={"x": 0})["xs_10"] == [5, 6, 2, 3, 4, 0]
        windows.advance(9)


def test_an_extra_row_counts_for_its_own_query_only() -> None:
    """One call has several queries of equal keys."""
    windows = cards(*ROWS)
    points = pa.table({"card": ["a", "a"], "when": [9, 9], "x": [100, 200]})
    for plus in (["x"], {"x": "x"}, "x"):
        answers = windows.query_many(points, "when", plus=plus)
        assert answers["sum_4"].to_pylist() == [104, 204]


def test_many_extra_rows_are_answered_in_groups(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A group has a bounded number of copied rows."""
    windows = cards(*ROWS)
    points = pa.table({"card": ["a", "b", "z", "a"], "x": [100, 200, 300, None]})
    whole = windows.query_many(points, 9, plus=["x"], valid_until=True)
    monkeypatch.setattr("slidewise.keyed.reader._MAX_KERNEL_ROWS", 2)
    assert windows.query_many(points, 9, plus=["x"], valid_until=True) == whole
    assert whole["sum_10"].to_pylist() == [108, 202, 300, 8]


def test_answers_change_at_valid_until() -> None:
    """Answers are equal before this time, and differ from it on."""
    for closed in ("right", "both", "left", "neither"):
        windows = cards(*ROWS, closed=closed, offset=1)
        answer = windows.query("a", at=11, valid_until=True)
        until = answer["valid_until_10"]
        held = windows.query("a", at=until - 1)["xs_10"]
        assert held[0] == answer["xs_10"][0]
        assert windows.query("a", at=until)["xs_10"][:1] != held[:1]


def test_a_window_without_rows_never_changes() -> None:
    """Nor does one of `rows(n)`, nor one whose rows leave after the last time."""
    windows = sw.KeyedWindows(on="t", windows=[10, sw.rows(2)], aggs={"n": sw.count()})
    windows.ingest(pa.table({"t": [1, 2**63 - 5]}))
    assert windows.query(at=50, valid_until=True)["valid_until_10"] is None
    assert windows.query(at=1, valid_until=True)["valid_until_2rows"] is None
    assert windows.query(valid_until=True)["valid_until_10"] is None


def test_results_have_the_types_of_the_table() -> None:
    """Tables are of pandas, polars, lazy polars, NumPy and record batches."""
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


@pytest.mark.parametrize("emit", ["final", "update", "change"])
def test_results_over_times_have_their_unit(emit: str) -> None:
    hours = [0, 3_600_000_000, 7_200_000_000]
    rows = pa.table({"t": pa.array(hours, pa.timestamp("us")), "x": [1.0, 2.0, 4.0]})
    aggs = {
        "slope": sw.slope("x", unit="1h"),
        "rate": sw.rate("x"),
        "gap": sw.mean_gap(),
    }
    for name, right in {"slope": 1.5, "rate": 3 / 7200, "gap": 3600.0}.items():
        # Alone: one that is decoded in Python takes the others with it.
        spec = sw.Spec(on="t", windows="5h", aggs={name: aggs[name]})
        windows = sw.KeyedWindows(spec, emit=emit)
        windows.ingest(rows)
        windows.advance()
        assert windows.collect()[f"{name}_5h"].to_pylist()[-1] == pytest.approx(right)
        assert windows.query()[f"{name}_5h"] == pytest.approx(right)


def test_times_are_given_as_advance_takes_them() -> None:
    """They are datetimes in any zone, and columns in coarser units."""
    start = dt.datetime(2026, 1, 1, tzinfo=UTC)
    kind = pa.timestamp("us", "Europe/Berlin")
    windows = sw.KeyedWindows(on="t", by="k", windows="1h", aggs={"n": sw.count()})
    windows.ingest(pa.table({"t": pa.array([start], kind), "k": [1]}))
    answer = windows.query(1, at=start + dt.timedelta(minutes=59), valid_until=True)
    assert answer["n_1h"] == 1
    assert answer["valid_until_1h"] == start + dt.timedelta(hours=1)
    times = pa.array([start], pa.timestamp("s", "UTC"))
    table = pa.table({"k": pa.array([1], pa.int8()), "when": times})
    answers = windows.query_many(table, "when", valid_until=True)
    assert answers["valid_until_1h"].type == kind


@pytest.mark.parametrize("agg", [sw.count(), sw.collect("t")], ids=["fold", "rows"])
def test_keys_that_arrow_infers_no_type_for(agg: sw.Aggregation) -> None:
    """These are integers beyond int64. NaN is one key in either width."""
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
    """A column of Arrow can hold them."""
    kind = pa.timestamp("s", "UTC")
    aggs = {"last": sw.max("t")}
    windows = sw.KeyedWindows(on="t", windows="9s", aggs=aggs, keep="4000000d")
    windows.ingest(pa.table({"t": pa.array([0, 10**15], pa.int64()).cast(kind)}))
    with pytest.raises(sw.SpecError, match=r"'last_9s' .* query_many\(\)"):
        windows.query()
    answer = windows.query_many(pa.table({"row": [0]}))
    assert answer["last_9s"].cast(pa.int64()).to_pylist() == [10**15]
    at = pa.scalar(0, pa.int64()).cast(kind)
    until = windows.query_many(pa.table({"row": [0]}), at, "4000000d", valid_until=True)
    assert until["valid_until_4000000d"].cast(pa.int64()).to_pylist() == [345600000000]
    with pytest.raises(sw.SpecError, match="'valid_until_4000000d'"):
        windows.query(at=at, windows="4000000d", valid_until=True)


# What is refused.


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ({"key": {"card": "a", "t": 1}}, "the key has a column 't', and .* 'card'"),
        ({"key": {}}, "the key has no column 'card'"),
        ({"key": ("a", "b")}, "has 2 values, and needs 1: the key is in column 'card'"),
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
        ({"valid_until": "9"}, "valid_until= takes True or False, got '9'"),
        ({"valid_until": 0}, "valid_until= takes True or False, got 0"),
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
        ({"card": ["a"]}, {"plus": 5}, "plus= takes a column or a list .*, got 5"),
        (
            {"card": ["a"]},
            {"valid_until": 1},
            "valid_until= takes True or False, got 1",
        ),
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
    """The rule is that of `advance`."""
    times = pa.array([dt.datetime(2026, 1, 1)], pa.timestamp("us", "UTC"))
    windows = sw.KeyedWindows(on="t", windows="1h", aggs={"n": sw.count()})
    windows.ingest(pa.table({"t": times}))
    with pytest.raises(sw.SpecError, match="give a datetime with a zone"):
        windows.query(at=dt.datetime(2026, 1, 1))
    local = pa.table({"when": pa.array([dt.datetime(2026, 1, 1)], pa.timestamp("us"))})
    with pytest.raises(sw.SpecError, match="'when' of keys= has no zone"):
        windows.query_many(local, "when")


def test_refused_zones_are_named_alike_in_batches_and_queries() -> None:
    naive = pa.array([dt.datetime(2026, 1, 1)], pa.timestamp("us"))
    zoned = naive.cast(pa.timestamp("us", "UTC"))
    options: dict[str, Any] = {"on": "t", "windows": 5, "aggs": {"x": sw.last("x")}}
    schema = {"t": "int64", "k": zoned.type, "x": naive.type}
    windows = sw.KeyedWindows(**options, by="k", schema=schema)
    way = r"convert one of them, such as by pyarrow.compute.assume_timezone\(c, 'UTC'\)"
    with pytest.raises(
        sw.SpecError,
        match=r"'k' of this batch has no zone \(timestamp\[us\]\), and that of the "
        rf"stream has one \(timestamp\[us, tz=UTC\]\): {way}",
    ):
        windows.ingest(pa.table({"t": [1], "k": naive, "x": naive}))
    windows.ingest(pa.table({"t": [1], "k": zoned, "x": naive}))
    with pytest.raises(sw.SpecError, match=f"key 'k' of keys= has no zone .*: {way}"):
        windows.query_many(pa.table({"k": naive}))
    with pytest.raises(
        sw.SpecError, match=r"'x' of keys= has a zone .* has none .* by "
    ):
        windows.query_many(pa.table({"k": zoned, "x": zoned}), plus=["x"])


def test_there_must_be_rows_and_no_sessions() -> None:
    """Without rows the columns are unknown; a session has no length."""
    windows = sw.KeyedWindows(**OPTIONS)
    with pytest.raises(
        sw.SpecError, match=r"no rows yet: ingest .* before query\(\), or .* schema="
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


def test_overflows_name_the_query() -> None:
    """The message has its key and time."""
    windows = cards((1, "a", 2**62), (5, "a", 2**62), emit="final")
    with pytest.raises(
        sw.ResultOverflowError, match=r"'10' of the query of card='a', t=6"
    ):
        windows.query("a", at=6)
    assert windows.query("a", at=6, windows=4)["sum_4"] == 2**62


def test_nan_of_an_extra_row_is_refused() -> None:
    """`nan="raise"` applies as for a batch."""
    windows = sw.KeyedWindows(on="t", windows=3, aggs={"y": sw.sum("y")}, nan="raise")
    windows.ingest(pa.table({"t": [1], "y": [0.5]}))
    with pytest.raises(sw.SpecError, match="column 'y' is NaN"):
        windows.query(at=2, plus={"y": float("nan")})


def test_a_query_changes_nothing() -> None:
    """The state and the results that wait for `collect` are unchanged."""
    windows = cards(*ROWS)
    before = windows.to_bytes()
    windows.query_many(pa.table({"card": ["a", "z"]}), plus={}, valid_until=True)
    assert windows.to_bytes() == before


def test_text_that_is_not_utf8_is_refused() -> None:
    """The text has a lone surrogate, in a single key column or beside another."""
    one = sw.KeyedWindows(on="t", by="k", windows=5, aggs={"n": sw.count()})
    two = sw.KeyedWindows(on="t", by=["k", "l"], windows=5, aggs={"n": sw.count()})
    for windows, key in ((one, "\ud800"), (two, ("a", "\ud800"))):
        windows.ingest(pa.table({"t": [1], "k": ["a"], "l": ["b"]}))
        for query in (windows.query, windows.__contains__):
            with pytest.raises(sw.SpecError, match="is not a key of column"):
                query(key)


NESTED: list[tuple[pa.DataType, Any, Any]] = [
    (pa.struct([("f", pa.decimal128(5, 2))]), {"f": Decimal("1.50")}, None),
    (pa.struct([("f", pa.binary(2))]), {"f": b"ab"}, None),
    (pa.struct([("f", pa.time32("s"))]), {"f": dt.time(1)}, None),
    (pa.struct([("f", pa.duration("s"))]), {"f": dt.timedelta(1)}, None),
    (pa.struct([("f", pa.uint64())]), {"f": 2**63 + 1}, None),
    (pa.struct([("f", pa.float32())]), {"f": 1.5}, {"f": 0.1}),
    (pa.struct([("f", pa.string()), ("g", pa.int8())]), {"f": "a", "g": 1}, {"f": "a"}),
    (pa.list_(pa.int64()), [], ["a"]),
    (pa.large_list(pa.list_(pa.string())), [None, [], ["a"]], [1]),
    (pa.list_(pa.string_view(), 2), ["a", None], ["a"]),
]


@pytest.mark.parametrize(("kind", "key", "other"), NESTED, ids=lambda it: str(it)[:30])
def test_structs_and_lists_are_keys(kind: pa.DataType, key: Any, other: Any) -> None:
    rows = pa.table({"t": [1, 2, 3], "k": pa.array([key, None, key], kind)})
    windows = sw.KeyedWindows(on="t", by="k", windows=9, aggs={"n": sw.count()})
    windows.ingest(rows)
    assert windows.query((key,)) == windows.query({"k": key}) == {"n_9": 2}
    assert windows.query(None) == {"n_9": 1}
    many = windows.query_many(pa.table({"k": pa.array([key, None], kind)}))
    assert many["n_9"].to_pylist() == [2, 1]
    assert (key,) in windows
    assert sorted(map(repr, windows.keys()["k"].to_pylist())) == sorted(
        map(repr, [key, None])
    )
    if other is not None:
        with pytest.raises(sw.SpecError, match="is not a key of column 'k'"):
            windows.query((other,))


def test_a_struct_alone_is_a_mapping_of_columns() -> None:
    rows = pa.table({"t": [1], "k": [{"f": 1}]})
    windows = sw.KeyedWindows(on="t", by="k", windows=9, aggs={"n": sw.count()})
    windows.ingest(rows)
    with pytest.raises(sw.SpecError, match="a struct as a key goes into a tuple"):
        windows.query({"f": 1})


def test_a_mapping_is_as_fast_as_its_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both are answered from the store, without the conversion of a table."""
    windows = sw.KeyedWindows(
        on="t", by=["a", "b"], windows=5, aggs={"n": sw.count()}, emit="none"
    )
    windows.ingest({"t": [1, 2], "a": [1, 1], "b": ["x", "y"]})

    def convert(*_: Any) -> Any:
        raise AssertionError("a table is made")

    monkeypatch.setattr("slidewise.keyed.queries.key_table", convert)
    assert windows.query((1, "y"), at=3) == {"n_5": 1}
    assert windows.query({"b": "y", "a": 1}, at=3) == {"n_5": 1}
