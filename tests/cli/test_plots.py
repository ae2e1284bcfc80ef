"""Pictures: a line shows the answer of its window at every time."""

import datetime as dt
import math
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from seeds import SEED

import slidewise as sw
from slidewise.cli import main, plots
from slidewise.spec.spec import Spec
from slidewise.table.rolling import rolling_spec

pytest.importorskip("matplotlib", reason="pictures need matplotlib")


@pytest.fixture
def panels(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The panels of the last picture that was drawn; none is written."""
    from matplotlib.figure import Figure

    drawn: list[Any] = []

    def saved(figure: Figure, *_: Any, **__: Any) -> None:
        drawn[:] = figure.axes

    monkeypatch.setattr(Figure, "savefig", saved)
    return drawn


def lines(panel: Any) -> dict[str, Any]:
    return {line.get_label(): line for line in panel.get_lines()}


def points(line: Any) -> list[tuple[Any, float | None]]:
    """Those of a line, with None where it is interrupted."""
    values = [None if math.isnan(y) else y for y in line.get_ydata().tolist()]
    return list(zip(line.get_xdata().tolist(), values, strict=True))


def draw(tmp_path: Path, times: Any, **request: Any) -> None:
    table = pa.table({"t": times, "x": [1.0, 2.0, 4.0, 8.0]})
    aggs = {"n": sw.count(), "s": sw.sum("x")}
    spec = Spec.make(on="t", aggs=aggs, **request)
    plots.draw_rolling(rolling_spec(table, spec), spec, tmp_path / "out.png")


def test_answers_are_steps_from_change_to_change(
    tmp_path: Path, panels: list[Any]
) -> None:
    draw(tmp_path, [0, 10, 12, 40], windows=[15, 100, sw.rows(2)])
    counts, sums = map(lines, panels)
    for panel in (counts, sums):
        for label, line in panel.items():
            if not label.startswith("_"):
                assert line.get_drawstyle() == "steps-post", label
    # The row of 0 leaves (t − 15, t] at 15, the last one at 27; the next is at 40.
    until = [(0, 1), (10, 2), (12, 3), (15, 2), (25, 1), (27, 0), (40, 1)]
    assert points(counts["n_15"]) == until
    until = [(0, 1), (10, 3), (12, 7), (15, 6), (25, 4), (27, None), (40, 8)]
    assert points(sums["s_15"]) == until
    assert points(counts["n_100"]) == [(0, 1), (10, 2), (12, 3), (40, 4)]
    assert points(sums["s_2rows"]) == [(0, 1), (10, 3), (12, 6), (40, 12)]


@pytest.mark.parametrize("closed", ["right", "left", "both", "neither"])
@pytest.mark.parametrize("offset", [None, 3, -5, -15, 40])
def test_a_line_is_the_answer_at_every_time(
    tmp_path: Path, panels: list[Any], closed: str, offset: int | None
) -> None:
    rng = random.Random(f"{SEED}{closed}{offset}")
    others = [sw.rows(2)] if closed in ("right", "left") else []
    others = [] if offset else [*others, sw.trailing(7, resolution=10)]
    for windows in (7, [3, 30, *others]):
        times = sorted(rng.randrange(100) for _ in range(rng.choice([1, 30])))
        table = pa.table({"t": times, "x": [rng.randrange(9) for _ in times]})
        aggs = {"n": sw.count(), "s": sw.sum("x"), "m": sw.mean("x")}
        spec = Spec.make(
            on="t", aggs=aggs, windows=windows, closed=closed, offset=offset
        )
        plots.draw_rolling(rolling_spec(table, spec), spec, tmp_path / "out.png")
        drawn: dict[str, Any] = {}
        for panel in panels:
            drawn |= lines(panel)
        for label in spec.results:
            steps = points(drawn[label])
            first, last = int(steps[0][0]), int(steps[-1][0])
            at = pa.table({"t": range(first, last + 1)})
            right = sw.rolling(table, spec, at=at)[label].to_pylist()
            shown = [
                [held for begin, held in steps if begin <= time][-1]
                for time in range(first, last + 1)
            ]
            assert shown == right, (label, times)
            assert first <= times[0] <= times[-1] <= last


def test_a_lone_row_is_counted(tmp_path: Path, panels: list[Any]) -> None:
    table = pa.table({"t": [5], "x": [1.0]})
    spec = Spec.make(on="t", aggs={"n": sw.count()}, windows=3, closed="left")
    plots.draw_rolling(rolling_spec(table, spec), spec, tmp_path / "out.png")
    assert points(lines(panels[0])["n_3"]) == [(5, 0), (6, 1)]


@pytest.mark.parametrize("unit", ["s", "us", "ns"])
def test_timestamps_of_any_unit(tmp_path: Path, panels: list[Any], unit: str) -> None:
    begins = dt.datetime(2026, 1, 5)
    hours = [begins + dt.timedelta(hours=hour) for hour in (0, 1, 2, 9)]
    draw(tmp_path, pa.array(hours, pa.timestamp(unit)), windows=["2h", "1d"])
    short, long = (lines(panels[1])[label] for label in ("s_2h", "s_1d"))
    drawn = short.get_xdata().astype("datetime64[h]").tolist()
    ends = [begins + dt.timedelta(hours=hour) for hour in (3, 4)]
    assert drawn == [*hours[:3], *ends, hours[3]]
    assert [value for _, value in points(short)] == [1, 3, 6, 4, None, 8]
    assert [value for _, value in points(long)] == [1, 3, 7, 15]


def test_days(tmp_path: Path, panels: list[Any]) -> None:
    days = [dt.date(2026, 1, day) for day in (1, 2, 4, 9)]
    for kind in (pa.date32(), pa.date64()):
        draw(tmp_path, pa.array(days, kind), windows="2d", closed="left")
        found = points(lines(panels[0])["n_2d"])
        assert [value for _, value in found] == [0, 1, 2, 1, 0, 1], kind


def test_the_ends_of_int64(tmp_path: Path, panels: list[Any]) -> None:
    draw(tmp_path, [-(2**63), 0, 5, 2**63 - 1], windows=10)
    found = points(lines(panels[0])["n_10"])
    assert [value for _, value in found] == [1, 0, 1, 2, 1, 0, 1]
    assert [time for time, _ in found] == pytest.approx(
        [-(2**63), 10 - 2**63, 0, 5, 10, 15, 2**63 - 1]
    )
    draw(tmp_path, [-(2**63), 0, 5, 2**63 - 1], windows=10, closed="left", offset=9)
    found = points(lines(panels[0])["n_10"])
    assert [value for _, value in found] == [0, 1, 0, 1, 2, 1, 0, 0]


def test_answers_of_rows_alone_are_points(tmp_path: Path, panels: list[Any]) -> None:
    draw(tmp_path, [0, 10, 12, 40], windows=[15, sw.delta("x", 1.5)])
    near = lines(panels[0])["n_delta_x_1.5"]
    assert (near.get_linestyle(), near.get_marker()) == ("None", "o")
    assert points(near) == [(0, 1), (10, 2), (12, 1), (40, 1)]
    draw(tmp_path, [0, 10, 12, 40], windows=15, arrival="t")
    late = lines(panels[0])["n_15"]
    assert (late.get_linestyle(), late.get_marker()) == ("None", "o")
    assert points(late) == [(0, 1), (10, 2), (12, 3), (40, 1)]


def test_ticks_of_integers_are_integers(tmp_path: Path, panels: list[Any]) -> None:
    draw(tmp_path, [0, 10, 12, 40], windows=15)
    counts = panels[0].get_yticks().tolist()
    assert counts == [int(tick) for tick in counts]


KEYED = "t,a,b\n1,1,x\n2,1,y\n3,2,x\n4,2,x\n9,1,x\n"
PLOTTED = ["--on", "t", "--window", "3", "--agg", "n=count", "--agg", "m=mean:t"]


def plot(tmp_path: Path, *more: str) -> int:
    file = tmp_path / "rows.csv"
    file.write_text(KEYED)
    picture = str(tmp_path / "out.svg")
    given = ["rolling", str(file), *PLOTTED, "--quiet", "--plot", picture, *more]
    return main.main(given)


def test_a_key_of_one_column(tmp_path: Path, panels: list[Any]) -> None:
    assert plot(tmp_path, "--by", "a", "--key", "2") == 0
    assert points(lines(panels[0])["n_3"]) == [(3, 1), (4, 2)]


def test_a_key_of_several_columns(tmp_path: Path, panels: list[Any]) -> None:
    assert plot(tmp_path, "--by", "a", "--by", "b", "--key", "1:y") == 0
    assert points(lines(panels[0])["n_3"]) == [(2, 1)]


def test_several_keys_have_a_line_each(tmp_path: Path, panels: list[Any]) -> None:
    assert plot(tmp_path, "--by", "a", "--key", "1", "--key", "2") == 0
    counts, means = map(lines, panels)
    assert points(counts["a 1"]) == [(1, 1), (2, 2), (4, 1), (5, 0), (9, 1)]
    assert points(counts["a 2"]) == [(1, 0), (3, 1), (4, 2), (6, 1), (7, 0), (9, 0)]
    assert points(means["a 2"])[0] == (1, None)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--by", "a", "--key", "7"], "--key 7 has no rows"),
        (["--by", "a", "--key", "z"], "--key z: column 'a' holds int64, not 'z'"),
        (["--by", "a", "--by", "b", "--key", "1"], "--key 1 is not a key of a, b"),
        (["--key", "1"], "--key 1 needs --by"),
    ],
)
def test_keys_that_are_not_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str], words: str
) -> None:
    assert plot(tmp_path, *more) == 2
    assert words in capsys.readouterr().err


def test_the_latest_answer_is_marked(tmp_path: Path, panels: list[Any]) -> None:
    """A single answer after a gap would otherwise be a line of no length."""
    draw(tmp_path, [0, 10, 12, 40], windows=[15, 100])
    marks = [
        (mark.get_xdata().tolist(), mark.get_ydata().tolist())
        for mark in panels[1].get_lines()
        if mark.get_label().startswith("_")
    ]
    assert marks == [([40], [8.0]), ([40], [15.0])]


def test_a_picture_of_large_integer_times(tmp_path):
    pytest.importorskip("matplotlib")
    file, picture = tmp_path / "rows.csv", tmp_path / "rows.svg"
    rows = [f"{2**60 + 700 * at},{at}" for at in range(20)]
    file.write_text("\n".join(["t,x", *rows, ""]))
    given = ["--on", "t", "--window", "2000", "--agg", "s=sum:x", "--quiet"]
    out = ["-o", str(tmp_path / "out.csv"), "--plot", str(picture)]
    assert main.main(["rolling", str(file), *given, *out]) == 0
    assert picture.stat().st_size > 0
