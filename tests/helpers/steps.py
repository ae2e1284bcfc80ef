"""Counts the steps of a call, which are the same on every machine."""

import cProfile
from collections.abc import Callable
from types import CodeType
from typing import Any, NamedTuple

__all__ = ["CountedName", "Steps", "count_steps"]


class CountedName(str):
    """A name that counts its comparisons: one per element that a scan looks at."""

    __slots__ = ()
    comparisons = 0

    def __eq__(self, other: object) -> bool:
        CountedName.comparisons += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


class Steps(NamedTuple):
    """The calls of functions of slidewise, and the comparisons of counted names.

    Each round of a generator is a call, and each use of a property.
    """

    calls: int
    comparisons: int


def count_steps(call: Callable[[], Any]) -> Steps:
    """Counts the steps of a call."""
    profile, before = cProfile.Profile(builtins=False), CountedName.comparisons
    profile.runcall(call)
    calls = sum(each.callcount for each in profile.getstats() if _is_own(each.code))
    return Steps(calls, CountedName.comparisons - before)


def _is_own(code: CodeType | str) -> bool:
    # Methods of dataclasses are compiled from strings.
    own = ("slidewise/", "<string>")
    return isinstance(code, CodeType) and any(part in code.co_filename for part in own)
