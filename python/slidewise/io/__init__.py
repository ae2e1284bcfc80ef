"""Files of tables: readers, writers, and tables larger than memory."""

__all__: list[str] = []
