"""Checks of arguments that several specifications share."""

from collections.abc import Iterable

from slidewise.errors import Argument, SpecError

__all__ = ["check_column_name", "one_of", "refuse_duplicates"]


def check_column_name(value: object, argument: str) -> str:
    """Returns the name of a column.

    Raises:
        SpecError: If it is not a str.
    """
    if not isinstance(value, str):
        raise SpecError(
            Argument(argument), f" takes the name of a column, got {value!r}"
        )
    return value


def one_of(value: str, argument: str, allowed: tuple[str, ...]) -> str:
    """Returns the value of an argument that takes one of some words.

    Raises:
        SpecError: If it is another one.

    Example:
        >>> one_of("skip", "nan", ("propagate", "skip", "raise"))
        'skip'
    """
    if value not in allowed:
        raise SpecError(
            Argument(argument), f" is one of {', '.join(allowed)}; got {value!r}"
        )
    return value


_TWICE = (
    "the result column {} would occur twice: give each aggregation a different name, "
    "and each window once"
)


def refuse_duplicates(names: Iterable[str], message: str = _TWICE) -> None:
    """Refuses duplicate result columns.

    Args:
        names: The names.
        message: What the error says of the name in its place.

    Raises:
        SpecError: Naming the column.
    """
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise SpecError(message.format(repr(name)))
        seen.add(name)
