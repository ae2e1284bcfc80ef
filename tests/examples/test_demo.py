"""The demo: its files, its output, and the answers that it shows."""

import contextlib
import datetime as dt
import io
import sys
from bisect import bisect_right

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import demo
import picture
import slidewise as sw


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    out = tmp_path_factory.mktemp("demo") / "new" / "folder"
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        demo.run(out, rows=20_000, seed=5)
    return out, printed.getvalue()


def test_writes_stream_features_and_picture(outcome):
    out, _ = outcome
    trips, features = (
        pq.read_table(out / name) for name in ("trips.parquet", "features.parquet")
    )
    assert features.select(trips.column_names).equals(trips)
    assert (out / "day.png").read_bytes().startswith(b"\x89PNG")


def test_features_are_what_rolling_gives(outcome):
    features = pq.read_table(outcome[0] / "features.parquet")
    again = sw.rolling(
        features.select(["starttime", "start station id", "tripduration"]),
        on="starttime",
        by="start station id",
        windows=["15m", "1h", "24h"],
        aggs={"n": sw.count(), "avg": sw.mean("tripduration")},
    )
    for name in ("n_15m", "n_1h", "n_24h", "avg_15m", "avg_1h", "avg_24h"):
        assert again[name].equals(features[name]), name


def test_live_counts_only_what_had_arrived(outcome):
    """Checked by hand on one station: rows are in order of arrival."""
    features = pq.read_table(outcome[0] / "features.parquet")
    busiest = pc.mode(features["start station id"])[0]["mode"]
    here = features.filter(pc.equal(features["start station id"], busiest))
    arrived = here["arrived"].to_pylist()
    starts = here["starttime"].cast(pa.timestamp("s")).cast("int64").to_pylist()
    for row in range(0, len(starts), 37):
        known = starts[: bisect_right(arrived, arrived[row])]
        expected = sum(starts[row] - 3_600 < start <= starts[row] for start in known)
        assert here["live_n_1h"][row].as_py() == expected


def test_prints_what_it_did_and_what_to_try_next(outcome):
    out, printed = outcome
    assert "20,000 trips" in printed
    assert "(seed 5)" in printed
    assert f"slidewise rolling {out / 'trips.parquet'}" in printed
    for name in ("trips.parquet", "features.parquet", "day.png"):
        assert str(out / name) in printed


def test_runs_without_matplotlib(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib.dates", None)
    demo.run(tmp_path, rows=500)
    assert "No picture: pip install 'slidewise[plot]'" in capsys.readouterr().out
    assert not (tmp_path / "day.png").exists()


def test_the_picture_shows_every_minute_of_a_day():
    day = dt.datetime(2026, 6, 6)
    times = [day + dt.timedelta(minutes=minute) for minute in (10, 30, 200)]
    times = pa.array(times, pa.timestamp("s"))
    here = pa.table({"starttime": times, "tripduration": [60, 120, 180]})
    shown = picture.per_minute(here, day)
    assert shown.num_rows == 24 * 60 + 1
    counts, means = shown["n_1h"].to_pylist(), shown["avg_15m"].to_pylist()
    shown = {minute: counts[minute] for minute in (9, 10, 30, 69, 70, 90, 200)}
    assert shown == {9: 0, 10: 1, 30: 2, 69: 2, 70: 1, 90: 0, 200: 1}
    shown = {minute: means[minute] for minute in (9, 10, 24, 25, 30)}
    assert shown == {9: None, 10: 60, 24: 60, 25: None, 30: 120}


def test_one_trip_is_enough(tmp_path):
    demo.run(tmp_path, rows=1)
    assert pq.read_table(tmp_path / "features.parquet")["n_24h"].to_pylist() == [1]


def test_no_trips_are_refused(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["demo.py", "--rows", "0"])
    with pytest.raises(SystemExit) as left:
        demo.main()
    assert left.value.code == 2
    assert "--rows is 1 or more, got 0" in capsys.readouterr().err
