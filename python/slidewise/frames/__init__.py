"""Tables of the user's library to Arrow and back."""

__all__: list[str] = []
