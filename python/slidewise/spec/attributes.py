"""The attributes of a `Spec`: its keywords, checked.

Those of `rolling` and of `hopping` differ in the kinds of windows.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

from slidewise.errors import Argument, SpecError
from slidewise.spec.arguments import (
    check_aggs,
    check_arrival,
    check_bool,
    check_column_name,
    check_columns,
    check_min_rows,
    one_of,
    refuse_duplicates,
)
from slidewise.spec.durations import parse_offset
from slidewise.spec.fill import check_fill
from slidewise.spec.naming import check_names, check_prefix, twice
from slidewise.spec.outputs import covers
from slidewise.spec.own_windows import (
    Aggs,
    refuse_own_windows,
    refuse_row_needed,
    windows_of,
)
from slidewise.spec.windows.base import does_not_apply
from slidewise.spec.windows.parse import CLOSED, hopping_windows

__all__ = [
    "EXCLUDE",
    "NAN",
    "NOT_OF_HOPPING",
    "NOT_OF_ROLLING",
    "OVERFLOW",
    "TIES",
    "check_hopping",
    "check_rolling",
    "hopping_attributes",
    "rolling_attributes",
]

TIES = ("peers", "rows")
NAN = ("propagate", "skip", "raise")
OVERFLOW = ("raise", "null")
EXCLUDE = ("self",)

# The keywords that one of the two functions does not take.
NOT_OF_ROLLING = ("window", "every", "empty")
NOT_OF_HOPPING = ("ties", "arrival", "exclude")

# A `Spec`, whose module imports this one.
_Spec: TypeAlias = Any


def rolling_attributes(given: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes that keywords of `rolling` give; `given` holds all keywords."""
    exclude = given["exclude"]
    aggs, windows, own = windows_of(
        given["aggs"], given["windows"], _ends(given), given["offset"]
    )
    return _shared(given, aggs) | {
        "windows": windows,
        "ties": one_of(given["ties"], "ties", TIES),
        "arrival": check_arrival(given["arrival"]),
        "exclude": None if exclude is None else one_of(exclude, "exclude", EXCLUDE),
        "own": own,
    }


def hopping_attributes(given: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes that keywords of `hopping` give; `given` holds all keywords."""
    check_bool(given["empty"], "empty")
    aggs = check_aggs(given["aggs"])
    refuse_own_windows(aggs)
    refuse_row_needed(aggs)
    of_windows = ("window", "windows", "every", "offset", "empty", "closed")
    windows = hopping_windows(*(given[name] for name in of_windows))
    several = given["windows"] is not None
    return _shared(given, aggs, several=several) | {
        "windows": windows,
        "ties": "peers",
        "arrival": None,
        "empty": given["empty"],
        "several": several,
    }


def _shared(
    given: Mapping[str, Any], aggs: Aggs, *, several: bool = False
) -> dict[str, Any]:
    return {
        "on": check_column_name(given["on"], "on"),
        "by": check_columns(given["by"], "by"),
        "aggs": aggs,
        "nan": one_of(given["nan"], "nan", NAN),
        "min_rows": check_min_rows(given["min_rows"]),
        "unique_by": check_columns(given["unique_by"], "unique_by"),
        "overflow": one_of(given["overflow"], "overflow", OVERFLOW),
        "names": check_names(given["names"], several=several),
        "prefix": check_prefix(given["prefix"]),
        "fill": check_fill(given["fill"], aggs),
    }


def _ends(given: Mapping[str, Any]) -> str:
    closed = given["closed"]
    return "right" if closed is None else one_of(closed, "closed", CLOSED)


def check_rolling(spec: _Spec, given: Mapping[str, Any]) -> None:
    """Refuses keywords of `rolling` that do not go together."""
    offset = given["offset"]
    if spec.exclude and offset is not None and parse_offset(offset).amount < 0:
        raise does_not_apply(
            Argument("exclude", spec.exclude), Argument("offset", offset)
        )
    if spec.arrival is None:  # which overrides ties=
        _refuse_idle_ties(spec.ties, _ends(given))
    for window in spec.windows:
        if spec.arrival is not None and window.by_position:
            arrived = Argument("arrival", spec.arrival)
            raise does_not_apply(arrived, f"the window {window!r}")
        if spec.exclude is not None:
            window.check_exclude(Argument("exclude", spec.exclude))
        for at, (_, agg) in enumerate(spec.aggs):
            if covers(spec, at, window):
                window.check_aggregation(agg)
    refuse_duplicates(spec.results, twice(spec.names))


def _refuse_idle_ties(ties: str, closed: str) -> None:
    """Refuses `ties="rows"` if windows hold no row of their row's time."""
    if ties == "rows" and closed in ("left", "neither"):
        raise SpecError(
            Argument("ties", ties),
            " has no effect with ",
            Argument("closed", closed),
            ": leave ties= out for the same answers; to include earlier rows of the "
            "same time, give ",
            Argument("closed", "right"),
        )


def check_hopping(spec: _Spec) -> None:
    """Refuses a key column that is named as a result."""
    taken = {*spec.results, *dict(spec.aggs)}
    for name in spec.by:
        if name in taken:
            raise SpecError(
                Argument("by"),
                f" names {name!r}, as a column of the result is named: rename one",
            )
    refuse_duplicates(spec.results, twice(spec.names))
