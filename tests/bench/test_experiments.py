"""The experiments of the papers: the catalogue, the claims, the data, the pages."""

import importlib
import re
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from bench.experiments import peer  # noqa: E402 - bench lies beside the packages
from bench.experiments.break_even import later  # noqa: E402
from bench.experiments.catalogue import CATALOGUE, PAPERS, find  # noqa: E402
from bench.experiments.claims import (  # noqa: E402
    Check,
    Claim,
    MissingError,
    View,
    below,
    best,
    bounded,
    crossing,
    every,
    falls,
    fits_log,
    flat,
    judge,
    ratio,
    rises,
    slope,
)
from bench.experiments.data import (  # noqa: E402
    energies,
    generate_energies,
    generate_trips,
    read_citibike,
    read_debs2012,
    replayed,
    trips,
    write_numbers,
)
from bench.experiments.orders import (  # noqa: E402
    READING,
    Grid,
    Point,
    Results,
    by_scale,
    of_turn,
    powers,
)
from bench.experiments.pages import write_pages  # noqa: E402

DRIVER = ROOT / "crates" / "papers" / "benches" / "experiments"
WORDS = {"energies": "energies.int64", "times": "trips.int64"}

# The figures and tables of measurements in the papers.
FIGURES = {
    "fiba": 5,
    "bulk": 12,
    "daba": 4,
    "ra": 9,
    "slickdeque": 6,
}


def orders(scale: Any) -> list[dict[str, str]]:
    return [
        dict(point.order)
        for row in CATALOGUE
        for grid in row.grids
        for point in grid.orders(scale, WORDS)
    ]


def names(path: str) -> set[str]:
    """The string literals of a file of the driver."""
    return set(re.findall(r'"([\w-]+)"', (DRIVER / path).read_text("utf-8")))


# The catalogue.


def test_every_figure_with_data_has_a_row() -> None:
    found = dict.fromkeys(PAPERS, 0)
    for row in CATALOGUE:
        found[row.paper] += 1
    assert found == FIGURES
    assert len({row.key for row in CATALOGUE}) == len(CATALOGUE)


@pytest.mark.parametrize("row", CATALOGUE, ids=lambda row: row.key)
def test_every_row_has_claims_and_points(row: Any) -> None:
    assert row.claims
    assert all(claim.says for claim in row.claims)
    if row.look != "histograms":
        for grid in row.grids:
            assert any(True for _ in grid.orders("quick", WORDS))


@pytest.mark.parametrize("row", CATALOGUE, ids=lambda row: row.key)
def test_claims_need_fields_that_the_row_has(row: Any) -> None:
    """Only claims that need another scale are undecided, for any figures."""
    results = Results()
    points = [point for grid in row.grids for point in grid.orders("paper", WORDS)]
    for point in points:
        metric = dict(point.order)["metric"].partition("-")[0]
        results.add(point.order, FAKE[metric])
    if row.look == "histograms":
        points = [Point({"label": "trips", "n": 0, "operator": ""}, (("a", "b"),))]
        results.add(points[0].order, FAKE["days"])
    for claim in row.claims:
        verdict = judge(claim, points, results, row.y)
        assert "not measured" not in verdict.figures, (claim.says, verdict.figures)


LATENCY = ("least", "p25", "p50", "p75", "p99.9", "p99.999", "mean", "deviation")
FAKE = {
    "throughput": {"rate": 1e6, "faults": 1.0},
    "latency": dict.fromkeys((*LATENCY, "trimmed_mean", "trimmed_longest"), 50.0),
    "counts": {"combines": 2.0, "most": 3.0},
    "memory": {
        "bytes": 4096.0,
        "per_entry": 40.0,
        "resident": 8192.0,
        "resident_per_entry": 60.0,
    },
    "days": dict.fromkeys(("single", "n_range", "m_most", "d_small", "d_large"), 1.0),
}


def test_every_structure_and_operator_of_the_driver_occurs() -> None:
    measured = orders("quick")
    structures = {order["structure"].partition(":")[0] for order in measured}
    arms = re.findall(
        r'^        "(\w+)"(?: \| "(\w+)")?[^,\n]*=>',
        (DRIVER / "structures.rs").read_text("utf-8").partition("fn inverting")[0],
        re.MULTILINE,
    )
    known = {name for pair in arms for name in pair if name}
    assert structures <= known
    # Bounded lateness is in no figure of these papers; SlickDeque of one range is
    # subtract-on-evict, which the peer has by name.
    assert known - structures == {"daba_late", "subtract_on_evict"}
    operators = {order["operator"] for order in measured}
    assert operators >= names("operators.rs") & {
        *("count", "sum_float", "max_float", "mean", "stddev", "pop_stddev"),
        *("min_count", "arg_max", "arg_max_float"),
    }
    assert operators >= {"sum", "max", "geomean", "bloom", "collect"}


@pytest.mark.parametrize("scale", ["quick", "paper"])
def test_the_driver_knows_the_words_of_all_orders(scale: str) -> None:
    words = names("order.rs")
    for order in orders(scale):
        assert set(order) <= words
        assert {order["metric"], order["mode"]} <= words
        n, m, d = (int(order[letter]) for letter in "nmd")
        assert 1 <= m <= n
        assert 0 <= d <= n


def test_the_paper_scale_is_the_printed_one() -> None:
    largest = {}
    for row in CATALOGUE:
        sizes = [
            point.known["n"]
            for grid in row.grids
            for point in grid.orders("paper", WORDS)
        ]
        largest[row.key] = max(sizes, default=0)
    assert {largest[key] for key in ("fiba-11", "fiba-13", "bulk-7")} == {1 << 22}
    assert largest["bulk-1b"] == 10**9
    assert largest["ra-7"] == 1 << 23
    assert largest["slickdeque-10"] == 1 << 27


def test_a_key_finds_its_figure_and_a_paper_its_figures() -> None:
    assert [row.key for row in find("fiba-11")] == ["fiba-11"]
    assert len(find("fiba, bulk-7")) == FIGURES["fiba"] + 1
    assert len(find("")) == len(CATALOGUE)
    with pytest.raises(ValueError, match="no figure 'fiba-1'"):
        find("fiba-1")


def test_sizes_may_depend_on_those_before() -> None:
    grid = Grid(
        structures={"a": "b"},
        n=by_scale([4, 8], 1 << 20),
        q=lambda known: powers(0, known["n"].bit_length() - 1, 2),
        d=lambda known: known["q"] // 2,
        skip=lambda known: known["n"] == 8 and known["q"] == 1,
    )
    found = [point.known for point in grid.orders("quick", {})]
    sizes = [(known["n"], known["q"], known["d"]) for known in found]
    assert sizes == [(4, 1, 0), (4, 4, 2), (8, 4, 2)]


# Claims.


def measured(*lines: tuple[str, Any]) -> tuple[list[Point], Results]:
    """Rates of structures over n = 2, 4, 8, ...; a list of lists has turns."""
    points, results = [], Results()
    for label, values in lines:
        for at, value in enumerate(values):
            known = {"label": label, "n": 2 << at, "d": 0, "m": 1, "q": 1}
            order = (("n", str(2 << at)), ("structure", label))
            points.append(Point(known, order))
            for turn in value if isinstance(value, list) else [value]:
                results.add(order, {"rate": turn})
    return points, results


def state(check: Check, *lines: tuple[str, Any]) -> str:
    return judge(Claim("", check), *measured(*lines), "rate").state


def test_a_ratio_is_the_geometric_mean() -> None:
    lines = ("a", [2.0, 8.0]), ("b", [1.0, 1.0])
    assert state(ratio("a", "b", low=3.9, high=4.1), *lines) == "holds"
    assert state(ratio("a", "b", low=4.1), *lines) == "fails"
    assert state(ratio("a", "b", high=2, n=2), *lines) == "holds"


def test_turns_that_disagree_decide_nothing() -> None:
    lines = ("a", [[2.0, 2.0, 0.5]]), ("b", [1.0])
    assert state(ratio("a", "b", low=1), *lines) == "undecided"
    assert state(ratio("a", "b", low=0.4), *lines) == "holds"
    assert state(ratio("a", "b", low=3), *lines) == "fails"
    points, results = measured(*lines)
    verdict = judge(Claim("", ratio("a", "b", low=1)), points, results, "rate")
    assert verdict.figures.endswith("; the turns disagree: it holds in 2 of 3")


def test_what_was_not_measured_decides_nothing() -> None:
    points, results = measured(("a", [1.0]))
    verdict = judge(Claim("", ratio("a", "c")), points, results, "rate")
    assert (verdict.state, verdict.figures) == ("undecided", "not measured: c")


def test_refused_orders_count_as_not_measured() -> None:
    points, results = measured(("a", [1.0]))
    other = Point({"label": "b", "n": 2}, (("structure", "b"),))
    results.add(other.order, {"error": "unknown structure b"})
    verdict = judge(Claim("", ratio("a", "b")), [*points, other], results, "rate")
    assert verdict.state == "undecided"
    assert results.errors() == [(other.order, "unknown structure b")]


@pytest.mark.parametrize(
    ("check", "holds", "fails"),
    [
        (flat("a", "n", 1.5), [1.0, 1.4, 1.2], [1.0, 1.4, 1.6]),
        (falls("a", "n"), [4.0, 3.0, 2.0, 1.0], [4.0, 1.0, 3.0, 2.0]),
        (rises("a", "n"), [1.0, 2.0, 3.0, 4.0], [4.0, 3.0, 2.0, 1.0]),
        (slope("a", "n", -1.1, -0.9), [8.0, 4.0, 2.0], [8.0, 7.0, 6.0]),
        (fits_log("a", "n", 0.95), [1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 4.0, 64.0]),
        (fits_log("a", "n", 0.95), [1.0, 2.0, 3.0, 4.0], [4.0, 3.0, 2.0, 1.0]),
        (bounded("a", "n", lambda n: n, formula="n"), [2.0, 4.0], [2.0, 4.1]),
        (bounded("a", "n", float, formula="n", exactly=True), [2.0, 4.0], [2.0, 3.9]),
        (every(flat("a", "n", 2), rises("a", "n")), [1.0, 1.5, 1.8], [1.0, 2.0, 3.0]),
    ],
)
def test_predicates(check: Check, holds: list[float], fails: list[float]) -> None:
    assert state(check, ("a", holds)) == "holds"
    assert state(check, ("a", fails)) == "fails"


def test_the_best_is_highest_or_lowest() -> None:
    lines = ("a", [3.0]), ("b", [2.0]), ("c", [1.0])
    assert state(best("a", ("b", "c")), *lines) == "holds"
    assert state(best("c", ("a", "b"), least=True), *lines) == "holds"
    assert state(best("b", ("a", "c")), *lines) == "fails"
    assert state(below(("b", "c"), ("a",)), *lines) == "holds"
    assert state(below(("a", "c"), ("b",)), *lines) == "fails"


def test_a_crossing_lies_between_two_points() -> None:
    points, results = measured(("a", [1.0, 2.0, 4.0, 8.0]), ("b", [2.0] * 4))
    view = View(points, results, None, "rate")
    assert crossing(view, "a", "b") == pytest.approx(4)
    assert crossing(view, "a", "b", 2**0.5) == pytest.approx(4 * 2**0.5)
    assert crossing(view, "a", "b", 10) is None
    assert crossing(view, "b", "a") is None
    with pytest.raises(MissingError):
        crossing(view, "a", "c")


def test_break_even_points_come_so_many_times_later() -> None:
    def points(late: float) -> tuple[list[Point], Results]:
        base = ("base", [1.0] * 12)
        early = ("early", [0.5, *[2.0] * 11])
        rates = [0.5 if 2 << at <= late else 2.0 for at in range(12)]
        return measured(("late", rates), early, base)

    check = later("late", ("early",), "base", (None,), 10, 100)  # type: ignore[arg-type]
    for late, state in ((32, "holds"), (8, "fails"), (2048, "fails")):
        made, results = points(late)
        for point in made:
            point.known["operator"] = None
        assert judge(Claim("", check), made, results, "rate").state == state


def test_a_file_is_another_in_each_turn() -> None:
    order = (("metric", "counts"), ("values", f"energies-{READING}.int64"))
    files = [dict(of_turn(order, turn))["values"] for turn in range(4)]
    assert files == [f"energies-{number}.int64" for number in (0, 1, 2, 0)]
    assert Point({}, order).repeated
    assert not Point({}, order[:1]).repeated
    assert not Point({}, order).timed
    assert Point({}, (("metric", "throughput"),)).timed


# Data.

OLD = """\
"tripduration","starttime","stoptime","start station id","bikeid","usertype"
"238","2018-07-03 17:48:39.3470","2018-07-03 17:52:38.0010","3244","32159","Customer"
"529","2018-07-03 17:48:40","2018-07-03 17:57:29","3377","31535","Subscriber"
"""
OLDEST = """\
tripduration,starttime,stoptime,start station id
238,7/3/2018 17:48:39,7/3/2018 17:52:38,3244
529,07/03/18 17:48:40,07/03/18 17:57:29,3377
"""
NEW = """\
ride_id,rideable_type,started_at,ended_at,start_station_name,member_casual
A847,electric_bike,2018-07-03 17:48:39,2018-07-03 17:52:38,"E 12 St, 3 Ave",member
5427,classic_bike,2018-07-03 17:48:40.881,2018-07-03 17:57:29.003,Sands St,casual
"""
RIDES = [(1530640119, 1530640358), (1530640120, 1530640649)]


@pytest.mark.parametrize("text", [OLD, OLDEST, NEW])
def test_trips_of_every_schema(text: str) -> None:
    assert list(read_citibike(text.splitlines(keepends=True))) == RIDES


def test_what_is_no_file_of_trips_is_refused() -> None:
    with pytest.raises(ValueError, match="no times of trips"):
        list(read_citibike(["a,b\n", "1,2\n"]))
    with pytest.raises(ValueError, match="no time of a trip: 'soon'"):
        list(read_citibike(["started_at,ended_at\n", "soon,later\n"]))


def test_trips_arrive_by_their_ends(tmp_path: Path) -> None:
    early = "2018-07-01 00:00:05,2018-07-01 09:00:00"
    late = "2018-07-01 08:00:00,2018-07-01 08:10:00"
    path = tmp_path / "201807-citibike-tripdata.csv"
    text = f"\ufeffstarttime,stoptime\n{early}\n{late}\n"
    path.write_text(text, encoding="utf-8")
    (tmp_path / "other.csv").write_text("a\n")
    found = trips(tmp_path, 10)
    assert [start % 86_400 for start in found.starts] == [8 * 3600, 5]
    assert found.source == "2 trips of 201807-citibike-tripdata.csv"
    assert trips(None, 7).source == "7 generated trips"


def test_generated_trips_are_as_late_as_real_ones() -> None:
    """Trips of July 2018 were 74 % late, by 3 in the median and 127 at p99."""
    starts = generate_trips(10_000)
    late = sorted(replayed(starts, span=1 << 40).d)
    assert 0.70 < sum(d > 0 for d in late) / len(late) < 0.78
    assert 2 <= late[5_000] <= 4
    assert 100 <= late[9_900] <= 160
    assert 1_000 <= late[-1] <= 5_000


def test_a_replay_counts_by_its_definition() -> None:
    found = replayed([10, 5, 12, 30, 11, 31], span=10)
    assert found.d == [0, 1, 0, 0, 1, 0]
    assert found.m == [0, 0, 0, 3, 1, 0]
    assert found.n == [1, 2, 3, 1, 1, 2]


DEBS = (
    "2012-02-22T16:46:00.0000000+00:00\t2556001\t14018\t8193\t11915\t0\t0\t0\t1\n"
    "2012-02-22T16:46:00.0100000+00:00\t2556002\t14019\t8194\t11916\t0\t0\t0\t1\n"
)


def test_readings_of_the_manufacturing_equipment(tmp_path: Path) -> None:
    lines = DEBS.splitlines(keepends=True)
    assert list(read_debs2012(lines)) == [(14018, 8193, 11915), (14019, 8194, 11916)]
    with pytest.raises(ValueError, match="no line of DEBS 2012"):
        list(read_debs2012(["1,2,3\n"]))
    (tmp_path / "DEBS2012-allData.txt").write_text(DEBS)
    both = ([14018, 14019], [8193, 8194], [11915, 11916])
    assert energies(tmp_path, 10).readings == both
    assert energies(tmp_path, 1).readings == ([14018], [8193], [11915])


def test_generated_readings_have_the_shape_of_the_file() -> None:
    readings = list(generate_energies(200))
    lines = [f"{reading.line()}\n" for reading in readings]
    assert list(read_debs2012(lines)) == [one.energies for one in readings]
    assert {line.count("\t") for line in lines} == {55}
    steps = [b.time - a.time for a, b in pairwise(readings)]
    assert {step.total_seconds() for step in steps} == {0.01}
    assert all(set(reading.states) <= {0, 1} for reading in readings)


def test_numbers_for_the_driver(tmp_path: Path) -> None:
    write_numbers([1, -2], tmp_path / "x")
    raw = (tmp_path / "x").read_bytes()
    assert raw == (1).to_bytes(8, "little") + (-2).to_bytes(8, "little", signed=True)


# Results, pages and the peer.


def test_results_come_back_from_a_file() -> None:
    _, results = measured(("a", [[1.0, 3.0]]))
    again = Results.from_json(results.to_json())
    order = (("n", "2"), ("structure", "a"))
    assert again.runs(order) == [{"rate": 1.0}, {"rate": 3.0}]
    assert again.value(order, "rate", None) == 2.0
    assert again.turns() == 2


def test_there_is_no_picture_of_what_was_not_measured(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the extra slidewise[plot]")
    draw = importlib.import_module("bench.experiments.figures").draw
    rows = find("")
    points = {
        row.key: [point for grid in row.grids for point in grid.orders("quick", WORDS)]
        for row in rows
    }
    for row in rows:
        picture = tmp_path / f"{row.key}.png"
        picture.touch()
        draw(row, points[row.key], Results(), picture)
        assert not picture.exists()
    write_pages(rows, points, Results(), {}, tmp_path)
    page = (tmp_path / "bulk.md").read_text("utf-8")
    assert page.count("Nothing of it was measured.") == page.count("\n## ")


def test_pages_state_every_claim(tmp_path: Path) -> None:
    rows = find("slickdeque-13")
    points = [point for grid in rows[0].grids for point in grid.orders("quick", WORDS)]
    results = Results()
    for point in points:
        n = point.known["n"]
        rate = 5e6 if point.known["label"] == "SlickDeque" else 1e6
        results.add(point.order, {"rate": rate / n, "combines": min(1.9, n)})
    (tmp_path / "slickdeque-13.png").touch()
    verdicts = write_pages(
        rows, {rows[0].key: points}, results, {"machine": "m|1"}, tmp_path, "| peer |"
    )
    assert {verdict.state for verdict in verdicts} == {"holds"}
    page = (tmp_path / "slickdeque.md").read_text("utf-8")
    assert all(claim.says in page for claim in rows[0].claims)
    assert "![Figure 13](slickdeque-13.png)" in page
    summary = (tmp_path / "README.md").read_text("utf-8")
    assert f"| **all** | | {len(verdicts)} |" in summary
    assert "| peer |" in summary


def test_the_peer_gets_what_its_drivers_take() -> None:
    pairs = {pair.program: pair for pair in peer.PAIRS}
    fifo = pairs["benchmark_driver"].arguments(100)
    assert fifo[-2:] == ["65536", "65636"]
    assert pairs["ooo_benchmark_driver"].arguments(0)[-2:] == ["1024", "65536"]
    bulk = pairs["bulk_evict_insert_benchmark_driver"]
    assert bulk.arguments(0)[-3:] == ["0", "1024", "65536"]
    assert dict(bulk.order())["mode"] == "bulk"


def test_a_folder_without_the_peer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"is not there|no g\+\+"):
        peer.build(tmp_path, tmp_path / "out")
