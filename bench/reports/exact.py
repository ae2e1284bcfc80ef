"""Answers by their definitions, in rational arithmetic."""

from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

__all__ = ["of_pairs", "of_rows"]

_Numbers = list[Fraction]


def of_rows(values: Sequence[Any], n: int, kind: str) -> list[Any]:
    """The answers of all full windows of n rows; missing values are skipped."""
    windows = (values[end - n : end] for end in range(n, len(values) + 1))
    known = ([Fraction(x) for x in rows if x is not None] for rows in windows)
    return [_KINDS[kind](rows) for rows in known]


def of_pairs(x: Sequence[Any], y: Sequence[Any], n: int, kind: str) -> list[Any]:
    """As `of_rows`, of two columns: "corr" or "cov"; rows need both values."""
    return [
        _pairs(x[end - n : end], y[end - n : end], kind) for end in range(n, len(x) + 1)
    ]


def _pairs(x: Sequence[Any], y: Sequence[Any], kind: str) -> float | None:
    both = [
        (Fraction(a), Fraction(b))
        for a, b in zip(x, y, strict=True)
        if a is not None and b is not None
    ]
    if len(both) < 2:
        return None
    a, b = ([*side] for side in zip(*both, strict=True))
    mean_a, mean_b = _mean(a), _mean(b)
    shared = sum((p - mean_a) * (q - mean_b) for p, q in both)
    if kind == "cov":
        return float(shared / (len(both) - 1))
    squares = _moment(a, 2) * _moment(b, 2)
    return None if squares == 0 else _ratio(shared, squares, Fraction(1, 2))


def _mean(x: _Numbers) -> Fraction:
    return sum(x) / Fraction(len(x))


def _moment(x: _Numbers, power: int) -> Fraction:
    if not x:
        return Fraction(0)
    mean = _mean(x)
    return sum(((each - mean) ** power for each in x), Fraction(0))


def _ratio(top: Fraction, base: Fraction, power: Fraction) -> float:
    """Top / base**power."""
    with localcontext() as context:
        context.prec = 60
        root = _decimal(base) ** (Decimal(power.numerator) / power.denominator)
        return float(_decimal(top) / root)


def _decimal(x: Fraction) -> Decimal:
    return Decimal(x.numerator) / Decimal(x.denominator)


def _variance(x: _Numbers) -> float | None:
    return None if len(x) < 2 else float(_moment(x, 2) / (len(x) - 1))


def _deviation(x: _Numbers) -> float | None:
    if len(x) < 2:
        return None
    with localcontext() as context:
        context.prec = 60
        return float(_decimal(_moment(x, 2) / (len(x) - 1)).sqrt())


def _skewness(x: _Numbers) -> float | None:
    n, square = len(x), _moment(x, 2)
    if n < 3 or square == 0:
        return None
    # n / ((n − 1)(n − 2)) · Σ d³ / s³, with s² = Σ d² / (n − 1)
    scale = Fraction(n, (n - 1) * (n - 2))
    return _ratio(scale * _moment(x, 3), square / (n - 1), Fraction(3, 2))


def _kurtosis(x: _Numbers) -> float | None:
    n, square = len(x), _moment(x, 2)
    if n < 4 or square == 0:
        return None
    s4 = (square / (n - 1)) ** 2
    first = Fraction(n * (n + 1), (n - 1) * (n - 2) * (n - 3)) * _moment(x, 4) / s4
    return float(first - Fraction(3 * (n - 1) ** 2, (n - 2) * (n - 3)))


def _integer_or_float(x: Fraction) -> float | int:
    return int(x) if x.denominator == 1 else float(x)


_KINDS: dict[str, Callable[[_Numbers], Any]] = {
    "sum": lambda x: float(sum(x)),
    "sum of integers": lambda x: _integer_or_float(Fraction(sum(x))),
    "mean": lambda x: float(_mean(x)),
    "var": _variance,
    "std": _deviation,
    "skew": _skewness,
    "kurt": _kurtosis,
    "min": lambda x: _integer_or_float(min(x)),
    "max": lambda x: _integer_or_float(max(x)),
}
