"""The examples of the papers, replayed on every algorithm that supports them."""

import itertools
import math
import random
from collections import Counter

import pytest

import slidewise as sw
from slidewise.window.algorithms import ALGORITHMS

OUT_OF_ORDER = [name for name, known in ALGORITHMS.items() if not known.in_order]
MAX = {"max": sw.max(), "count": sw.max_count()}


def window(aggs, algorithm: str) -> sw.Window:
    """A window; one of the algorithms needs a bound on lateness."""
    options = {"latency": 1_000} if algorithm == "daba_late" else {}
    return sw.Window(aggs, algorithm=algorithm, **options)


@pytest.mark.parametrize("algorithm", OUT_OF_ORDER)
def test_fiba_section_2_max_and_maxcount(algorithm: str) -> None:
    """FiBA 2019, §2: an append, a late arrival, and evicts in order."""
    w = window(MAX, algorithm)
    for time, value in [(17, 4), (19, 3), (20, 0), (21, 4)]:
        w.insert(time, value)
    assert w.query() == {"max": 4, "count": 2}
    w.insert(22, 4)
    assert w.query() == {"max": 4, "count": 3}
    w.insert(18, 5)
    assert w.query() == {"max": 5, "count": 1}
    assert w.evict() == 17
    assert w.query() == {"max": 5, "count": 1}
    assert w.evict() == 18
    assert w.query() == {"max": 4, "count": 2}


# SlickDeque 2018, Figures 8 and 9: tuples, and answers for the last 3 and the last 5.
TUPLES = [6, 5, 0, 1, 3, 4, 2, 7]
SUMS = [(6, 6), (11, 11), (11, 11), (6, 12), (4, 15), (8, 13), (9, 10), (13, 17)]
MAXIMA = [(6, 6), (6, 6), (6, 6), (5, 6), (3, 6), (4, 5), (4, 4), (7, 7)]
SHARED = [name for name, known in ALGORITHMS.items() if known.shared]


@pytest.mark.parametrize("algorithm", [*SHARED, "auto"])
@pytest.mark.parametrize(
    ("agg", "answers"), [(sw.sum(), SUMS), (sw.max(), MAXIMA)], ids=["sum", "max"]
)
def test_slickdeque_examples_2_and_3(algorithm: str, agg, answers) -> None:
    w = sw.SharedWindow(agg, ranges=[3, 5], algorithm=algorithm)
    for time, (value, expected) in enumerate(zip(TUPLES, answers, strict=True)):
        w.insert(time, value)
        assert tuple(w.query()) == expected


CONCAT = sw.aggregation(
    lift=str, combine=lambda a, b: a + b, identity="", name="test_paper_traces:CONCAT"
)


@pytest.mark.parametrize(
    "algorithm", [name for name, known in ALGORITHMS.items() if known.law is None]
)
def test_reactive_aggregator_figure_5(algorithm: str) -> None:
    """RA 2015, Figure 5: the buffer wraps around as 9 arrives, in the same order."""
    options = {"capacity": 4} if algorithm == "flat_fat" else {}
    if algorithm == "daba_late":
        options = {"latency": 1_000}
    w = sw.Window(CONCAT, algorithm=algorithm, **options)
    seen = []
    for time, value in enumerate([4, 7, 3, 2]):
        w.insert(time, value)
        seen.append(w.query())
    w.evict()
    seen.append(w.query())
    w.insert(4, 9)
    seen.append(w.query())
    assert seen == ["4", "47", "473", "4732", "732", "7329"]


@pytest.mark.parametrize("algorithm", OUT_OF_ORDER)
def test_fiba_figure_3(algorithm: str) -> None:
    """FiBA 2018, Figure 3: what the tree of each state holds; one that is inserted
    between 4 and 5 and one that is evicted are not in the text."""
    w = window(CONCAT, algorithm)
    times = {letter: 10 * at for at, letter in enumerate("abcdefghijklmnopqrstuv", 1)}
    for letter in "abcdefghijklmnoqrstu":
        w.insert(times[letter], letter)
    assert w.query() == "abcdefghijklmnoqrstu"
    w.insert(times["v"], "v")
    w.insert(times["p"], "p")
    assert w.query() == "abcdefghijklmnopqrstuv"
    assert w.query(times["h"], times["n"]) == "hijklmn"
    assert w.evict() == times["a"]
    w.insert(45, "E")
    assert w.query() == "bcdEefghijklmnopqrstuv"
    if algorithm != "daba_late":
        assert w.evict(times["f"])
        assert w.query(times["b"], times["g"]) == "bcdEeg"


# Max has no inverse.
@pytest.mark.parametrize("algorithm", sorted({*ALGORITHMS} - {"subtract_on_evict"}))
def test_daba_figure_1(algorithm: str) -> None:
    """DABA 2015, Figure 1: 2, 6, 3, 5, 3 slide on by 1; the text does not tell the
    three that follow."""
    w = window(sw.max(), algorithm)
    w.insert_many(range(5), [2, 6, 3, 5, 3])
    maxima = [w.query()]
    for time, value in enumerate([1, 4, 2, 0], 5):
        w.evict()
        maxima.append(w.query())
        w.insert(time, value)
        maxima.append(w.query())
    assert maxima == [6, 6, 6, 5, 5, 5, 5, 4, 4]


@pytest.mark.parametrize("algorithm", sorted(ALGORITHMS))
def test_bulk_fiba_section_1(algorithm: str) -> None:
    """Bulk FiBA 2023, §1: an entry at 61 evicts five at once from a window of 60."""
    options = {"latency": 1_000} if algorithm == "daba_late" else {}
    w = sw.Window(sw.count(), algorithm=algorithm, last=600, **options)
    w.insert_many([1, 2, 3, 4, 5, 100, 200, 300, 400, 500, 600], None)
    assert len(w) == 11
    w.insert(610, None)
    assert (len(w), w.oldest) == (7, 100)


def displacements(order) -> list[int]:
    """δ_i: the number of earlier elements that are greater."""
    return [
        sum(before > value for before in order[:at]) for at, value in enumerate(order)
    ]


def drawn(count: int, most: int, source: random.Random) -> list[int]:
    """A uniformly random member of G_d(1..count).

    Each element, from the last to the first, is one of the most + 1 greatest left.
    """
    left, order = list(range(1, count + 1)), []
    while left:
        order.append(left.pop(-1 - source.randrange(min(most + 1, len(left)))))
    return order[::-1]


@pytest.mark.parametrize(
    ("count", "most"), [(1, 0), (4, 0), (5, 1), (5, 2), (6, 3), (6, 5)]
)
def test_fiba_lemma_a_1(count: int, most: int) -> None:
    """|G_d(X)| = d! (d + 1)^(|X| - d), and the permutations drawn are all of them."""
    group = [
        order
        for order in itertools.permutations(range(1, count + 1))
        if max(displacements(order)) <= most
    ]
    size = math.factorial(most) * (most + 1) ** (count - most)
    assert len(group) == size
    source = random.Random(count * 100 + most)
    seen = Counter(tuple(drawn(count, most, source)) for _ in range(60 * size))
    assert set(seen) == set(group)


@pytest.mark.parametrize("algorithm", OUT_OF_ORDER)
@pytest.mark.parametrize("most", [0, 1, 7, 64, 299])
def test_fiba_theorem_2_2_sorts_by_first(algorithm: str, most: int) -> None:
    """The reduction of Appendix A, in 3m operations.

    Inserts at times π_i, then queries of `first` and evicts, give π in order.
    """
    order = drawn(300, most, random.Random(most))
    assert max(displacements(order)) <= most
    w = window(sw.first(), algorithm)
    for element in order:
        w.insert(element, element)
    found = []
    while len(w):
        found.append(w.query())
        w.evict()
    assert found == sorted(order)
