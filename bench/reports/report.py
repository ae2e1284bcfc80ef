"""`Report`: a question, its right answer, and who gives it."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import chain
from typing import Any

__all__ = [
    "LIBRARIES",
    "Calls",
    "Given",
    "Outcome",
    "Report",
    "equal",
    "report",
    "reports",
    "shown",
]

# Gives a library's answer, by the library's name.
Calls = Mapping[str, Callable[[], Any]]
# A question, its right answer, and the answers of the libraries.
Given = tuple[str, Any, Calls]


# The modules of those that are asked, in the order of the page.
LIBRARIES = {
    "slidewise": "slidewise",
    "pandas": "pandas",
    "polars": "polars",
    "DuckDB": "duckdb",
}
# The trackers of projects whose names are not "name/name".
_TRACKERS = {
    "pandas": "pandas-dev/pandas",
    "polars": "pola-rs/polars",
    "duckdb": "duckdb/duckdb",
    "ClickHouse": "ClickHouse/ClickHouse",
    "VictoriaMetrics": "VictoriaMetrics/VictoriaMetrics",
    "beam": "apache/beam",
    "bytewax": "bytewax/bytewax",
    "chronon": "airbnb/chronon",
    "data.table": "Rdatatable/data.table",
    "datafusion": "apache/datafusion",
    "feast": "feast-dev/feast",
    "feldera": "feldera/feldera",
    "flink": "apache/flink",
    "hazelcast-jet": "hazelcast/hazelcast-jet",
    "kafka": "apache/kafka",
    "kapacitor": "influxdata/kapacitor",
    "ksql": "confluentinc/ksql",
    "proton": "timeplus-io/proton",
    "quix": "quixio/quix-streams",
    "risingwave": "risingwavelabs/risingwave",
    "rolling": "ajcr/rolling",
    "spark": "apache/spark",
    "sql-flow": "turbolytics/sql-flow",
    "velox": "facebookincubator/velox",
}
# Answers in floats are right within this share of the exact one.
_NEAR = 1e-6


@dataclass(frozen=True)
class Outcome:
    """What a library did.

    Attributes:
        kind: "right", "wrong", "error", or "not asked".
        shown: The answer, or the name of the exception.
    """

    kind: str
    shown: str = ""


@dataclass(frozen=True, eq=False)
class Report:
    """A question of public reports.

    Attributes:
        name: The name of the function that gives it.
        module: The module of that function.
        threads: The reports, as "pandas#12".
        question: The input and what is asked.
        right: The right answer: a value, or a list of them.
        calls: Give the answers, by the library's name.
    """

    name: str
    module: str
    threads: tuple[str, ...]
    question: str
    right: Any
    calls: Calls

    def links(self) -> Iterable[str]:
        """The threads as links of Markdown."""
        for thread in self.threads:
            name, _, number = thread.partition("#")
            yield f"[{thread}](https://github.com/{_TRACKERS[name]}/issues/{number})"

    def ask(self, library: str) -> Outcome:
        """What a library answers."""
        call = self.calls.get(library)
        if call is None or find_spec(LIBRARIES[library]) is None:
            return Outcome("not asked")
        try:
            answer = call()
        except Exception as error:  # noqa: BLE001 - whatever a library raises
            return Outcome("error", type(error).__name__)
        except BaseException as error:  # panics of Rust are no Exception
            if type(error).__name__ != "PanicException":
                raise
            return Outcome("error", "PanicException")
        kind = "right" if equal(answer, self.right) else "wrong"
        return Outcome(kind, shown(answer))


_ALL: list[Report] = []


def report(*threads: str) -> Callable[[Callable[[], Given]], Report]:
    """Makes a `Report` of a function that gives its question, answer and calls."""

    def made(function: Callable[[], Given]) -> Report:
        question, right, calls = function()
        name, module = function.__name__, function.__module__
        found = Report(name, module, threads, question, right, calls)
        _ALL.append(found)
        return found

    return made


def reports() -> list[Report]:
    """All reports whose modules were imported, in their order."""
    return _ALL


def equal(answer: Any, right: Any) -> bool:
    """Whether an answer is right: NaN and missing alike, floats within 1e-6."""
    if isinstance(right, dict):
        return isinstance(answer, dict) and equal(
            [answer.get(name) for name in right], [*right.values()]
        )
    if isinstance(right, list | tuple):
        if not isinstance(answer, list | tuple) or len(answer) != len(right):
            return False
        return all(map(equal, answer, right))
    if _is_missing(right):
        return _is_missing(answer)
    if _is_missing(answer) or isinstance(right, str) or isinstance(answer, str):
        return not _is_missing(answer) and bool(answer == right)
    if isinstance(right, float):
        return math.isclose(float(answer), right, rel_tol=_NEAR, abs_tol=1e-15)
    return bool(answer == right)


def _is_missing(value: Any) -> bool:
    # NaN, NaT and their like differ from themselves; pd.NA has no truth.
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def shown(answer: Any, most: int = 60) -> str:
    """An answer as text, a long one cut in the middle."""
    values = [answer] if not isinstance(answer, list | tuple) else [*answer]
    nested = (x if isinstance(x, list | tuple) else [x] for x in values)
    text = " ".join(map(_value, chain.from_iterable(nested)))
    return text if len(text) <= most else f"{text[:20]} … {text[-30:]}"


def _value(value: Any) -> str:
    if _is_missing(value):
        return "–"
    if isinstance(value, float):
        return f"{value:.6g}" if value % 1 or abs(value) > 1e19 else f"{value:.0f}"
    return str(value)
