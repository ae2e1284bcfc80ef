"""`Measured`: queries whose durations and freshness are counted."""

from collections.abc import Callable
from time import perf_counter
from typing import Any, Protocol

from slidewise.keyed.view import View
from slidewise.measuring import AGES, QUERIES, Histogram, Reading, observe

__all__ = ["Answers", "Measured"]


class Answers(Protocol):
    """What answers queries: `Queries` and its like."""

    def query(
        self, key: Any, at: Any, windows: Any, plus: Any, valid_until: bool, /
    ) -> dict[str, Any]:
        """The results of a key: see `KeyedWindows.query`."""

    def query_many(
        self, keys: Any, at: Any, windows: Any, plus: Any, valid_until: bool, /
    ) -> Any:
        """A table of keys with their results: see `KeyedWindows.query_many`."""


class HasView(Protocol):
    """What holds the view of a stream: its state."""

    @property
    def view(self) -> View | None:
        """What queries know of the stream."""


class Measured:
    """Answers as another object does, and counts.

    A copy of it is a copy of that object.

    Args:
        answers: That object.
        state: What holds the view of the stream.
    """

    def __init__(self, answers: Answers, state: HasView) -> None:
        self._answers, self._state = answers, state
        self._seconds, self._freshness = Histogram(QUERIES), Histogram(AGES)

    def __reduce__(self) -> tuple[Callable[[Answers], Answers], tuple[Answers]]:
        """The other object alone, for copies and pickle."""
        return _unmeasured, (self._answers,)

    def query(
        self, key: Any, at: Any, windows: Any, plus: Any, valid_until: bool, /
    ) -> dict[str, Any]:
        """The results of a key."""
        started = perf_counter()
        try:
            return self._answers.query(key, at, windows, plus, valid_until)
        finally:
            self._count(started)

    def query_many(
        self, keys: Any, at: Any, windows: Any, plus: Any, valid_until: bool, /
    ) -> Any:
        """A table of keys with their results."""
        started = perf_counter()
        try:
            return self._answers.query_many(keys, at, windows, plus, valid_until)
        finally:
            self._count(started)

    def _count(self, started: float) -> None:
        view = self._state.view
        latest = None if view is None else view.seen
        observe(self._seconds, perf_counter() - started, self._freshness, latest)

    def reading(self, values: dict[str, float]) -> Reading:
        """What an exporter reads, with the given values."""
        found = {"query_duration": self._seconds, "freshness": self._freshness}
        return Reading("", values, found)


def _unmeasured(answers: Answers) -> Answers:
    return answers
