"""The specification of windows and aggregations that all engines take."""

__all__: list[str] = []
