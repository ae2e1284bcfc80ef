"""Naive Bayes over a window is naive Bayes of the examples in it."""

import random

import pytest

import classifier
import slidewise as sw
from classifier import NAIVE_BAYES, Example, Model, drifting


def trained(examples: list[Example]) -> Model:
    """From scratch, by counting."""
    counts: dict[tuple, int] = {}
    for label, attributes in examples:
        keys = [(label,)]
        keys += [(label, place, value) for place, value in enumerate(attributes)]
        for key in keys:
            counts[key] = counts.get(key, 0) + 1
    return Model(counts)


def test_its_laws_hold() -> None:
    sw.check_laws(NAIVE_BAYES, samples=list(drifting(12, 3)))


@pytest.mark.parametrize("algorithm", ["fiba", "subtract_on_evict", "daba_lite"])
def test_a_window_is_trained_on_its_examples(algorithm: str) -> None:
    examples = list(drifting(120, 5))
    window = sw.Window(NAIVE_BAYES, algorithm=algorithm, last=sw.rows(20))
    for time, example in enumerate(examples):
        window.insert(time, example)
        assert window.query() == trained(examples[max(0, time - 19) : time + 1])


def test_late_examples_are_trained_on_too() -> None:
    examples = list(enumerate(drifting(80, 7)))
    window = sw.Window(NAIVE_BAYES)
    for time, example in random.Random(7).sample(examples, 80):
        window.insert(time, example)
    window.evict_until(39)
    assert window.query() == trained([example for _, example in examples[40:]])
    assert window.query(50, 59) == trained([example for _, example in examples[50:60]])


def test_a_window_drops_what_is_no_longer_true(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["classifier.py", "--items", "1200", "--window", "100"]
    monkeypatch.setattr("sys.argv", arguments)
    classifier._main()
    last, everything = capsys.readouterr().out.splitlines()
    assert last.startswith("of the last")
    assert everything.startswith("of all")
    shares = [float(line.split("%")[0].split()[-1]) for line in (last, everything)]
    assert shares[0] > 80 > shares[1]
