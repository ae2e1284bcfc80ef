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
    "in_group",
    "refuse_group",
    "twice",
]

# The names without `names=`: of the results of `rolling` and of queries, and of
# `hopping`, where a column of the result or the call itself tells the window.
ANSWERS, PER_WINDOW = "{agg}_{window}", "{agg}"
_FIELDS = ("group", "agg", "window")


def check_names(names: object, *, several: bool = False) -> str | None:
    """Checks `names=`, and returns it.

    Args:
        names: A text with the fields `{agg}`, `{window}` and, within `Features`,
            `{group}`; or None.
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
        if field == "window" and several:
            raise SpecError(
                given,
                " has {window}, but with ",
                Argument("windows"),
                " of hopping the column 'window' tells it: leave it out",
            )
    return names


def refuse_group(names: str | None) -> None:
    """Refuses `{group}` in the `names=` of a Spec that is used by itself."""
    if names is not None and _has_group(names):
        raise SpecError(
            Argument("names", names),
            " has {group}, the name of a Spec within Features, and this Spec is in "
            "none: leave it out",
        )


def _has_group(names: str) -> bool:
    return any(field == "group" for _, field, _, _ in Formatter().parse(names))


def in_group(names: str | None, prefix: str, group: str) -> dict[str, str | None]:
    """The `names=` and `prefix=` of a Spec within `Features`, where it has a name.

    Example:
        >>> in_group("{agg} of {group}", "", "card"), in_group(None, "", "card")
        ({'names': '{agg} of card', 'prefix': ''}, {'names': None, 'prefix': 'card_'})
    """
    if names is None or not _has_group(names):
        return {"names": names, "prefix": f"{group}_{prefix}"}
    parts = []
    for text, field, _, _ in Formatter().parse(names):
        parts.append(_literal(text))
        if field is not None:
            parts.append(_literal(group) if field == "group" else f"{{{field}}}")
    return {"names": "".join(parts), "prefix": prefix}


def _literal(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


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
    shown = _literal(str(Argument("names", names)))
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
    return names.format(agg=agg, window=window, group="{group}")
