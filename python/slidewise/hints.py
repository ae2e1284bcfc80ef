"""Hints for users of pandas, polars and SQL.

An unknown argument or name raises the same exception as in Python, with a suggestion.
"""

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, cast

__all__ = ["suggest_argument", "suggest_name", "unknown_name_error", "with_hints"]

_Function = TypeVar("_Function", bound=Callable[..., Any])

# Arguments of other libraries, and their equivalents: the first that the function has
# is suggested.
_ARGUMENTS = {
    "agg": ("aggs",),
    "aggregations": ("aggs",),
    "func": ("aggs",),
    "group_by": ("by",),
    "groupby": ("by",),
    "index_column": ("on",),
    "keys": ("by",),
    "min_periods": ("min_rows",),
    "min_samples": ("min_rows",),
    "order_by": ("on",),
    "partition_by": ("by",),
    "period": ("window", "windows"),
    "window": ("windows",),
    "window_size": ("window", "windows"),
    "windows": ("window",),
}

# Arguments without an equivalent: an argument that the function needs, and the advice.
_ADVICE = {
    "center": (
        "ties",
        "move the windows by half of their length, such as offset='-30m' with "
        "windows='1h'",
    ),
    "every": (
        "windows",
        "for hopping windows there is sw.hopping(..., window=, every=)",
    ),
}

_NAMES = {
    "argmax": "arg_max",
    "argmin": "arg_min",
    "array_agg": "collect",
    "average": "mean",
    "avg": "mean",
    "corr": "correlation",
    "cov": "covariance",
    "kurt": "kurtosis",
    "n_unique": "count_distinct",
    "nunique": "count_distinct",
    "percentile": "quantile",
    "prod": "product",
    "size": "count",
    "skew": "skewness",
    "std": "stddev",
    "tumbling": "hopping",
    "unique": "collect_distinct",
    "var": "variance",
}


def with_hints(function: _Function) -> _Function:
    """Decorates a function: its `TypeError` for an unknown argument suggests one.

    Example:
        >>> @with_hints
        ... def roll(table, *, on, min_rows=0): ...
        >>> roll([], on="t", min_periods=3)
        Traceback (most recent call last):
        ...
        TypeError: roll() takes no argument 'min_periods': did you mean min_rows=?
    """
    parameters = inspect.signature(function).parameters
    leading = [
        name for name, one in parameters.items() if one.kind is not one.KEYWORD_ONLY
    ]
    named = [name for name in parameters if name not in leading]
    is_method = leading[:1] == ["self"]
    caller = function.__name__
    if caller == "__init__":
        caller = function.__qualname__.split(".")[-2]

    @functools.wraps(function)
    def checked(*args: Any, **options: Any) -> Any:
        for name in options:
            if name not in parameters:
                raise TypeError(
                    f"{caller}() takes no argument {name!r}"
                    f"{suggest_argument(name, parameters)}"
                )
        if len(args) > len(leading):
            first = " and ".join(leading[is_method:])
            which = f"the arguments after {first}" if first else "its arguments"
            raise TypeError(
                f"{caller}() takes {which} by name: {named[0]}="
                f"{args[len(leading)]!r:.60}"
            )
        return function(*args, **options)

    return cast("_Function", checked)


def suggest_argument(name: str, known: Iterable[str]) -> str:
    """The suggestion for an unknown argument, as the end of a message.

    Example:
        >>> suggest_argument("min_periods", ["on", "min_rows"])
        ': did you mean min_rows=?'
        >>> suggest_argument("xyzzy", ["on"])
        ''
    """
    known = list(known)
    needed, advice = _ADVICE.get(name, ("", ""))
    if needed in known:
        return f": {advice}"
    meant = [word for word in _ARGUMENTS.get(name, ()) if word in known]
    meant += difflib.get_close_matches(name, known, n=1)
    return f": did you mean {meant[0]}=?" if meant else ""


def suggest_name(name: str, names: Iterable[str]) -> str | None:
    """The equivalent or nearest name; None if there is none.

    Example:
        >>> suggest_name("nunique", ["count_distinct"]), suggest_name("meen", ["mean"])
        ('count_distinct', 'mean')
    """
    near = difflib.get_close_matches(name, list(names), n=1, cutoff=0.7)
    return _NAMES.get(name, near[0] if near else None)


def unknown_name_error(name: str, names: Iterable[str]) -> AttributeError:
    """The exception for an unknown name in `slidewise`.

    Example:
        >>> str(unknown_name_error("std", ["stddev"]))
        "module 'slidewise' has no attribute 'std': did you mean sw.stddev?"
    """
    meant = suggest_name(name, names)
    hint = f": did you mean sw.{meant}?" if meant else ""
    return AttributeError(f"module 'slidewise' has no attribute {name!r}{hint}")
