"""Numbers in messages, and the lines of explanations."""

import textwrap
from collections.abc import Iterable

__all__ = ["format_count", "wrap_lines"]


def format_count(number: int, what: str) -> str:
    """A count with its noun, in the plural where needed.

    Example:
        >>> format_count(1, "row"), format_count(2_000, "row")
        ('1 row', '2,000 rows')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def wrap_lines(lines: Iterable[str]) -> list[str]:
    """Wraps lines between words at 80 characters, continuation lines indented.

    Example:
        >>> wrap_lines(["short", "word " * 20])
        ['short', 'word word ... word', '  word ...']
    """
    wrapper = textwrap.TextWrapper(
        80, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )
    return [part for line in lines for part in wrapper.wrap(line)]
