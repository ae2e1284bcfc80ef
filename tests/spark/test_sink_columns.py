"""What sinks do without a server: arguments, key columns, and values as JSON."""

import datetime as dt
import json
import sys
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import slidewise as sw
from slidewise.spark import hopping, rolling, sinks
from slidewise.spark.sinks.json_values import decoder, dumps, encoder
from slidewise.spark.sinks.sink import Layout

NAN, INF = float("nan"), float("inf")
TIME = dt.datetime(2026, 1, 1, 12, 30, 0, 1, tzinfo=dt.UTC)
VALUES: dict[str, tuple[pa.DataType, Any, str]] = {
    "null": (pa.int64(), None, "null"),
    "large": (pa.int64(), 2**63 - 1, "9223372036854775807"),
    "float": (pa.float64(), 0.1, "0.1"),
    "nan": (pa.float64(), NAN, '"NaN"'),
    "infinite": (pa.float32(), -INF, '"-Infinity"'),
    "decimal": (pa.decimal128(20, 2), Decimal("-1.50"), '"-1.50"'),
    "time": (pa.timestamp("us", "UTC"), TIME, '"2026-01-01T12:30:00.000001+00:00"'),
    "naive": (
        pa.timestamp("us"),
        TIME.replace(tzinfo=None),
        '"2026-01-01T12:30:00.000001"',
    ),
    "date": (pa.date32(), TIME.date(), '"2026-01-01"'),
    "time of day": (pa.time64("us"), dt.time(1, 2, 3), '"01:02:03"'),
    "duration": (pa.duration("us"), dt.timedelta(microseconds=-1), "-1"),
    "bytes": (pa.binary(), b"\x00\xff", '"AP8="'),
    "text": (pa.string(), 'é"\n', '"é\\"\\n"'),
    "bool": (pa.bool_(), True, "true"),
    "list": (pa.list_(pa.float64()), [1.5, NAN, None], '[1.5,"NaN",null]'),
    "struct": (
        pa.struct([("a", pa.decimal128(3, 1)), ("b", pa.list_(pa.date32()))]),
        {"a": Decimal("0.5"), "b": [TIME.date(), None]},
        '{"a":"0.5","b":["2026-01-01",null]}',
    ),
    "map": (pa.map_(pa.string(), pa.float64()), [("k", INF)], '{"k":"Infinity"}'),
    "map of numbers": (pa.map_(pa.int64(), pa.string()), [(1, None)], "[[1,null]]"),
}


@pytest.mark.parametrize("name", VALUES)
def test_a_value_survives_json(name: str) -> None:
    kind, value, text = VALUES[name]
    held = pa.scalar(value, kind).as_py()
    written = dumps(encoder(kind)(held))
    assert written == text
    again = decoder(kind)(json.loads(written))
    assert repr(again).replace("datetime.timezone.utc", "UTC") == repr(held).replace(
        "datetime.timezone.utc", "UTC"
    ).replace("zoneinfo.ZoneInfo(key='UTC')", "UTC")


def test_results_name_their_key_columns(spark: Any) -> None:
    """Of rows the keys, of windows also their bounds; a name may change."""
    rates = spark.readStream.format("rate").load()
    rates = rates.selectExpr("timestamp AS t", "value % 3 AS k", "value % 2 AS l")
    aggs = {"n": sw.count()}
    rows = rolling(rates, on="t", by=["k", "l"], windows="1h", aggs=aggs, late="1m")
    windows = hopping(rates, on="t", by="k", window="1h", aggs=aggs, late="1m")
    call = "postgres(table, url, by='station')"

    def keys(results: Any, *by: str) -> tuple[str, ...]:
        return Layout.of(results, by, call).keys

    assert keys(rows) == ("k", "l")
    assert keys(rows.withColumnRenamed("l", "line").drop("t")) == ("k", "line")
    assert keys(rows, "k") == ("k",)
    kept = {"emit": "change", "valid_until": True, "late": "1m", "aggs": aggs}
    change = rolling(rates, on="t", by="k", windows=["1h", "1d"], **kept)
    until = Layout.of(change.withColumnRenamed("valid_until_1d", "u"), (), call).until
    assert until == ("valid_until_1h", "u")
    assert keys(windows) == ("k", "window_start", "window_end")
    with pytest.raises(sw.SpecError, match=r"have 1 of their 2 key columns"):
        keys(rows.drop("l"))
    with pytest.raises(sw.SpecError, match=r"no key columns, .* postgres\(table"):
        keys(rolling(rates, on="t", windows="1h", aggs=aggs, late="1m"))
    with pytest.raises(sw.SpecError, match="two columns 'n_1h': rename one"):
        keys(rows.selectExpr("k", "l", "n_1h", "t AS n_1h"))


def test_a_layout_as_text() -> None:
    layout = Layout(pa.schema([("k", pa.string()), ("n", pa.int64())]), ("k",))
    assert Layout.from_text(layout.to_text()) == layout
    assert layout.key_text(layout.key({"k": "é"})) == '["é"]'
    assert layout.key_text(layout.key((None,))) == "[null]"
    zeros = Layout(pa.schema([("x", pa.float64())]), ("x",))
    assert zeros.key_text(zeros.key(-0.0)) == "[0.0]"
    with pytest.raises(sw.SpecError, match="5 is not a key of column 'k'"):
        layout.key(5)


def test_a_result_is_valid_until_rows_leave_any_window() -> None:
    fields = [("k", pa.string()), ("u", pa.timestamp("us", "UTC")), ("v", pa.int64())]
    layout = Layout(pa.schema(fields), ("k",), ("u",))
    assert Layout.from_text(layout.to_text()) == layout
    before = TIME - dt.timedelta(microseconds=1)
    layout.refuse_stale({"k": "a", "u": TIME, "v": 1}, before)
    layout.refuse_stale({"k": "a", "u": None, "v": 1}, TIME)
    for at in (TIME, TIME.replace(tzinfo=None)):  # a time without a zone is in UTC
        with pytest.raises(sw.StaleResultError, match=r"u is 2026-01-01 12:30:00"):
            layout.refuse_stale({"k": "a", "u": TIME, "v": 1}, at)
    with pytest.raises(sw.SpecError, match="do not say until when they are valid"):
        Layout(layout.schema, ("k",)).refuse_stale({"k": "a"}, TIME)


def test_wrong_arguments() -> None:
    with pytest.raises(sw.SpecError, match=r"'postgresql://localhost', got the scheme"):
        sinks.postgres("features", "mysql://root:secret@localhost")
    with pytest.raises(sw.SpecError, match=r"redis\(\) takes a url .* got 'localhost'"):
        sinks.redis("localhost", "features:")
    for table in ("", "a.b.c", "a.", 5):
        with pytest.raises(sw.SpecError, match="is not a table"):
            sinks.postgres(table, "postgresql://localhost")
    with pytest.raises(sw.SpecError, match="cuts the name"):
        sinks.postgres("x" * 57, "postgresql://localhost")
    with pytest.raises(sw.SpecError, match="prefix= is the start of the names"):
        sinks.redis("redis://localhost", "")


def test_a_missing_client_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(ImportError, match=r"pip install 'slidewise\[postgres\]'"):
        sinks.postgres("features", "postgresql://localhost")
    with pytest.raises(ImportError, match=r"pip install 'slidewise\[redis\]'"):
        sinks.redis("redis://localhost", "features:")
