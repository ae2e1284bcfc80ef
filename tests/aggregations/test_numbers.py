"""Numbers: sums do not drift, and a value that leaves the window leaves no trace.

The bound for sums and means is relative: 2**-50 * sum(|x|) / |sum(x)|, against
``math.fsum``; variances are compared with exact rational arithmetic.
"""

import math
import random
from collections import deque
from fractions import Fraction

import pyarrow as pa
import pytest
from seeds import SEED

import slidewise as sw

HOSTILE = {
    "thirty decades": lambda draw: draw.choice([-1, 1]) * 10.0 ** draw.uniform(-15, 15),
    "far from zero": lambda draw: 1e9 + draw.gauss(0, 1),
    "spikes": lambda draw: 1e12 if draw.random() < 0.01 else draw.gauss(5, 1),
    "heavy tail": lambda draw: draw.lognormvariate(0, 8),
}


def exact_variance(values: list[float], ddof: int = 1) -> Fraction:
    whole = [Fraction(value) for value in values]
    mean = sum(whole) / len(whole)
    return sum((value - mean) ** 2 for value in whole) / (len(whole) - ddof)


@pytest.mark.parametrize("late", [0, 40], ids=["in order", "late"])
@pytest.mark.parametrize("kind", HOSTILE)
def test_sums_and_moments_do_not_drift(kind: str, late: int) -> None:
    draw = random.Random(f"{kind}{late}")
    windows = {
        name: sw.Window(
            {"sum": sw.sum(), "mean": sw.mean(), "var": sw.variance()}, **options
        )
        for name, options in {
            "fiba": {},
            "recalculate": {"algorithm": "recalculate"},
        }.items()
    } | {"sum alone": sw.Window(sw.sum())}
    length, slides = 300, 12_000
    times = sorted(range(slides), key=lambda time: time + draw.randrange(late + 1))
    for time in times:
        for window in windows.values():
            window.insert(time, HOSTILE[kind](random.Random(time)))
    # Values are functions of their times, so that all windows hold equal values.
    values = [HOSTILE[kind](random.Random(time)) for time in range(slides)]
    cut = slides - length - 1
    kept = values[cut + 1 :]
    total, size = math.fsum(kept), math.fsum(map(abs, kept))
    for name, window in windows.items():
        for step in range(0, cut, 61):
            window.evict_until(step)
        window.evict_until(cut)
        answer = window.query()
        answers = {"sum": answer} if name == "sum alone" else answer
        assert abs(answers["sum"] - total) <= 2**-50 * size, (name, kind)
        if name == "sum alone":
            continue
        assert abs(answers["mean"] * length - total) <= 2**-49 * size, (name, kind)
        variance = exact_variance(kept)
        assert abs(Fraction(answers["var"]) / variance - 1) < Fraction(1, 10**12), (
            name,
            kind,
        )


@pytest.mark.parametrize("guest", [math.nan, math.inf, -math.inf, 1e300, -1e300])
@pytest.mark.parametrize("lag", [0, 1, 5])
def test_a_guest_leaves_no_trace(guest: float, lag: int) -> None:
    aggregations = {
        "sum": sw.sum(),
        "mean": sw.mean(),
        "sd": sw.stddev(),
        "min": sw.min(),
        "max": sw.max(),
        "range": sw.range(),
    }
    window = sw.Window(aggregations)
    inside: deque[int] = deque()
    for time in range(400):
        window.insert(time, guest if time == 200 else float(time % 7))
        inside.append(time)
        if len(inside) > 100:
            window.evict()
            inside.popleft()
        if lag and time % 13 == 0 and time > 10:
            window.evict(time - lag)
            window.insert(
                time - lag, guest if time - lag == 200 else float((time - lag) % 7)
            )
    answer = window.query()
    values = [float(time % 7) for time in inside]
    assert answer["sum"] == math.fsum(values)
    assert answer["mean"] == pytest.approx(math.fsum(values) / 100, rel=1e-15)
    assert answer["sd"] == pytest.approx(math.sqrt(exact_variance(values)), rel=1e-13)
    assert (answer["min"], answer["max"], answer["range"]) == (0.0, 6.0, 6.0)


def test_integers_are_exact_beyond_float64() -> None:
    window = sw.Window({"sum": sw.sum(), "mean": sw.mean()})
    base = 2**62
    for time, value in enumerate([base, base + 1, base + 2, -base]):
        window.insert(time, value)
    window.evict(3)
    with pytest.raises(sw.ResultOverflowError):
        window.query()
    window.insert(4, -2 * base)
    window.insert(5, -base)
    answer = window.query()
    assert answer["sum"] == 3


def test_equal_large_means_cancel_to_nothing() -> None:
    window = sw.Window(sw.variance(ddof=0))
    base = 2**62
    window.insert_many(list(range(4)), [base, base, base, base + 3])
    assert window.query() == 27 / 16
    window.evict(3)
    assert window.query() == 0.0


HUGE = 1.7e308
FAR = {
    "both ends": ([HUGE] * 8 + [-HUGE] * 9, [1.0, 2.0, 4.0] * 5 + [9.0, 3.0]),
    "against one another": ([1e154, 3e154], [3.0, 1.0]),
    "all large": ([1e200, 5e200, -2e200, 1e199] * 9, [-1e250, 3e250, 1e250, 0.0] * 9),
    "one is constant": ([-HUGE, HUGE, HUGE, 0.0], [2.0] * 4),
    "large and small": ([1e300, -1e300, 3e299], [1e-150, 2e-150, -1e-150]),
    "products that cancel": (
        [1e200, -1e200, 1e200, -1e200],
        [1e200, 1e200, -1e200, -1e200],
    ),
    "one is far off": ([1.0, 2.0, 3.0, 1e160, 4.0], [5.0, -1e160, 3.0, 0.0, 2.0]),
}


def moments_of(xs: list[float], ys: list[float]) -> dict[str, float]:
    """By exact arithmetic; a result beyond floats is infinite."""
    n = len(xs)
    x, y = ([Fraction(value) for value in values] for values in (xs, ys))
    dx, dy = ([value - sum(side) / n for value in side] for side in (x, y))

    def total(a: list[Fraction], b: list[Fraction]) -> Fraction:
        return sum((p * q for p, q in zip(a, b, strict=True)), Fraction(0))

    def rounded(exact: Fraction) -> float:
        try:
            return exact.numerator / exact.denominator
        except OverflowError:
            return math.inf if exact > 0 else -math.inf

    def root(exact: Fraction) -> float:
        return rounded(Fraction(math.isqrt(int(exact * 4**600)), 2**600))

    squares, others = total(dx, dx), total(dy, dy)
    products = total(dx, dy)
    both = math.isqrt(int(squares * others * 4**1200))
    return {
        "variance": rounded(squares / (n - 1)),
        "stddev": root(squares / (n - 1)),
        "covariance": rounded(products / (n - 1)),
        "correlation": rounded(products * 2**1200 / both) if both else math.nan,
    }


@pytest.mark.parametrize("name", FAR)
def test_moments_beyond_the_range_of_squares(name: str) -> None:
    """Exact up to rounding, or infinite, in every structure and over tables."""
    xs, ys = FAR[name]
    aggs = {
        "variance": sw.variance("x"),
        "stddev": sw.stddev("x"),
        "covariance": sw.covariance("x", "y"),
        "correlation": sw.correlation("x", "y"),
    }
    expected = moments_of(xs, ys)
    near = {"rel": 1e-12, "abs": 1e-320, "nan_ok": True}
    if name == "products that cancel":
        # The distance from 0 scales with the products, which exceed floats.
        expected.pop("covariance")
        near["abs"] = 1e-15
    table = pa.table({"t": range(len(xs)), "x": xs, "y": ys})
    answers = []
    for algorithm in ("fiba", "recalculate", "two_stacks", "daba", "flat_fat", "btree"):
        window = sw.Window(aggs, algorithm=algorithm, ties="keep")
        window.insert_many(range(len(xs)), {"x": xs, "y": ys})
        answers.append(window.query())
        window = sw.Window(aggs, algorithm=algorithm, ties="keep")
        for at, (x, y) in enumerate(zip(xs, ys, strict=True)):
            window.insert(at, {"x": x, "y": y})
        answers.append(window.query())
        answers.append(sw.Window.from_bytes(window.to_bytes()).query())
    for request in ({}, {"arrival": "t"}, {"at": table}):
        out = sw.rolling(table, on="t", windows=99, aggs=aggs, **request)
        answers.append({name: out[f"{name}_99"][-1].as_py() for name in aggs})
    for answer in answers:
        got = {name: answer[name] for name in expected}
        assert got == pytest.approx(expected, **near), answer
    for agg in (sw.variance, sw.stddev):
        alone = [
            sw.Window(agg(), algorithm=a, ties="keep") for a in ("fiba", "recalculate")
        ]
        for window in alone:
            window.insert_many(range(len(xs)), xs)
            assert window.query() == pytest.approx(expected[agg.__name__], **near)


def test_infinities_and_nan_have_no_variance() -> None:
    for bad in (math.inf, -math.inf, math.nan):
        values = [1e200, bad, -1e200] * 7
        table = pa.table({"t": range(21), "x": values, "y": [1.0, 2.0, 5.0] * 7})
        aggs = {"v": sw.variance("x"), "c": sw.covariance("x", "y")}
        out = sw.rolling(table, on="t", windows=99, aggs=aggs)
        window = sw.Window(aggs)
        window.insert_many(range(21), {"x": values, "y": [1.0, 2.0, 5.0] * 7})
        for answer in (
            *(out[f"{name}_99"][-1].as_py() for name in aggs),
            *window.query().values(),
        ):
            assert math.isnan(answer)


def test_values_beyond_squares_leave_no_trace() -> None:
    xs = [1e200, -1e200, 5e180, 1.0, 2.0, 4.0, 1e300, 3.0, 3.0, 5.0]
    table = pa.table({"t": range(10), "x": xs})
    out = sw.rolling(table, on="t", windows=3, aggs={"v": sw.variance("x")})
    window = sw.Window(sw.variance())
    for at, x in enumerate(xs):
        window.insert(at, x)
        window.evict_until(at - 3)
        held = xs[max(0, at - 2) : at + 1]
        exact = moments_of(held, held)["variance"] if at else None
        for answer in (out["v_3"][at].as_py(), window.query()):
            assert answer == (
                None if exact is None else pytest.approx(exact, rel=1e-12)
            )


@pytest.mark.parametrize("guest", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("structure", ["subtract_on_evict", "slick_deque"])
def test_a_guest_beside_an_own_aggregation_leaves_no_trace(
    structure: str, guest: float
) -> None:
    ordered = sw.aggregation(
        lift=lambda x: (x,),
        combine=lambda a, b: a + b,
        identity=(),
        inverse=lambda whole, oldest: whole[1:],
    )
    aggs = {"sum": sw.sum(), "mean": sw.mean(), "all": ordered}
    w: sw.Window | sw.SharedWindow = sw.SharedWindow(
        aggs, ranges=[3, 5], algorithm="slick_deque"
    )
    if structure == "subtract_on_evict":
        w = sw.Window(aggs, algorithm=structure, last=sw.rows(3))
    values = [guest, guest, 1.0, 2.0, 3.0, guest, 4.0, 5.0, 6.0, 7.0, 8.0]
    for count in range(1, len(values) + 1):
        w.insert(count, values[count - 1])
        w.check()
        answers = w.query() if isinstance(w, sw.SharedWindow) else [w.query()]
        for length, answer in zip((3, 5), answers, strict=False):
            inside = values[max(count - length, 0) : count]
            expected = {"sum": sum(inside), "mean": sum(inside) / len(inside)}
            assert str(answer) == str({**expected, "all": tuple(inside)})


SERIES = HOSTILE | {
    "cents": lambda draw: round(draw.lognormvariate(3, 1), 2),
    "digits": lambda draw: float(draw.randrange(10)),
    "integers": lambda draw: draw.randrange(-1000, 1000),
}
EXACT = {
    "sum": sw.sum("x"),
    "mean": sw.mean("x"),
    "covariance": sw.covariance("x", "y"),
    "correlation": sw.correlation("x", "y"),
    "skewness": sw.skewness("x"),
    "kurtosis": sw.kurtosis("x"),
}
# Over tables a kernel with fewer bits computes these.
DEVIATIONS = {"variance": sw.variance("x"), "stddev": sw.stddev("x")}
ALL = EXACT | DEVIATIONS
LENGTH, EARLIER = 12, 20
ULPS = 128

Columns = dict[str, list[float]]


def answers_of_window(algorithm: str, rows: Columns) -> Columns:
    """The answers of a Window for each aggregation alone, after each row."""
    answers: Columns = {}
    for name, aggregation in ALL.items():
        window = sw.Window({name: aggregation}, algorithm=algorithm, last=LENGTH)
        answers[name] = []
        for time in range(len(rows["x"])):
            columns = aggregation.columns
            window.insert(time, {column: rows[column][time] for column in columns})
            answers[name].append(window.query()[name])
    return answers


@pytest.mark.parametrize("kind", SERIES)
def test_equal_windows_have_equal_bits_in_every_engine(kind: str) -> None:
    draw = random.Random(f"{kind}{SEED}")
    xs = [SERIES[kind](draw) for _ in range(80)]
    rows = {"x": xs, "y": [x // 3 + SERIES[kind](draw) for x in xs]}
    table = pa.table({"t": range(len(xs)), **rows})
    request = {"on": "t", "windows": LENGTH, "aggs": ALL}
    keyed = sw.KeyedWindows(**request)
    for start in range(0, len(xs), 23):
        keyed.ingest(table.slice(start, 23))
        keyed.advance()
    keyed.advance(len(xs))
    tables = {
        "rolling": sw.rolling(table, **request),
        "rolling without earlier rows": sw.rolling(table.slice(EARLIER), **request),
        "at": sw.rolling(table, at=table.select(["t"]), **request),
        "keyed": keyed.collect(),
    }
    engines = {
        engine: {name: answers[f"{name}_{LENGTH}"].to_pylist() for name in ALL}
        for engine, answers in tables.items()
    }
    for algorithm in ("fiba", "two_stacks", "daba_lite", "recalculate"):
        engines[algorithm] = answers_of_window(algorithm, rows)
    # From here on, windows are full in all engines.
    full = len(xs) - EARLIER - LENGTH
    for name in ALL:
        expected = engines["keyed"][name][-full:]
        for engine, answers in engines.items():
            found = answers[name][-full:]
            if name in EXACT or engine not in tables:
                assert found == expected, (kind, SEED, name, engine)
                continue
            for one, other in zip(found, expected, strict=True):
                allowed = ULPS * math.ulp(other)
                assert abs(one - other) <= allowed, (kind, SEED, name, engine)
