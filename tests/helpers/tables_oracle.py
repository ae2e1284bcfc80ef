"""The definition of rolling aggregations, computed row by row."""

import math
from typing import Any

import definitions
from definitions import is_nan

import slidewise as sw

# The values of closed=, with the values of ties= that have an effect.
SIDES = [(closed, "peers") for closed in ("right", "left", "both", "neither")]
SIDES += [("right", "rows"), ("both", "rows")]


def windows(
    times: list[int],
    window: Any,
    *,
    keys: list[Any] | None = None,
    closed: str = "right",
    ties: str = "peers",
    arrival: list[int] | None = None,
) -> list[list[int]]:
    """The rows of the window of each row, earliest first."""
    rows = range(len(times))
    keys = [None] * len(times) if keys is None else keys

    def order(row: int) -> tuple[int, ...]:
        return (times[row], 0 if arrival is None else arrival[row], row)

    def visible(row: int, other: int) -> bool:
        if keys[row] != keys[other]:
            return False
        return arrival is None or arrival[other] <= arrival[row]

    answer = []
    for row in rows:
        seen = sorted((other for other in rows if visible(row, other)), key=order)
        if isinstance(window, int):
            kept = [
                other
                for other in seen
                if inside(times[row] - times[other], window, closed)
                and (
                    ties == "peers" or arrival is not None or order(other) <= order(row)
                )
            ]
        elif arrival is not None:
            kept = seen[-window.n :]
        else:
            kept = [other for other in seen if order(other) <= order(row)][-window.n :]
        answer.append(kept)
    return answer


def inside(age: int, length: int, closed: str) -> bool:
    young = age < length or (age == length and closed in ("left", "both"))
    old = age > 0 or (age == 0 and closed in ("right", "both"))
    return young and old


def answer(agg: sw.Aggregation, rows: list[int], table: dict[str, list[Any]]) -> Any:
    """One aggregation over rows that are in time order."""
    seen = [{name: column[row] for name, column in table.items()} for row in rows]
    return definitions.answer(agg, seen)


def same(got: Any, expected: Any) -> bool:
    """Whether values are equal; floats up to the last bits."""
    if isinstance(got, dict) and isinstance(expected, dict):
        return got.keys() == expected.keys() and all(
            same(got[name], expected[name]) for name in expected
        )
    if isinstance(expected, list):
        return len(got) == len(expected) and all(map(same, got, expected))
    if is_nan(expected):
        return is_nan(got)
    if isinstance(expected, float) and isinstance(got, float):
        return math.isclose(got, expected, rel_tol=1e-12, abs_tol=1e-12)
    return type(got) is type(expected) and got == expected
