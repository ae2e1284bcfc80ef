"""Covariances, slopes and weighted means over tables equal their definitions."""

import math
import random
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from seeds import SEED

import slidewise as sw

AGGS = {
    "covariance": sw.covariance("x", "y"),
    "population": sw.covariance("x", "y", ddof=0),
    "correlation": sw.correlation("x", "y"),
    "slope": sw.slope("x", "y"),
    "r_squared": sw.r_squared("x", "y"),
    "weighted": sw.weighted_mean("x", by="y"),
}


def cells(rng: random.Random, kind: str, count: int) -> list[Any]:
    """A column: near a large number, of few values, of runs of one, of outliers."""
    start, scale = rng.choice([0, 1e6, 1e15, -3e9]), rng.choice([1e-3, 1, 1e3])
    draw = {
        "floats": lambda: start + scale * rng.gauss(0, 1),
        "few": lambda: rng.choice([0.1, 0.2, 0.3]),
        "integers": lambda: 10**17 + rng.randrange(-50, 50),
        "outliers": lambda: rng.gauss(0, 1) * rng.choice([1] * 20 + [1e9]),
        "tiny": lambda: rng.choice([1e-120, 2e-120, 5e-120]),
    }
    values: list[Any] = []
    while len(values) < count:
        run = rng.randrange(1, 30) if kind == "runs" else 1
        values += [draw["few" if kind == "runs" else kind]()] * run
    missing = rng.choice([0, 0, 0.2])
    return [None if rng.random() < missing else value for value in values[:count]]


def by_definition(pairs: list[tuple[Any, Any]]) -> dict[str, float | None]:
    """Sums of products of deviations as fractions."""
    count = len(pairs)
    exact = [(Fraction(x), Fraction(y)) for x, y in pairs]
    means = [sum(side) / count for side in zip(*exact, strict=True)]
    away = [(x - means[0], y - means[1]) for x, y in exact]

    def products(i: int, j: int) -> Fraction:
        return sum((distances[i] * distances[j] for distances in away), Fraction())

    xx, yy, xy = products(0, 0), products(1, 1), products(0, 1)
    share = None if xx * yy == 0 else float(xy * xy / (xx * yy))
    alone = count < 2
    weights = sum((y for _, y in exact), Fraction())
    weighted = sum((x * y for x, y in exact), Fraction())
    return {
        "weighted": float(weighted / weights) if weights else None,
        "covariance": None if alone else float(xy / (count - 1)),
        "population": float(xy / count) if count else None,
        "correlation": None
        if alone
        else (math.nan if share is None else math.copysign(math.sqrt(share), xy)),
        "slope": None if alone or yy == 0 else float(xy / yy),
        "r_squared": None if alone or yy == 0 else (share if xx else 1.0),
    }


def by_scale(pairs: list[tuple[Any, Any]]) -> list[float]:
    """Magnitudes of answers whose digits do not cancel."""
    spread = [float(max(side) - min(side)) for side in zip(*pairs, strict=True)]
    slope = spread[0] / spread[1] if spread[1] else 0.0
    weights = [abs(float(y)) for _, y in pairs]
    total = abs(math.fsum(float(y) for _, y in pairs))
    heavy = (
        max(abs(float(x)) for x, _ in pairs) * sum(weights) / total if total else 0.0
    )
    return [spread[0] * spread[1], slope, heavy]


KINDS = ["floats", "few", "integers", "outliers", "tiny", "runs"]


def test_pairs_are_their_definition() -> None:
    rng = random.Random(SEED)
    for _ in range(40):
        count, groups = rng.choice([1, 2, 5, 40, 200]), rng.choice([1, 3])
        kinds = [rng.choice(KINDS), rng.choice(KINDS)]
        x, y = (cells(rng, kind, count) for kind in kinds)
        if not any(x) or not any(y):
            continue
        times = sorted(rng.randrange(count * 3) for _ in range(count))
        keys = [rng.randrange(groups) for _ in range(count)]
        table = pa.table({"t": times, "k": keys, "x": x, "y": y})
        width = rng.choice([1, 5, 30, 1000])
        got = sw.rolling(table, on="t", by="k", windows=width, aggs=AGGS).to_pylist()
        for row, answers in enumerate(got):
            pairs = [
                pair
                for time, key, *pair in zip(times, keys, x, y, strict=True)
                if key == keys[row]
                and times[row] - width < time <= times[row]
                and None not in pair
            ]
            wanted = by_definition(pairs) if pairs else dict.fromkeys(AGGS)
            for name, value in wanted.items():
                answer = answers[f"{name}_{width}"]
                if value is not None:
                    # Products that cancel to a 2⁸⁵th of their scale are rounding.
                    least = 1e-26 * max(map(abs, [1e-200, *by_scale(pairs)]))
                    value = pytest.approx(value, rel=1e-14, abs=least, nan_ok=True)
                assert answer == value, (kinds, name, pairs)


def test_what_is_zero_is_zero_in_any_window() -> None:
    """Points of a cross have no covariance, at any distance from zero."""
    points = [(0, 1), (1, 0), (0, -1), (-1, 0)] * 50
    table = pa.table(
        {
            "t": range(len(points)),
            "x": [1e9 + x / 4 for x, _ in points],
            "y": [y / 8 - 1e6 for _, y in points],
        }
    )
    out = sw.rolling(table, on="t", windows=4, aggs=AGGS)
    for name in [name for name in AGGS if name != "weighted"]:
        assert set(out[f"{name}_4"].to_pylist()[3:]) == {0.0}
