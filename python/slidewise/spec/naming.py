"""The names of result columns: `names=` and `prefix=`."""

from string import Formatter

from slidewise.errors import Argument, SpecError
from slidewise.spec.arguments import TWICE

__all__ = [
    "ANSWERS",
    "PER_WINDOW",
    "check_names",
    "check_prefix",
    "column_name",
    "twice",
]

# The names without `names=`: of the results of `rolling` and of queries, and of
# `hopping`, where a column of the result or the call itself tells the window.
ANSWERS, PER_WINDOW = "{agg}_{window}", "{agg}"
_FIELDS = ("group", "agg", "window")


def check_names(names: object, *, several: bool = False) -> str | None:
    """Checks `names=`, and returns it.

    Args:
        names: A text with the fields `{agg}` and `{window}`, or None.
        several: Whether a column of the result tells the window.

    Example:
        >>> check_names("{window} {agg}")
        '{window} {agg}'
        >>> check_names("{name}")
        Traceback (most recent call last):
        ...
        slidewise.errors.SpecError: names='{name}' has the field 'name', or a format ...
    """
    if names is None:
        return None
    given = Argument("names", names)
    if not isinstance(names, str):
        raise SpecError(
            Argument("names"),
            f" takes a text such as '{ANSWERS}', got {names!r:.60}",
        )
    try:
        parts = [*Formatter().parse(names)]
    except ValueError as error:
        raise SpecError(
            given, f" is not a text such as '{ANSWERS}' ({error}): write {{{{ for {{"
        ) from None
    for _, field, form, conversion in parts:
        if field is None:
            continue
        if field not in _FIELDS or form or conversion:
            raise SpecError(
                given,
                f" has the field {field!r}, or a format in it: there are {{agg}} and "
                "{window}, without a format",
            )
        if field == "group":
            raise SpecError(
                given,
                " has {group}, the name of a Spec within Features, and this Spec is "
                "in none: leave it out",
            )
        if field == "window" and several:
            raise SpecError(
                given,
                " has {window}, but with ",
                Argument("windows"),
                " of hopping the column 'window' tells it: leave it out",
            )
    return names


def check_prefix(prefix: object) -> str:
    """Checks `prefix=`, and returns it."""
    if not isinstance(prefix, str):
        raise SpecError(
            Argument("prefix"), f" takes a text such as 'card_', got {prefix!r:.60}"
        )
    return prefix


def twice(names: str | None) -> str:
    """The message for a result column that would occur twice, at `{}`."""
    if names is None:
        return TWICE
    shown = str(Argument("names", names)).replace("{", "{{").replace("}", "}}")
    return (
        f"{shown} gives the result column {{}} twice: add {{{{agg}}}} or "
        "{{window}} to it"
    )


def column_name(names: str, agg: str, window: str) -> str:
    """The name of a result column.

    Example:
        >>> column_name("{window} {agg}", "n", "1h")
        '1h n'
    """
    return names.format(agg=agg, window=window, group="")
