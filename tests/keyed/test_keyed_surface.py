"""`KeyedWindows`: errors, eviction, state, and late rows."""

import datetime as dt

import pyarrow as pa
import pytest

import slidewise as sw
from slidewise.spec.spec import Spec

OPTIONS = {"on": "t", "by": "key", "windows": [10], "aggs": {"n": sw.count()}}


def batch(*rows: tuple[int, str | None]) -> pa.Table:
    """Rows of a time and a key."""
    schema = pa.schema([("t", pa.int64()), ("key", pa.string())])
    return pa.Table.from_pylist([{"t": t, "key": key} for t, key in rows], schema)


def test_a_spec_and_its_keywords_are_the_same() -> None:
    """`KeyedWindows(spec)` equals `KeyedWindows(**request)`."""
    for windows in (sw.KeyedWindows(Spec.make(**OPTIONS)), sw.KeyedWindows(**OPTIONS)):
        windows.ingest(batch((1, "a"), (5, "a")))
        windows.advance(5)
        assert windows.collect()["n_10"].to_pylist() == [1, 2]
    with pytest.raises(sw.SpecError, match="on= belongs in the Spec"):
        sw.KeyedWindows(Spec.make(**OPTIONS), on="t")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"emit": "slide"}, "does not go with rolling"),
        ({"emit": pa.array([1]).to_numpy()}, "does not go with rolling"),
        ({"emit": "soon"}, "'arrival', 'final', 'update'"),
        ({"late": -1}, "negative"),
        ({"late": sw.rows(3)}, "length of time"),
        ({"late": "1h"}, r"late='1h' is a duration, but .* give late= as an int"),
        ({"late_rows": "keep"}, "drop, flag, correct"),
        ({"late_rows": "flag", "emit": "update"}, "late_count"),
        ({"offset": -3}, "^offset=-3 lets windows end after their row"),
        ({"arrival": "came"}, "emit='arrival'"),
        ({"then_by": "id"}, "no column 'id'"),
        ({"by": "t"}, "column of times"),
    ],
)
def test_wrong_arguments_are_refused(
    arguments: dict[str, object], message: str
) -> None:
    """The error is raised by the first batch at the latest."""
    rows = batch((1, "a")).append_column("came", pa.array([1]))
    with pytest.raises(sw.SpecError, match=message):
        sw.KeyedWindows(**{**OPTIONS, **arguments}).ingest(rows)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"window": sw.session(3)}, "may join two sessions"),
        ({"window": 3, "empty": True}, "makes empty windows"),
        ({"windows": sw.rows(3)}, "add one besides rows"),
    ],
)
def test_corrections_of_unsuitable_windows_are_refused(
    options: dict[str, object], message: str
) -> None:
    """Corrections are refused if emitting answers again could not correct them."""
    with pytest.raises(sw.SpecError, match=message):
        sw.KeyedWindows(on="t", aggs={"n": sw.count()}, late_rows="correct", **options)


def test_wrong_batches_change_nothing() -> None:
    """Wrong batches have other columns, other types, or no time."""
    windows = sw.KeyedWindows(**OPTIONS, emit="arrival")
    with pytest.raises(sw.SpecError, match="no rows yet"):
        windows.collect()
    windows.ingest(batch((1, "a")))
    with pytest.raises(sw.SpecError, match="no column 'key'"):
        windows.ingest(batch((2, "a")).drop_columns("key"))
    with pytest.raises(sw.SpecError, match="and int64 in the stream"):
        windows.ingest(batch((2, "a")).set_column(0, "t", pa.array([2.0])))
    missing = pa.Table.from_pylist([{"t": None, "key": "a"}], batch().schema)
    with pytest.raises(sw.SpecError, match="no time in row 0"):
        windows.ingest(missing)
    with pytest.raises(sw.SpecError, match="not of the kind of the times"):
        windows.advance("soon")
    windows.ingest(batch((3, "a")))
    assert windows.collect()["n_10"].to_pylist() == [1, 2]


def test_an_overflow_changes_nothing() -> None:
    """The batch is refused as a whole, and can be ingested with smaller values."""
    options = {**OPTIONS, "aggs": {"x": sw.sum("x")}}
    windows = sw.KeyedWindows(**options, emit="arrival")

    def rows(*values: int) -> pa.Table:
        count = len(values)
        return pa.table({"t": [1] * count, "key": ["a"] * count, "x": values})

    windows.ingest(rows(2**62))
    with pytest.raises(sw.ResultOverflowError):
        windows.ingest(rows(2**62))
    windows.ingest(rows(1))
    assert windows.collect()["x_10"].to_pylist() == [2**62, 2**62 + 1]


def test_times_come_back_in_their_own_type() -> None:
    """Timestamps keep their zone, and so does the watermark."""
    zone = pa.timestamp("ms", "Europe/Berlin")
    windows = sw.KeyedWindows(
        on="t", windows="1h", aggs={"last": sw.max("t")}, late="10m", emit="final"
    )
    first = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    times = [first, first + dt.timedelta(minutes=30)]
    windows.ingest(pa.table({"t": pa.array(times, zone)}))
    windows.advance()
    assert windows.watermark == first + dt.timedelta(minutes=20)
    answers = windows.collect()
    assert answers.schema.types == [zone, zone]
    assert answers["last_1h"].to_pylist() == [first]


def test_late_rows_are_counted_and_given_back() -> None:
    """`late_rows="flag"` returns them without results and with `_late` true."""
    windows = sw.KeyedWindows(**OPTIONS, emit="arrival", late_rows="flag", late=2)
    windows.ingest(batch((10, "a")))
    windows.advance()
    windows.ingest(batch((8, "a"), (9, "a")))
    answers = windows.collect()
    assert answers["_late"].to_pylist() == [False, False, True]
    assert answers["n_10"].to_pylist() == [1, 1, None]
    assert windows.late_count == 1


def test_keys_leave_with_their_rows_or_by_evict_idle() -> None:
    """Windows of rows keep a key for ever; windows of time do not."""
    windows = sw.KeyedWindows(**OPTIONS, emit="update")
    counted = sw.KeyedWindows(**{**OPTIONS, "windows": [sw.rows(2)]}, emit="update")
    for keyed in (windows, counted):
        keyed.ingest(batch((1, "a"), (2, "b"), (3, None)))
        keyed.advance()
        assert len(keyed) == 3
        keyed.ingest(batch((90, "b")))
        keyed.advance()
        keyed.ingest(batch((99, "c")))
        keyed.collect()
    assert sorted(windows.keys()["key"].to_pylist()) == ["b", "c"]
    assert len(counted) == 4
    assert counted.evict_idle(50) == 2
    assert sorted(counted.keys()["key"].to_pylist()) == ["b", "c"]
    counted.ingest(batch((100, "a"), (101, "b")))
    answers = counted.collect().sort_by("key")
    assert answers["n_2rows"].to_pylist() == [1, 2]
    counted.check()


def test_queries_answer_an_evicted_key_as_one_without_rows() -> None:
    windows = sw.KeyedWindows(**OPTIONS, late=3)
    windows.ingest(batch((20, "a"), (30, "b")))
    windows.advance()
    assert windows.query("a", at=27) == {"n_10": 1}
    assert windows.evict_idle(22) == 1
    assert windows.query("a", at=27) == {"n_10": 0}
    keys = pa.table({"key": ["a", "b", "c"]})
    assert windows.query_many(keys, at=30)["n_10"].to_pylist() == [0, 1, 0]


def test_snapshots_of_changes_follow_one_another() -> None:
    """A whole snapshot and two of changes restore windows with equal later answers."""
    windows = sw.KeyedWindows(**OPTIONS, emit="update", late=5)
    windows.ingest(batch(*((at, f"k{at % 7}") for at in range(5000))))
    windows.collect()
    whole, changes = windows.to_bytes(), []
    for start in (5000, 5005):
        windows.ingest(batch(*((at, "k1") for at in range(start, start + 5))))
        windows.advance()
        windows.collect()
        changes.append(windows.changes())
    assert len(changes[0]) < len(whole) // 2
    other = sw.KeyedWindows.from_bytes(whole, changes=changes, **OPTIONS)
    for keyed in (windows, other):
        keyed.ingest(batch((5011, "k1"), (5012, "k2")))
        keyed.check()
    assert windows.collect().equals(other.collect())
    assert other.watermark == windows.watermark == 5004


def test_damaged_snapshots_are_refused() -> None:
    """A change of any byte is refused, and so is another spec."""
    windows = sw.KeyedWindows(**OPTIONS)
    windows.ingest(batch((1, "a")))
    windows.collect()
    blob = windows.to_bytes()
    for at in range(0, len(blob), 7):
        broken = bytearray(blob)
        broken[at] ^= 0x55
        with pytest.raises(sw.SnapshotError):
            sw.KeyedWindows.from_bytes(bytes(broken), **OPTIONS)
        with pytest.raises(sw.SnapshotError):
            sw.KeyedWindows.from_bytes(blob[:at], **OPTIONS)
    with pytest.raises(sw.SnapshotError, match="another Spec"):
        sw.KeyedWindows.from_bytes(blob, **{**OPTIONS, "windows": [11]})


def test_snapshots_are_refused_while_results_wait() -> None:
    """A snapshot would lose results that were not collected."""
    windows = sw.KeyedWindows(**OPTIONS, emit="arrival")
    windows.ingest(batch((1, "a")))
    with pytest.raises(sw.SpecError, match="collect"):
        windows.to_bytes()
    assert len(windows.collect()) == 1
    assert len(windows.collect()) == 0


def test_a_users_own_aggregation_runs_over_streams() -> None:
    """Its partials are any Python objects, made from all rows of the window."""
    longest = sw.aggregation(combine=lambda a, b: max(a, b, key=len), identity="")
    options = {**OPTIONS, "aggs": {"longest": longest("key")}}
    windows = sw.KeyedWindows(**options, emit="final")
    windows.ingest(batch((1, "a"), (2, "bb"), (3, "c")))
    windows.advance()
    assert windows.collect()["longest_10"].to_pylist() == ["a", "bb", "c"]


@pytest.mark.parametrize("late_rows", ["flag", "correct"])
@pytest.mark.parametrize("emit", ["final", "arrival"])
@pytest.mark.parametrize("counted", [True, False])
def test_late_rows_with_categories_are_given_back(
    late_rows: str, emit: str, counted: bool
) -> None:
    """They have the type of the answers, for categories in keys and other columns."""
    category = pa.array(["a", "b"]).dictionary_encode()
    windows = sw.KeyedWindows(
        on="t",
        by="key" if counted else None,
        windows=5,
        aggs={"n": sw.count()},
        emit=emit,
        late_rows=late_rows,
    )
    for times in ([1, 90], [2, 91]):
        windows.ingest(pa.table({"t": times, "key": category}))
        windows.advance()
    windows.advance(91)
    answers = windows.collect()
    late = answers.filter(answers["_late"])
    assert late["t"].to_pylist() == [2]
    assert late["key"].to_pylist() == ["a"]
    assert len(answers) == 4
    assert windows.to_bytes()


@pytest.mark.parametrize("emit", ["final", "update", "slide"])
def test_both_zeros_are_one_key_and_so_is_nan(emit: str) -> None:
    """The rule is that for tables."""
    keys = pa.array([0.0, -0.0, float("nan"), -float("nan"), 1.0])
    spec: dict[str, object] = {"on": "t", "by": "k", "aggs": {"n": sw.count()}}
    spec["window" if emit == "slide" else "windows"] = 5
    windows = sw.KeyedWindows(**spec, emit=emit)
    windows.ingest(pa.table({"t": [1] * 5, "k": keys}))
    assert len(windows) == len(windows.keys()) == 3
    windows.advance(9)
    answers = windows.collect()
    name = "n" if emit == "slide" else "n_5"
    expected = [2, 2, 2, 2, 1] if emit == "final" else [2, 2, 1]
    assert sorted(answers[name].to_pylist(), reverse=True) == expected


def test_windows_without_keys_that_became_empty() -> None:
    """No key is left, and none can be evicted."""
    windows = sw.KeyedWindows(on="t", windows=5, aggs={"n": sw.count()})
    windows.ingest(pa.table({"t": [1]}))
    assert len(windows) == 1
    windows.advance(99)
    windows.collect()
    assert (len(windows), windows.keys()["t"].to_pylist()) == (0, [])
    assert windows.evict_idle(50) == 0


@pytest.mark.parametrize("closed", ["right", "left", "both", "neither"])
def test_rows_at_the_least_time_of_all(closed: str) -> None:
    """A window that would begin before the least int64 holds them."""
    least = -(2**63)
    table = pa.table({"t": [least, least + 1, least + 2]})
    spec = {"on": "t", "windows": 7, "closed": closed, "aggs": {"n": sw.count()}}
    windows = sw.KeyedWindows(**spec)
    for at in range(3):
        windows.ingest(table.slice(at, 1))
        windows.advance()
        assert len(windows.keys()) == 1
    expected = {"right": [1, 2, 3], "both": [1, 2, 3]}.get(closed, [0, 1, 2])
    assert windows.collect()["n_7"].to_pylist() == expected


@pytest.mark.parametrize("emit", ["final", "arrival", "update"])
def test_the_watermark_may_reach_the_largest_time_of_all(emit: str) -> None:
    """All rows are answered then, and all later rows are late."""
    windows = sw.KeyedWindows(on="t", windows=7, emit=emit, aggs={"n": sw.count()})
    windows.ingest(pa.table({"t": [2**63 - 1, 5]}))
    windows.advance(2**63 - 1)
    assert set(windows.collect()["n_7"].to_pylist()) == {1}
    windows.ingest(pa.table({"t": [2**63 - 1]}))
    assert windows.late_count == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"emit": "update", "by": "n_5", "windows": 5}, "'n_5' would occur twice"),
        ({"window": 5, "aggs": {"_correction": sw.count()}}, "'_correction' is taken"),
        ({"windows": 5, "aggs": {"_late": sw.count()}}, None),
    ],
    ids=["key", "correction", "late"],
)
def test_results_with_the_name_of_another_column(
    options: dict[str, object], message: str | None
) -> None:
    """The error names both columns, before any row is ingested."""
    options = {"on": "t", "aggs": {"n": sw.count()}, **options}
    windows = sw.KeyedWindows(**options, late_rows="correct")
    rows = pa.table({"t": [1, 9], "n_5": ["a", "b"]})
    if message is None:
        windows.ingest(rows)  # its name is _late_5
        return
    with pytest.raises(sw.SpecError, match=message):
        windows.ingest(rows)


def test_columns_that_hold_the_same_in_another_layout() -> None:
    """Batches of nulls, and of text with 32 or 64 bits, fit the first batch."""
    windows = sw.KeyedWindows(
        on="t", by="k", windows=9, aggs={"s": sw.sum("x")}, emit="arrival"
    )
    first = pa.table({"t": [1], "k": pa.array(["a"], pa.string()), "x": [1]})
    windows.ingest(first)
    windows.ingest(
        pa.table({"t": [2], "k": pa.array(["a"], pa.large_string()), "x": pa.nulls(1)})
    )
    for category in (pa.int8(), pa.int32()):
        names = pa.array(["a"]).cast(pa.dictionary(category, pa.string()))
        windows.ingest(pa.table({"t": [3], "k": names, "x": [1]}))
    assert windows.collect()["s_9"].to_pylist() == [1, 1, 2, 3]
    with pytest.raises(
        sw.SpecError, match="'x' is double in this batch, and int64 in the stream"
    ):
        windows.ingest(first.set_column(2, "x", pa.array([1.5])))


@pytest.mark.parametrize("emit", ["final", "arrival", "update", "slide"])
def test_one_window_that_overflows_does_not_stop_all_keys(emit: str) -> None:
    """A stream that stopped on an overflow can continue with overflow="null"."""
    options: dict[str, object] = {"on": "t", "by": "k", "aggs": {"s": sw.sum("x")}}
    options["window" if emit == "slide" else "windows"] = 4
    rows = pa.table({"t": [4, 5, 6], "k": [*"aab"], "x": [2**62, 2**62, 1]})
    name = "s" if emit == "slide" else "s_4"
    stuck = sw.KeyedWindows(**options, emit=emit)
    if emit in ("final", "slide"):
        stuck.ingest(rows)
        with pytest.raises(sw.ResultOverflowError, match="or give overflow='null'"):
            stuck.advance(100)
        assert (stuck.watermark, len(stuck.collect())) == (None, 0)
        windows = sw.KeyedWindows.from_bytes(
            stuck.to_bytes(), **options, overflow="null"
        )
    else:
        with pytest.raises(sw.ResultOverflowError, match="or give overflow='null'"):
            stuck.ingest(rows)
        windows = sw.KeyedWindows(**options, emit=emit, overflow="null")
        windows.ingest(rows)
    windows.advance(100)
    expected = {
        "final": [2**62, None, 1],
        "arrival": [2**62, None, 1],
        "update": [None, 1],
        "slide": [None, 1],
    }
    assert windows.collect()[name].to_pylist() == expected[emit]
