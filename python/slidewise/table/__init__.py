"""Windows over tables: rolling and hopping, by one call of the native kernel."""

__all__: list[str] = []


def __dir__() -> list[str]:
    """Lists the public names only."""
    return sorted(__all__)
