"""Files of tables: readers, writers, and tables larger than memory."""

__all__: list[str] = []


def __dir__() -> list[str]:
    """Lists the public names only."""
    return sorted(__all__)
