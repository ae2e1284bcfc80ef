"""Numbers in messages."""

__all__ = ["format_count"]


def format_count(number: int, what: str) -> str:
    """A count with its noun, in the plural where needed.

    Example:
        >>> format_count(1, "row"), format_count(2_000, "row")
        ('1 row', '2,000 rows')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"
