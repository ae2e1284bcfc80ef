"""Windows in memory: over one range (`Window`) or several (`SharedWindow`)."""

__all__: list[str] = []


def __dir__() -> list[str]:
    """Lists the public names only."""
    return sorted(__all__)
