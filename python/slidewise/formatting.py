"""Numbers in messages."""

__all__ = ["counted"]


def counted(number: int, what: str) -> str:
    """How many of something there are.

    Example:
        >>> counted(1, "row"), counted(2_000, "row")
        ('1 row', '2,000 rows')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"
