"""The generated stream: equal for equal seeds, with the documented disorder."""

import pyarrow.compute as pc
import pytest

from trips import generate


@pytest.fixture(scope="module")
def trips():
    return generate(20_000, seed=3)


def test_same_seed_same_trips(trips):
    assert trips.equals(generate(20_000, seed=3))
    assert not trips.equals(generate(20_000, seed=4))


@pytest.mark.parametrize("rows", [0, 1, 2, 19, 1_000])
def test_as_many_rows_as_requested(rows):
    trips = generate(rows, seed=1, days=1)
    assert trips.num_rows == rows
    assert trips.schema.equals(generate(10).schema)


def test_rows_come_in_order_of_arrival_not_of_start(trips):
    arrived = trips["arrived"].to_pylist()
    assert arrived == sorted(arrived)
    starts = trips["starttime"].to_pylist()
    newest, overtaken = starts[0], 0
    for start in starts:
        overtaken += start < newest
        newest = max(newest, start)
    assert overtaken > 0.5 * len(starts)


def test_a_trip_ends_after_its_start_and_arrives_after_its_end(trips):
    lasted = pc.subtract(trips["stoptime"], trips["starttime"]).cast("int64")
    assert lasted.equals(trips["tripduration"])
    assert pc.min(lasted).as_py() >= 60
    assert pc.all(pc.less(trips["stoptime"], trips["arrived"])).as_py()


def test_backlogs_arrive_at_once(trips):
    """Some docks are offline for more than half an hour and then deliver together."""
    waited = pc.subtract(trips["arrived"], trips["stoptime"]).cast("int64")
    late = trips.filter(pc.greater(waited, 1_800))
    together = late.group_by(["end station id", "arrived"]).aggregate(
        [([], "count_all")]
    )
    assert late.num_rows > 50
    assert pc.max(together["count_all"]).as_py() >= 5


def test_crowds_leave_one_station_within_minutes(trips):
    """The busiest quarter of an hour holds many times a station's share of the day."""
    quarters = trips.append_column(
        "quarter", pc.floor_temporal(trips["starttime"], 15, "minute")
    )
    counts = quarters.group_by(["start station id", "quarter"]).aggregate(
        [([], "count_all")]
    )
    assert pc.max(counts["count_all"]).as_py() > 50
    assert pc.mean(counts["count_all"]).as_py() < 5


def test_all_within_the_requested_days():
    days = pc.unique(generate(5_000, days=2)["starttime"].cast("date32")).to_pylist()
    assert sorted(day.isoformat() for day in days) == ["2026-06-01", "2026-06-02"]


@pytest.mark.parametrize(
    ("arguments", "named"), [({"rows": -1}, "-1"), ({"days": 0}, "0")]
)
def test_impossible_requests_are_refused(arguments, named):
    with pytest.raises(ValueError, match=f"got {named}"):
        generate(**arguments)
