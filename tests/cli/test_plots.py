"""Pictures: a line shows an answer until the next one, or until its window is empty."""

import datetime as dt
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import slidewise as sw
from slidewise.cli import main, plots
from slidewise.spec.spec import Spec
from slidewise.table.rolling import rolling_spec

pytest.importorskip("matplotlib", reason="pictures need matplotlib")


@pytest.fixture
def panels(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The panels of the last picture that was drawn."""
    from matplotlib.figure import Figure

    drawn: list[Any] = []
    save = Figure.savefig

    def saved(figure: Figure, *args: Any, **options: Any) -> None:
        drawn[:] = figure.axes
        save(figure, *args, **options)

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


def test_answers_are_steps_that_end_with_their_window(
    tmp_path: Path, panels: list[Any]
) -> None:
    draw(tmp_path, [0, 10, 12, 40], windows=[15, 100, sw.rows(2)])
    counts, sums = map(lines, panels)
    for panel in (counts, sums):
        for label, line in panel.items():
            if not label.startswith("_"):
                assert line.get_drawstyle() == "steps-post", label
    # At 27 the row of 12 leaves (t − 15, t]; the next row is at 40.
    assert points(counts["n_15"]) == [(0, 1), (10, 2), (12, 3), (27, 0), (40, 1)]
    assert points(sums["s_15"]) == [(0, 1), (10, 3), (12, 7), (27, None), (40, 8)]
    assert points(counts["n_100"]) == [(0, 1), (10, 2), (12, 3), (40, 4)]
    assert points(sums["s_2rows"]) == [(0, 1), (10, 3), (12, 6), (40, 12)]


@pytest.mark.parametrize(("offset", "empty"), [(3, 30), (-5, 22), (-15, None)])
def test_an_offset_moves_the_end_of_the_window(
    tmp_path: Path, panels: list[Any], offset: int, empty: int | None
) -> None:
    draw(tmp_path, [0, 10, 12, 40], windows=15, offset=offset)
    times = [time for time, _ in points(lines(panels[0])["n_15"])]
    assert times == [0, 10, 12, *([] if empty is None else [empty]), 40]


@pytest.mark.parametrize("unit", ["s", "us", "ns"])
def test_timestamps_of_any_unit(tmp_path: Path, panels: list[Any], unit: str) -> None:
    begins = dt.datetime(2026, 1, 5)
    hours = [begins + dt.timedelta(hours=hour) for hour in (0, 1, 2, 9)]
    draw(tmp_path, pa.array(hours, pa.timestamp(unit)), windows=["2h", "1d"])
    short, long = (lines(panels[1])[label] for label in ("s_2h", "s_1d"))
    drawn = short.get_xdata().astype("datetime64[h]").tolist()
    assert drawn == [*hours[:3], begins + dt.timedelta(hours=4), hours[3]]
    assert [value for _, value in points(short)] == [1, 3, 6, None, 8]
    assert [value for _, value in points(long)] == [1, 3, 7, 15]


def test_the_ends_of_int64(tmp_path: Path, panels: list[Any]) -> None:
    draw(tmp_path, [-(2**63), 0, 5, 2**63 - 1], windows=10)
    found = points(lines(panels[0])["n_10"])
    assert [value for _, value in found] == [1, 0, 1, 2, 0, 1]
    assert [time for time, _ in found] == pytest.approx(
        [-(2**63), 10 - 2**63, 0, 5, 15, 2**63 - 1]
    )


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
