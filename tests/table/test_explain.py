"""`explain` describes the computation of the core."""

import pyarrow as pa
import pytest

import slidewise as sw
import slidewise._core as _core

TRIPS = pa.table({"t": [10, 14, 11], "km": [3.0, 5.0, 4.0], "k": ["a", "b", "a"]})


def explained(**options: object) -> str:
    """The explanation of a call, in one line."""
    given = {"on": "t", "aggs": {"n": sw.count()}, **options}
    return " ".join(sw.explain(TRIPS, **given).split())  # type: ignore[arg-type]


def test_explain_states_whether_rows_are_sorted() -> None:
    assert "3 rows, one group, not in order: sorted by time" in explained(windows=5)
    sorted_rows = TRIPS.sort_by("t")
    text = sw.explain(sorted_rows, on="t", windows=5, aggs={"n": sw.count()})
    assert "one group, in order" in text


def test_long_names_stay_whole() -> None:
    name = "-".join(["average"] * 15)
    assert name in explained(windows=5, aggs={name: sw.mean("km")})


def test_order_per_key_is_enough() -> None:
    by_key = TRIPS.sort_by([("k", "ascending"), ("t", "ascending")])
    text = sw.explain(by_key, on="t", by="k", windows=5, aggs={"n": sw.count()})
    assert "one group per k, in order" in text
    assert "not in order: sorted by key and time" in explained(by="k", windows=5)


def test_aggregations_that_share_a_kernel_share_a_line() -> None:
    aggs = {
        "s": sw.sum("km"),
        "m": sw.max("km"),
        "avg": sw.mean("km"),
        "sd": sw.stddev("km"),
        "var": sw.variance("km"),
        "skew": sw.skewness("km"),
        "kurt": sw.kurtosis("km"),
        "med": sw.median("km"),
    }
    text = explained(aggs=aggs, windows=2)
    assert (
        "s=sum('km'), avg=mean('km'): differences of prefix sums, exact on a common"
        in text
    )
    assert (
        "sd=stddev('km'), var=variance('km'): differences of prefix sums, exact" in text
    )
    assert "skew=skewness('km'), kurt=kurtosis('km'): two stacks" in text
    assert "med=median('km'): a multiset of the values" in text


def test_sums_of_integers_run() -> None:
    table = pa.table({"t": [1, 2], "x": [3, 4]})
    text = sw.explain(table, on="t", windows=5, aggs={"s": sw.sum("x")})
    assert "s=sum('x'): differences of prefix sums of integers" in text


def test_arrival_goes_through_trees() -> None:
    text = explained(arrival="t", windows=5)
    assert "taken in order of t" in text
    assert "one FiBA tree per key" in text


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"window": 10, "every": 5}, "10: 2 windows per row: each is a range of rows"),
        ({"window": 10}, "10: windows do not overlap"),
        ({"window": sw.session(3)}, "session_3: rows at most 3 apart are a window"),
    ],
)
def test_hops(options: dict[str, object], words: str) -> None:
    assert words in explained(**options)


def test_more_windows_cost_more() -> None:
    def cost(text: str) -> int:
        return int(text.split(" about ")[1].split()[0])

    one, two = explained(windows=5), explained(windows=[5, 6])
    assert cost(one) < cost(two)


def test_explain_names_threads() -> None:
    assert "2 threads share the windows" in explained(windows=5, threads=2)
    assert "2 threads share the keys" in explained(windows=5, by="k", threads=2)


def test_either_windows_or_a_window() -> None:
    with pytest.raises(sw.SpecError, match="windows=, is missing"):
        explained()
    with pytest.raises(sw.SpecError, match="give windows= for rolling, or window= for"):
        explained(windows=5, window=5)


def test_explain_refuses_what_rolling_refuses() -> None:
    with pytest.raises(sw.SpecError, match="no_such"):
        explained(windows=5, aggs={"s": sw.sum("no_such")})


def test_explain_counts_duplicates_and_refuses_their_columns() -> None:
    table = pa.table({"t": [1, 2, 3], "k": [*"aab"], "id": [7, 7, 7]})
    for windows in ({"windows": 5}, {"window": 5, "every": 5}):
        aggs = {"n": sw.count()}
        text = sw.explain(table, on="t", by="k", aggs=aggs, unique_by="id", **windows)  # type: ignore[arg-type]
        first, second, *_ = text.split("\n")
        assert "over t: 3 rows, one group per k" in first
        assert second == "of rows with equal k and id, the first to arrive counts: " + (
            "1 duplicate"
        )
    maps = pa.array([[("a", 1)]] * 3, pa.map_(pa.string(), pa.int64()))
    with pytest.raises(sw.SpecError, match="cannot be a key"):
        sw.explain(
            table.append_column("m", maps),
            on="t",
            windows=5,
            aggs={"n": sw.count()},
            unique_by="m",
        )


def test_the_core_computes_each_kind() -> None:
    ways = {
        "count": "counts",
        "sum": "sums",
        "max": "extremes",
        "variance": "moments",
        "last": "ends",
        "area previous": "areas",
        "decayed_mean 60 1": "decays",
        "mode": "values",
        "skewness": "combines",
        "native:0": "combines",
    }
    assert {kind: _core.kernel_kind(kind, 0) for kind in ways} == ways
