"""The windows of a Spec whose aggregations have some of their own (`windows=`)."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from slidewise.aggregations import Aggregation
from slidewise.errors import SpecError
from slidewise.spec.arguments import check_aggs, refuse_duplicates
from slidewise.spec.durations import WindowLike, parse_length
from slidewise.spec.query import as_given
from slidewise.spec.windows.base import Window
from slidewise.spec.windows.parse import RollingLike, rolling_windows

__all__ = [
    "Aggs",
    "all_have_windows",
    "refuse_own_windows",
    "refuse_row_needed",
    "windows_of",
]

Aggs = tuple[tuple[str, Aggregation], ...]
_TWICE = "windows= of {}, {{}}, is there twice: give each once"


def all_have_windows(aggs: object) -> bool:
    """Whether each of the aggregations has windows of its own."""
    if not isinstance(aggs, Mapping) or not aggs:
        return False
    return all(getattr(agg, "windows", None) is not None for agg in aggs.values())


def refuse_own_windows(aggs: Aggs) -> None:
    """Refuses aggregations with windows of their own, for `hopping`."""
    for name, agg in aggs:
        if agg.windows is not None:
            raise SpecError(
                f"aggs[{name!r}] is {agg!r}, and hopping has a row per window, with "
                "all aggregations: leave its windows= out, or give it in a call of "
                "its own"
            )


def refuse_row_needed(aggs: Aggs) -> None:
    """Refuses aggregations of the value of a row, where windows have none."""
    for _, agg in aggs:
        if agg.record.needs_row:
            raise SpecError(agg.row_error)


def windows_of(
    aggs: Mapping[str, Aggregation],
    windows: RollingLike | Iterable[RollingLike] | None,
    closed: str,
    offset: WindowLike | None,
) -> tuple[Aggs, tuple[Window, ...], tuple[tuple[str, ...], ...]]:
    """The windows of a Spec of `rolling`, in order of first mention.

    Args:
        aggs: The value of `aggs=`, which is checked.
        windows: The value of `windows=`.
        closed: The ends that belong to all windows.
        offset: How much earlier all end.

    Returns:
        The items of `aggs=`, their windows written alike; the windows; and the labels
        of those of each aggregation, or nothing if all have all.

    Example:
        >>> import slidewise as sw
        >>> aggs = {"n": sw.count(), "s": sw.sum("x", windows="1d")}
        >>> _, windows, own = windows_of(aggs, "1h", "right", None)
        >>> [window.label for window in windows], own
        (['1h', '1d'], (('1h',), ('1d',)))
    """
    shared: tuple[Window, ...] = ()
    if windows is not None or not all_have_windows(aggs):
        shared = rolling_windows(() if windows is None else windows, closed, offset)
    checked = check_aggs(aggs)
    if all(agg.windows is None for _, agg in checked):
        return checked, shared, ()
    # Where all have their own, none has the shared ones.
    every = [] if all_have_windows(aggs) else [*shared]
    own, alike = [], []
    for name, agg in checked:
        found = shared
        if agg.windows is not None:
            agg, found = _own(name, agg, closed, offset)
        alike.append((name, agg))
        own.append(tuple(window.label for window in found))
        every += [window for window in found if window not in every]
    return tuple(alike), tuple(every), tuple(own)


def _own(
    name: str, agg: Aggregation, closed: str, offset: WindowLike | None
) -> tuple[Aggregation, tuple[Window, ...]]:
    """An aggregation, its windows written alike, and these windows."""
    try:
        found = rolling_windows(agg.windows, closed, offset)
    except SpecError as error:
        raise SpecError(f"aggs[{name!r}]: ", *error.args) from error
    labels = [window.label for window in found]
    refuse_duplicates(labels, _TWICE.format(f"aggs[{name!r}]"))
    given = [
        one if isinstance(one, Window) else as_given(parse_length(one, "windows"))
        for one in agg.windows
    ]
    return replace(agg, windows=given), found
