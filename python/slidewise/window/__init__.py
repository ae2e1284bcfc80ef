"""Windows in memory: over one range (`Window`) or several (`SharedWindow`)."""

__all__: list[str] = []
