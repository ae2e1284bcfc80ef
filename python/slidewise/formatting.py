"""Numbers in messages."""

__all__ = ["format_count"]


def format_count(number: int, what: str) -> str:
    """How many of something there are.

    Example:
        >>> format_count(1, "row"), counted(2_000, "row")
        ('1 row', '2,000 rows')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"
