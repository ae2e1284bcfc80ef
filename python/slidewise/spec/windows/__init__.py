"""Windows: a class in a file of its own for each kind."""

__all__: list[str] = []


def __dir__() -> list[str]:
    """Lists the public names only."""
    return sorted(__all__)
