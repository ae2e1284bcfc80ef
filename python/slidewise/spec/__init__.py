"""What is asked over windows, for all engines: the Spec and its durations."""

__all__: list[str] = []
