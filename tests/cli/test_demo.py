"""The demo: its files, what it says, and that what it shows is right."""

from bisect import bisect_right

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import slidewise as sw
from slidewise.cli import demo, plots
from slidewise.errors import SpecError


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    out = tmp_path_factory.mktemp("demo") / "new" / "folder"
    said: list[str] = []
    demo.run(out, rows=20_000, seed=5, command="./slidewise", say=said.append)
    return out, "\n".join(said)


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


def test_says_what_it_did_and_what_to_try_next(outcome):
    out, said = outcome
    assert "20,000 trips" in said
    assert "(seed 5)" in said
    assert f"./slidewise rolling {out / 'trips.parquet'}" in said
    for name in ("trips.parquet", "features.parquet", "day.png"):
        assert str(out / name) in said


def test_does_without_a_picture(monkeypatch, tmp_path):
    def missing(path):
        raise SpecError("pictures need matplotlib")

    monkeypatch.setattr(plots, "check", missing)
    said: list[str] = []
    demo.run(tmp_path, rows=500, say=said.append)
    assert "No picture: pip install 'slidewise[plot]'" in "\n".join(said)
    assert not (tmp_path / "day.png").exists()


def test_one_trip_is_enough(tmp_path):
    demo.run(tmp_path, rows=1, say=lambda line: None)
    assert pq.read_table(tmp_path / "features.parquet")["n_24h"].to_pylist() == [1]


def test_no_trips_is_refused(tmp_path):
    with pytest.raises(SpecError, match="at least one trip, got --rows 0"):
        demo.run(tmp_path, rows=0)
