"""The command `slidewise`."""

__all__: list[str] = []
