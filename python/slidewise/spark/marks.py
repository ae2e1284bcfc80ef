"""Marks of result columns, in the metadata of Spark's fields, which renaming keeps."""

from typing import Any

from slidewise.errors import SpecError

__all__ = ["KEY", "UNTIL", "key_names", "until_names"]

# The mark of a key column: the number of key columns.
KEY = "slidewise.key"
# The mark of a column of times until which results are valid: True.
UNTIL = "slidewise.valid_until"


def key_names(df: Any) -> tuple[str, ...]:
    """Returns the columns that identify a row of results; none if there are none.

    Raises:
        SpecError: If some of them were dropped.
    """
    marked = {f.name: f.metadata[KEY] for f in df.schema if KEY in f.metadata}
    for name, count in marked.items():
        if count != len(marked):
            raise SpecError(
                f"the results have {len(marked)} of their {count} key columns "
                f"({name!r}, ...): select all, or name the columns in by="
            )
    return tuple(marked)


def until_names(df: Any) -> tuple[str, ...]:
    """Returns the columns of `valid_until=True`."""
    return tuple(field.name for field in df.schema if UNTIL in field.metadata)
