"""Windows over tables: rolling and hopping, by one call of the native kernel."""

__all__: list[str] = []
