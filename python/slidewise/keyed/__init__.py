"""Windows of many keys over a stream of rows.

`keyed_windows` defines the public class, `query` a Spec over a stream, and `shard` the
state of some keys: a `row_log`, which is stored, and an `index` of it in memory.
"""

from slidewise.keyed.keyed_windows import KeyedWindows

__all__ = ["KeyedWindows"]


def __dir__() -> list[str]:
    """Lists the public names only."""
    return sorted(__all__)
