"""Cases in which every two values of different factors occur together.

A greedy covering array: each case begins with a pair that has not occurred yet, and
takes for each further factor the value with which most pairs are new.
"""

from collections.abc import Iterator
from itertools import chain, combinations, product
from random import Random
from typing import Any

from keyed_pairs.factors import CATALOGUE, FACTORS, Case, fits

Item = tuple[str, Any]
Pair = frozenset[Item]
_SIZES = {"alone": 1, "two": 2, "many": 5}
# Chosen together, because the others depend on them.
_FIRST = ("windows", "emit")


def items(case: Case) -> list[Item]:
    """The values of a case, each with its factor."""
    found = [(name, case[name]) for name in FACTORS if name in case]
    return found + [("agg", name) for name in case.get("aggs", ())]


def pairs(case: Case) -> Iterator[Pair]:
    """All pairs of values that occur in it."""
    return map(frozenset, combinations(items(case), 2))


def possible() -> set[Pair]:
    """All pairs that some case can hold."""
    found = set()
    for one, two in combinations(FACTORS, 2):
        for a, b in product(FACTORS[one], FACTORS[two]):
            if any(_centres({one: a, two: b})):
                found.add(frozenset([(one, a), (two, b)]))
    for agg in CATALOGUE:
        for name, values in FACTORS.items():
            found |= {frozenset([("agg", agg), (name, value)]) for value in values}
    return found | {
        frozenset([("agg", a), ("agg", b)]) for a, b in combinations(CATALOGUE, 2)
    }


def _centres(case: Case) -> Iterator[Case]:
    for values in product(*(FACTORS[name] for name in _FIRST)):
        chosen = dict(zip(_FIRST, values, strict=True))
        agrees = all(case.get(name, chosen[name]) == chosen[name] for name in _FIRST)
        if agrees and fits({**case, **chosen}):
            yield {**case, **chosen}


class Cover:
    """Draws cases until all pairs have occurred.

    Attributes:
        missing: The pairs that have not occurred.
        total: The number of all pairs.
    """

    def __init__(self, random: Random) -> None:
        self.random = random
        # The order of a set of frozensets of texts differs between processes.
        self.order = sorted(possible(), key=lambda pair: sorted(map(repr, pair)))
        random.shuffle(self.order)
        self.missing = set(self.order)
        self.total = len(self.missing)

    def __iter__(self) -> Iterator[Case]:
        while True:
            while self.order and self.order[-1] not in self.missing:
                self.order.pop()
            if not self.order:
                return
            case = self._case(self.order[-1])
            self.missing.difference_update(pairs(case))
            yield case

    def _case(self, seed: Pair) -> Case:
        case: Case = {name: value for name, value in seed if name != "agg"}
        aggs = sorted(value for name, value in seed if name == "agg")
        case["aggs"] = aggs
        if len(aggs) == 2:
            case["company"] = self.random.choice(["many", "many", "many", "two"])
        case = self._best(case, list(_centres(case)))
        names = [name for name in FACTORS if name not in case]
        self.random.shuffle(names)
        for name in names:
            further = [{**case, name: value} for value in FACTORS[name]]
            case = self._best(case, [one for one in further if fits(one)])
        for _ in range(_SIZES[case["company"]] - len(aggs)):
            more = [name for name in CATALOGUE if name not in case["aggs"]]
            further = [{**case, "aggs": [*case["aggs"], agg]} for agg in more]
            case = self._best(case, further)
        return case

    def _best(self, case: Case, further: list[Case]) -> Case:
        """The further case with most new pairs; of equal ones, not a slow one."""
        self.random.shuffle(further)
        known = items(case)
        return max(
            further,
            key=lambda one: (self._new(known, one), one.get("page") != "real"),
        )

    def _new(self, known: list[Item], case: Case) -> int:
        """The number of new pairs of a case with items that were not known."""
        added = [item for item in items(case) if item not in known]
        among = chain(combinations(added, 2), product(added, known))
        return sum(frozenset(pair) in self.missing for pair in among)


def alone(random: Random) -> Iterator[Case]:
    """Every aggregation by itself with more rows than a page of the real size holds."""
    for number, agg in enumerate(random.sample(list(CATALOGUE), len(CATALOGUE))):
        case: Case = {"aggs": [agg], "company": "alone", "page": "real"}
        # Every other one folds for windows at a distance from one another.
        emit = "slide" if number % 2 else random.choice(["final", "arrival", "update"])
        case = random.choice(list(_centres({**case, "emit": emit})))
        names = [name for name in FACTORS if name not in case]
        random.shuffle(names)
        for name in names:
            values = random.sample(FACTORS[name], len(FACTORS[name]))
            case[name] = next(v for v in values if fits({**case, name: v}))
        yield case
