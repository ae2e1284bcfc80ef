"""A query: a range and a slide."""

from dataclasses import dataclass

from slidewise.errors import SpecError
from slidewise.spec.durations import Length, Rows, WindowLike, parse_length

__all__ = ["Query", "as_given"]


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Query:
    """A range and a slide: of a `SharedWindow`, or one of `windows=` in `hopping`.

    In a `SharedWindow` a query of time has a window (end - range, end] for every `end`
    that is a multiple of its slide, counted from the epoch, or from `offset=`. One of
    entries is answered after every slide of entries, over the last range of them.

    A slide longer than the range leaves gaps: entries in them are in no answer.

    Args:
        range: The length of a window: a duration such as "1h", a timedelta, an int in
            the units of integer times, or `rows(n)` for entries.
        every: The slide, of the same kind; in `hopping` also `rows(n)` beside a range
            of time.

    Raises:
        SpecError: If one is not a positive length, or their kinds do not go together.

    Example:
        >>> import slidewise as sw
        >>> sw.Query("1h", every="5m")
        Query('1h', every='5m')
        >>> sw.Query(sw.rows(6), every=sw.rows(2))
        Query(rows(6), every=rows(2))
    """

    lengths: tuple[Length, Length]

    def __init__(self, range: WindowLike | Length, every: WindowLike | Length) -> None:
        """Checks the arguments, which the class documents."""
        lengths = (_length(range, "range"), _length(every, "every"))
        if lengths[1].kind not in (lengths[0].kind, "rows"):
            kinds = (_MEANS[length.kind] for length in lengths)
            raise SpecError(
                f"a query has range={as_given(lengths[0])!r}, {next(kinds)}, and "
                f"every={as_given(lengths[1])!r}, {next(kinds)}: give "
                "both as durations, as ints for integer times, or as sw.rows(n)"
            )
        object.__setattr__(self, "lengths", lengths)

    @property
    def range(self) -> str | int | Rows:
        """The length of its windows."""
        return as_given(self.lengths[0])

    @property
    def every(self) -> str | int | Rows:
        """Its slide."""
        return as_given(self.lengths[1])

    @property
    def label(self) -> str:
        """As `explain` names it."""
        return " every ".join(length.label for length in self.lengths)

    @property
    def counts(self) -> bool:
        """Whether it counts entries."""
        return self.lengths[0].kind == "rows"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.range!r}, every={self.every!r})"


_MEANS = {
    "rows": "a number of entries",
    "integer": "a length of integer times",
    "time": "a duration",
}


def _length(given: WindowLike | Length, argument: str) -> Length:
    return given if isinstance(given, Length) else parse_length(given, argument)


def as_given(length: Length) -> str | int | Rows:
    """A length as in a call.

    Example:
        >>> as_given(parse_length("1h")), as_given(parse_length(5))
        ('1h', 5)
    """
    if length.kind == "rows":
        return Rows(length.amount)
    return length.amount if length.kind == "integer" else length.label
