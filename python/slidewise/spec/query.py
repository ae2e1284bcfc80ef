"""A query: a range and a slide, or a data-driven window."""

from dataclasses import dataclass
from typing import TypeAlias

from slidewise.errors import SpecError
from slidewise.hints import with_hints
from slidewise.spec.durations import Length, Rows, WindowLike, parse_length
from slidewise.spec.windows.base import Window

__all__ = ["Query", "as_given"]

_Range: TypeAlias = Length | Window


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Query:
    """A range and a slide: of a `SharedWindow`, or one of `windows=` in `hopping`.

    In a `SharedWindow`:

    - A query of time has a window (end - range, end] for every `end` that is a multiple
      of its slide, counted from the epoch, or from `offset=`. One of entries is
      answered after every slide of entries, over the last range of them. A range of
      time may slide by entries, too: then windows end with the entry. Without `every`,
      windows tumble: the slide is the range. Weeks ("1w") end on Mondays, "7d" counts
      from the epoch, a Thursday.
    - `session("30m")` is answered when no further entry can come within the gap; `end`
      is the time of the last one.
    - `until("flag")` is answered with the entry whose `flag` is true, over the entries
      since the one before, that one excluded; `end` is its time.
    - `landmark("flag")` is answered every slide, over the entries from the last one
      whose `flag` is true on. Ends of time without new entries since the end before are
      left out, unless `empty=True`.

    A slide longer than the range leaves gaps: entries in them are in no answer.

    Args:
        range: The length of a window: a duration such as "1h", a timedelta, an int in
            the units of integer times, or `rows(n)` for entries; or one of the above.
        every: The slide, of the same kind, or `rows(n)`; sessions and `until` have
            none.

    Attributes:
        window: `range` as it was parsed, a length or a data-driven window.
        slide: `every` as it was parsed, by default the range; None where there is none.

    Raises:
        SpecError: If one is not a positive length, or their kinds do not go together.

    Cost: O(1). `SharedWindow` and `hopping` name the cost of answers.

    Example:
        >>> import slidewise as sw
        >>> sw.Query("1h", every="5m"), sw.Query("1h")
        (Query('1h', every='5m'), Query('1h', every='1h'))
        >>> sw.Query(sw.rows(6), every=sw.rows(2))
        Query(rows(6), every=rows(2))
        >>> sw.Query(sw.session("30m")), sw.Query(sw.landmark("reset"), every="5m")
        (Query(session('30m')), Query(landmark('reset'), every='5m'))

        What they hold:

        >>> query = sw.Query("1h", every="5m")
        >>> query.range, query.every, query.label
        ('1h', '5m', '1h every 5m')
        >>> [length.amount for length in query.lengths], query.counts
        ([3600000000000, 300000000000], False)
        >>> sw.Query(sw.until("paid")).flag
        'paid'
    """

    window: _Range
    slide: Length | None

    @with_hints
    def __init__(
        self,
        range: WindowLike | _Range,
        every: WindowLike | Length | None = None,
    ) -> None:
        """Checks the arguments, which the class documents."""
        window, slide = _read(range, every)
        object.__setattr__(self, "window", window)
        object.__setattr__(self, "slide", slide)

    @property
    def range(self) -> str | int | Rows | Window:
        """The length of its windows, or the data-driven window."""
        return as_given(self.window) if isinstance(self.window, Length) else self.window

    @property
    def every(self) -> str | int | Rows | None:
        """Its slide; None for sessions and `until`."""
        return None if self.slide is None else as_given(self.slide)

    @property
    def label(self) -> str:
        """Its name in `explain`."""
        window = self.window
        name = window.label if isinstance(window, Length) else window.name
        return name if self.slide is None else f"{name} every {self.slide.label}"

    @property
    def flag(self) -> str | None:
        """The column whose flags end or begin its windows."""
        columns = self.window.columns if isinstance(self.window, Window) else ()
        return columns[0] if columns else None

    @property
    def lengths(self) -> list[Length]:
        """The lengths of its windows, gap and slide, if it has them."""
        window = self.window
        length = window if isinstance(window, Length) else window.timed
        return [one for one in (length, self.slide) if one is not None]

    @property
    def counts(self) -> bool:
        """Whether it slides by entries."""
        return self.slide is not None and self.slide.kind == "rows"

    def __repr__(self) -> str:
        every = "" if self.slide is None else f", every={self.every!r}"
        return f"{type(self).__name__}({self.range!r}{every})"


def _read(
    range: WindowLike | _Range, every: WindowLike | Length | None
) -> tuple[_Range, Length | None]:
    slide = None if every is None else parse_length(every, "every")
    if isinstance(range, Window):
        range.check_slide(slide)
        return range, slide
    length = parse_length(range, "range")
    slide = length if slide is None else slide
    if slide.kind not in (length.kind, "rows"):
        raise SpecError(
            f"a query has range={as_given(length)!r}, {_MEANS[length.kind]}, and "
            f"every={as_given(slide)!r}, {_MEANS[slide.kind]}: give both as "
            "durations, as ints for integer times, or as sw.rows(n)"
        )
    return length, slide


_MEANS = {
    "rows": "a number of entries",
    "integer": "a length of integer times",
    "time": "a duration",
}


def as_given(length: Length) -> str | int | Rows:
    """A length as in a call.

    Example:
        >>> as_given(parse_length("1h")), as_given(parse_length(5))
        ('1h', 5)
    """
    if length.kind == "rows":
        return Rows(length.amount)
    return length.amount if length.kind == "integer" else length.label
