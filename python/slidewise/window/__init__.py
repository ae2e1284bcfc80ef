"""Windows in a process: one range (`Window`) or many (`SharedWindow`)."""

__all__: list[str] = []
