"""Windows of many keys over a stream of rows, kept in pages.

`windows` is what users see in a process, `shard` the state of some keys, `tree` the
pages of one slot, `job` what is asked.
"""

from slidewise.keyed.keyed_windows import KeyedWindows

__all__ = ["KeyedWindows"]
