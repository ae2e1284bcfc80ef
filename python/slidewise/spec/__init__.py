"""The specification of windows and aggregations that all engines take."""

__all__: list[str] = []


def __dir__() -> list[str]:
    """Lists the public names only."""
    return sorted(__all__)
