"""Public bug reports of other libraries: slidewise answers them right."""

import math
import re
import sys
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from bench.reports import exact  # noqa: E402 - bench lies beside the packages
from bench.reports.__main__ import page  # noqa: E402
from bench.reports.report import (  # noqa: E402
    LIBRARIES,
    Outcome,
    Report,
    equal,
    reports,
    shown,
)

PAGE = (ROOT / "docs" / "reports.md").read_text("utf-8")


@pytest.mark.parametrize("report", reports(), ids=lambda report: report.name)
def test_a_report_is_answered_right(report: Report) -> None:
    outcome = report.ask("slidewise")
    assert outcome.kind == "right", outcome.shown


def test_the_page_has_all_reports() -> None:
    """`make reports` writes it; the answers of the others may change."""
    linked = {link for report in reports() for link in report.links()}
    assert linked == set(re.findall(r"\[[\w.-]+#\d+\]\(https://[^)]+\)", PAGE))
    questions = [report.question.replace("|", "\\|") for report in reports()]
    assert all(f"| {question} |" in PAGE for question in questions)
    assert len({report.name for report in reports()}) == len(reports()) >= 100


def test_exact_answers_are_those_of_the_definitions() -> None:
    """By hand: of 1, 2, 4 and of 1, 2, 4, 9."""
    assert exact.of_rows([1, 2, 4], 3, "mean") == [pytest.approx(7 / 3)]
    assert exact.of_rows([1, 2, 4], 3, "var") == [pytest.approx(7 / 3)]
    # Σ d³ = 20/9, n / ((n − 1)(n − 2)) = 3/2, s² = 7/3.
    skewness = 3 / 2 * (20 / 9) / (7 / 3) ** 1.5
    assert exact.of_rows([1, 2, 4], 3, "skew") == [pytest.approx(skewness)]
    # d = −3, −2, 0, 5: Σ d⁴ = 722, s² = 38/3; 4 · 5 / (3 · 2 · 1), 3 · 9 / (2 · 1).
    kurtosis = 20 / 6 * 722 / (38 / 3) ** 2 - 27 / 2
    assert exact.of_rows([1, 2, 4, 9], 4, "kurt") == [pytest.approx(kurtosis)]
    assert exact.of_pairs([1, 2, 3], [2, 4, 6], 3, "corr") == [pytest.approx(1)]
    assert exact.of_pairs([1, 2, 3], [1, 2, 4], 3, "cov") == [pytest.approx(1.5)]
    assert exact.of_pairs([1, 2, 3], [5, 5, 5], 3, "corr") == [None]
    assert exact.of_rows([2.5, None], 2, "skew") == [None]


@pytest.mark.parametrize(
    ("answer", "right", "is_right"),
    [
        (1.0 + 1e-8, 1.0, True),
        (1.0 + 1e-5, 1.0, False),
        (math.nan, None, True),
        (None, math.nan, True),
        (0.0, None, False),
        (None, 0.0, False),
        (2**53, 2**53 + 1, False),
        (float(2**53), 2**53 + 1, False),
        (Decimal("0.15"), 0.15, True),
        ([1, [2, 3]], [1, [2, 3]], True),
        ([1, 2], [1, 2, 3], False),
        ("a", "a", True),
        (1, "a", False),
        (True, True, True),
    ],
)
def test_what_counts_as_right(answer: object, right: object, is_right: bool) -> None:
    assert equal(answer, right) is is_right


def test_the_page_shows_who_is_right_and_who_is_not() -> None:
    def fail() -> None:
        raise ZeroDivisionError

    calls = {"slidewise": lambda: [1, 2], "pandas": lambda: [1, 3], "polars": fail}
    module = "bench.reports.windows"
    made = Report("made", module, ("pandas#1",), "what is it?", [1, 2], calls)
    outcomes = {made: {name: made.ask(name) for name in LIBRARIES}}
    assert outcomes[made] == {
        "slidewise": Outcome("right", "1 2"),
        "pandas": Outcome("wrong", "1 3"),
        "polars": Outcome("error", "ZeroDivisionError"),
        "DuckDB": Outcome("not asked"),
    }
    link = "[pandas#1](https://github.com/pandas-dev/pandas/issues/1)"
    row = f"| {link} | what is it? | 1 2 | ✓ | **1 3** | `ZeroDivisionError` |  |"
    assert row in page(outcomes)
    assert shown([Fraction(1), None, 2.5, 1e-7]) == "1 – 2.5 1e-07"
