"""A classifier over a window: naive Bayes as an aggregation.

    python examples/classifier/classifier.py [--items 3000] [--window 300] [--seed 1]

Izbicki: *Algebraic Classifiers: A Generic Approach to Fast Cross-Validation, Online
Training, and Parallel Training*, ICML 2013. A classifier is algebraic if models trained
on two sets of examples can be combined. Those of naive Bayes are counts, a group: they
add up, and subtract.

An example is (label, (attribute, ...)). The window keeps the latest ones, and its
answer is a model trained on exactly these: what is no longer true is forgotten.
"""

import argparse
import math
import random
from collections.abc import Hashable, Iterator
from dataclasses import dataclass

import slidewise as sw

__all__ = ["NAIVE_BAYES", "Example", "Model", "drifting"]

Example = tuple[Hashable, tuple[Hashable, ...]]

# How many examples there are of a label, (label,), and of a label with a value of the
# attribute at a place, (label, place, value).
Counts = dict[tuple[Hashable, ...], int]


@dataclass(frozen=True)
class Model:
    """Naive Bayes with one more example of each value than were seen (Laplace)."""

    counts: Counts

    def predict(self, attributes: tuple[Hashable, ...]) -> Hashable:
        """The likeliest label; of equally likely ones that which sorts first."""
        labels = sorted((key[0] for key in self.counts if len(key) == 1), key=repr)
        return max(labels, key=lambda label: self._log_likelihood(label, attributes))

    def _log_likelihood(
        self, label: Hashable, attributes: tuple[Hashable, ...]
    ) -> float:
        total = self.counts[label,]
        seen = (
            self.counts.get((label, *attribute), 0)
            for attribute in enumerate(attributes)
        )
        return math.log(total) + sum(math.log((n + 1) / (total + 2)) for n in seen)


def lift(example: Example) -> Counts:
    """The counts of one example."""
    label, attributes = example
    places = ((label, *attribute) for attribute in enumerate(attributes))
    return dict.fromkeys([(label,), *places], 1)


def combine(earlier: Counts, later: Counts) -> Counts:
    """The sums of both."""
    few, many = sorted((earlier, later), key=len)
    return {**many, **{key: many.get(key, 0) + n for key, n in few.items()}}


def inverse(whole: Counts, earliest: Counts) -> Counts:
    """What is left of the whole."""
    rest = {**whole, **{key: whole[key] - n for key, n in earliest.items()}}
    return {key: n for key, n in rest.items() if n}


NAIVE_BAYES = sw.aggregation(
    lift, combine, Model, {}, inverse, commutative=True, name="classifier:NAIVE_BAYES"
)


def drifting(items: int, seed: int) -> Iterator[Example]:
    """Examples whose label is one of their two attributes, nine times of ten.

    Up to the half it is the first one, then the second.
    """
    rng = random.Random(seed)
    for item in range(items):
        attributes = (rng.random() < 0.5, rng.random() < 0.5)
        label = attributes[item >= items // 2]
        yield label ^ (rng.random() < 0.1), attributes


def _main() -> None:
    options = argparse.ArgumentParser(description="naive Bayes over a window")
    options.add_argument("--items", type=int, default=3000)
    options.add_argument("--window", type=int, default=300)
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()
    windows = {
        "of the last": sw.Window(NAIVE_BAYES, last=sw.rows(given.window)),
        "of all": sw.Window(NAIVE_BAYES),
    }
    right = dict.fromkeys(windows, 0)
    for item, (label, attributes) in enumerate(drifting(given.items, given.seed)):
        for name, window in windows.items():
            # Tested on each example before it is trained on, after the drift.
            if item >= given.items // 2:
                right[name] += window.query().predict(attributes) == label
            window.insert(item, (label, attributes))
    answered = given.items - given.items // 2
    for name, count in right.items():
        print(f"{name:<12} {count / answered:.1%} right after the drift")


if __name__ == "__main__":
    _main()
