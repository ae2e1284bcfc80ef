"""ADWIN finds drifts soon, and none in a stream without drift."""

import doctest
import random
import statistics
import sys

import pytest

import adwin


def stream(seed: int, *parts: tuple[int, float]) -> list[float]:
    """Items that are 1 with each of the probabilities, `count` of each."""
    rng = random.Random(seed)
    return [
        float(rng.random() < chance) for count, chance in parts for _ in range(count)
    ]


class Listed:
    """The same over a list, with every cut computed anew."""

    def __init__(self, delta: float) -> None:
        self.delta = delta
        self.items: list[float] = []

    def add(self, value: float) -> int:
        self.items.append(value)
        before = len(self.items)
        while (newer := self.changed()) is not None:
            self.items = self.items[-newer:]
        return before - len(self.items)

    def changed(self) -> int | None:
        found = None
        variance = statistics.pvariance(self.items)
        for newer in adwin.cuts(len(self.items), 5):
            old, new = self.items[:-newer], self.items[-newer:]
            apart = abs(statistics.fmean(new) - statistics.fmean(old))
            most = adwin.bound(len(new), len(old), variance, self.delta)
            if min(len(old), len(new)) >= 5 and apart > most:
                found = newer
        return found


def test_the_window_is_that_of_a_list() -> None:
    items = stream(3, (150, 0.1), (120, 0.9), (150, 0.4))
    window, listed = adwin.Adwin(0.01), Listed(0.01)
    drops = []
    for item in items:
        drops.append(window.add(item))
        assert drops[-1] == listed.add(item)
        assert len(window) == len(listed.items)
        assert window.mean == pytest.approx(statistics.fmean(listed.items))
    assert sum(map(bool, drops)) >= 2


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("chance", "within"), [(0.9, 40), (0.5, 150)])
def test_an_abrupt_drift_is_found_soon(seed: int, chance: float, within: int) -> None:
    items = stream(seed, (1500, 0.2), (600, chance))
    window = adwin.Adwin()
    alarms = [at for at, item in enumerate(items) if window.add(item)]
    assert 1500 <= alarms[0] < 1500 + within
    assert len(window) <= 650
    assert window.mean == pytest.approx(chance, abs=0.08)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("chance", [0.02, 0.5, 1.0])
def test_nothing_is_dropped_where_nothing_changes(seed: int, chance: float) -> None:
    window = adwin.Adwin()
    assert sum(window.add(item) for item in stream(seed, (1500, chance))) == 0
    assert len(window) == 1500


def test_a_slow_drift_keeps_the_window_short() -> None:
    rng = random.Random(7)
    window = adwin.Adwin()
    for at in range(3000):
        window.add(min(max(at / 3000 + rng.gauss(0, 0.05), 0.0), 1.0))
    assert len(window) < 600
    assert window.mean is not None
    assert window.mean > 0.85


def test_the_program_prints_both_changes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["adwin.py", "--items", "1200"])
    adwin.main()
    *changes, end = capsys.readouterr().out.splitlines()
    assert len(changes) >= 2
    assert changes[0].startswith("item 4")
    assert end.startswith("at the end: ")


def test_its_examples_run() -> None:
    found = doctest.testmod(adwin)
    assert found.attempted >= 5
    assert found.failed == 0
