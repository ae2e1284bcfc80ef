"""The accuracy of rolling numbers beside other libraries, as a page of the docs.

pip install -r bench/requirements-peers.txt    # in an environment with slidewise
python -m bench.numbers [--slides 10000000] [--out docs/numbers.md]
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from pathlib import Path

import numpy as np
from bench.peers import PEERS, Answers, Peer, versions

INF, NAN = math.inf, math.nan
WINDOW = 1_000
SAMPLES = 2_000

# Input, kind, the exact answer of the last window of 3, and a note.
PROBES = [
    ([1e16, 1, 1, 1, 1], "sum", 3.0, "`[1e16, 1, 1, 1, 1]`"),
    ([1e16, 1, 1, 1, 1], "std", 0.0, "`[1e16, 1, 1, 1, 1]`"),
    ([1, 1e300, 1, 1, 1], "sum", 3.0, "`[1, 1e300, 1, 1, 1]`"),
    ([1, 1e300, 1, 1, 1], "std", 0.0, "`[1, 1e300, 1, 1, 1]`"),
    ([2.06, 0.888889, 0, 0, 0], "sum", 0.0, "`[2.06, 0.888889, 0, 0, 0]`"),
    ([1e9, 1, 2, 3], "std", 1.0, "`[1e9, 1, 2, 3]`"),
    ([1, INF, 1, 2], "sum", INF, "`[1, inf, 1, 2]`, inf inside"),
    ([1, INF, 1, 2, 3], "sum", 6.0, "`[1, inf, 1, 2, 3]`, inf gone"),
    ([1, INF, 1, 2, 3], "std", 1.0, "`[1, inf, 1, 2, 3]`, inf gone"),
    ([1, NAN, 1, 2], "sum", NAN, "`[1, NaN, 1, 2]`, NaN inside"),
    ([1, NAN, 1, 2, 3], "sum", 6.0, "`[1, NaN, 1, 2, 3]`, NaN gone"),
    ([1, NAN, 1, 2, 3], "max", 3.0, "`[1, NaN, 1, 2, 3]`, NaN gone"),
    ([-INF, 1, INF, 4, 5, 6], "sum", 15.0, "`[-inf, 1, inf, 4, 5, 6]`, both gone"),
]


BITS = """\
## Equal windows have equal bits

Windows with the same rows have the same answer to the last bit, however they were
grouped and whatever was in them before:

| answers | `Window`, `KeyedWindows`, streams | tables, batch on Spark |
| --- | --- | --- |
| `sum`, `mean`, `sum_of_squares` | equal | equal to those |
| `covariance`, `correlation`, `skewness`, `kurtosis` | equal | equal to those |
| `slope`, `r_squared` | equal | equal to those |
| `variance`, `stddev` | equal | at most 128 ulp (3e-14) apart |

Partials are right to some 100 bits, and the answer rounds at the end. Over tables
(`rolling`, `hopping`) a kernel computes `variance` and `stddev` a quarter faster, but
[with fewer bits](design/numbers.md): rows before the window may show in the last ones.
Of 180,000 windows of ten kinds of series, four in ten had other bits, one in 25 was
more than 2 ulp apart, the worst 68; random walks are worst, whose means move far.
Integers have none of this while (n · deviation)² stays below 2^53.

Excepted are `subtract_on_evict` and `slick_deque`, which round when an entry leaves,
and deviations beyond 1e-70 to 1e70, where the errors of products leave the floats.
"""

LIMITS = """\
## Where the range ends

Sums and means of finite floats may exceed the largest float, 1.8e308, on the way. They
are carried beyond it and come back when the values that led there leave, or when others
bring them back. In every order and grouping, `mean` of `[1e308, 1e308]` is 1e308, and
`sum` of `[1e308, 1e308, -1e308]` is 1e308. Only a sum that lies beyond the range in the
end is infinite.

Answers that are powers end where the powers leave the range of floats, as in numpy.
Sums of squares and of products are carried beyond it, too, so that their roots
(`stddev`, `correlation`) do not end there, and an infinite answer has its sign in every
grouping.

| answer | deviations from the mean | beyond |
| --- | --- | --- |
| `variance`, `covariance` | 1e-154 to 1e154 | infinite, or 0 |
| `stddev` | 1e-154 to 1.8e308 | 0 |
| `correlation` | 1e-154 to 1.8e308 | NaN |
| `sum_of_squares` | values of 1e-154 to 1e154 | likewise |
| `skewness` | 1e-97 to 1e102 | NaN |
| `kurtosis` | 1e-72 to 1e76 | NaN |

Scale values that far from 1 first: a power of two costs no digits.
"""


def main() -> None:
    """Measures, and writes the page."""
    parser = argparse.ArgumentParser(description="How right rolling numbers are.")
    parser.add_argument("--slides", type=int, default=10_000_000)
    parser.add_argument("--out", type=Path, default=Path("docs/numbers.md"))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    with np.errstate(all="ignore"):
        page = "\n".join([*_head(), *_probes(), *_series(options.slides), BITS, LIMITS])
    options.out.parent.mkdir(exist_ok=True)
    options.out.write_text(page, encoding="utf-8")
    print(f"wrote {options.out}")


def _head() -> list[str]:
    return [
        "# How right the numbers are",
        "",
        "Rolling sums and deviations in slidewise are as accurate as computing every",
        "window anew: no subtraction rounds, and rounding errors are carried along",
        "([by these methods](design/numbers.md)). This page compares them with other",
        "libraries, each with its default settings.",
        "",
        f"Made by `python -m bench.numbers` on {time.strftime('%Y-%m-%d')}, with",
        f"{versions()}.",
        "",
    ]


# -- values that enter and leave -------------------------------------------------------


def _probes() -> list[str]:
    lines = [
        "## Values that left the window leave no trace",
        "",
        "The answer of the last row, over a window of three rows. Wrong answers are",
        "bold; answers that are a matter of convention, because NaN or infinity is",
        "inside the window, are in italics.",
        "",
        _row(["values", "", "exact", *(peer.name for peer in PEERS)]),
        _row(["---"] * (3 + len(PEERS))),
    ]
    for values, kind, exact, words in PROBES:
        column = np.array(values, dtype=float)
        cells = [_probe(peer, kind, column, exact) for peer in PEERS]
        lines.append(_row([words, kind, _shown(exact), *cells]))
    return [*lines, ""]


def _probe(peer: Peer, kind: str, values: Answers, exact: float) -> str:
    if kind not in peer.kinds:
        return "–"
    try:
        got = float(peer.rolling(kind, values, 3)[-1])
    except Exception as error:  # noqa: BLE001 - whatever it is, it is its answer
        return f"*{type(error).__name__}*"
    if _same(got, exact):
        return _shown(got)
    odd = not all(map(math.isfinite, values[-3:].tolist()))
    return f"*{_shown(got)}*" if odd else f"**{_shown(got)}**"


def _same(got: float, exact: float) -> bool:
    return (math.isnan(got) and math.isnan(exact)) or got == exact


def _shown(value: float) -> str:
    return "NaN" if math.isnan(value) else f"{value:.3g}"


# -- long series -----------------------------------------------------------------------


def _datasets(count: int) -> dict[str, Answers]:
    draw = np.random.default_rng(42)
    spikes = draw.normal(5, 1, count)
    spikes[::5_000] = 1e12
    signs = draw.choice([-1.0, 1.0], count)
    return {
        "N(100, 15)": draw.normal(100, 15, count),
        "30 decades, positive": 10 ** draw.uniform(-15, 15, count),
        "30 decades, both signs": signs * 10 ** draw.uniform(-15, 15, count),
        "lognormal, σ = 8": draw.lognormal(0, 8, count),
        "N(5, 1), 1e12 in every 5,000th row": spikes,
        "N(1e9, 1)": draw.normal(1e9, 1, count),
    }


def _series(slides: int) -> list[str]:
    lines = [
        "## Long series",
        "",
        f"Windows of {WINDOW:,} rows over {slides:,} slides, {SAMPLES:,} of them",
        "checked, from the first to the last. Sums: the error as a share of Σ|x|;",
        "deviations: the relative error. Median / largest; bold from 1e-9 on.",
        "",
    ]
    limited = [peer for peer in PEERS if peer.most < slides]
    if limited:
        text = ", ".join(f"{peer.name} {peer.most:,}" for peer in limited)
        lines += [f"Fewer slides, because they take long: {text}.", ""]
    lines += [
        _row(["values", "", *(peer.name for peer in PEERS)]),
        _row(["---"] * (2 + len(PEERS))),
    ]
    for name, values in _datasets(slides).items():
        for kind in ("sum", "std"):
            cells = []
            for peer in PEERS:
                cells.append(_error(peer, kind, values[: peer.most]))
                print(f"{name:<36} {kind} {peer.name:<11} {cells[-1]}", flush=True)
            lines.append(_row([name, kind, *cells]))
    return [*lines, ""]


def _error(peer: Peer, kind: str, values: Answers) -> str:
    if kind not in peer.kinds:
        return "–"
    answers = peer.rolling(kind, values, WINDOW)
    last = len(values) - 1
    places = np.linspace(WINDOW - 1, last, SAMPLES).astype(int)
    errors = []
    for at in places:
        seen = values[at - WINDOW + 1 : at + 1]
        exact, scale = _exact(kind, seen)
        errors.append(abs(float(answers[at]) - exact) / scale)
    wrong = [error for error in errors if math.isnan(error)]
    if wrong:
        return f"**NaN in {len(wrong) / len(errors):.0%}**"
    text = f"{float(np.median(errors)):.1g} / {max(errors):.1g}"
    return f"**{text}**" if max(errors) >= 1e-9 else text


def _exact(kind: str, values: Answers) -> tuple[float, float]:
    """The answer, and the number by which its error is divided."""
    total = math.fsum(values)
    if kind == "sum":
        return total, math.fsum(abs(values))
    # Two passes in extended precision; the second corrects the error of the mean.
    wide = values.astype(np.longdouble)
    distances = wide - np.longdouble(total) / len(values)
    squares = (distances**2).sum() - distances.sum() ** 2 / len(values)
    deviation = float(np.sqrt(squares / (len(values) - 1)))
    return deviation, deviation


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
