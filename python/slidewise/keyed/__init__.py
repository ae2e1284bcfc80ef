"""Windows of many keys over a stream of rows, stored in pages.

`keyed_windows` has the public class, `query` a Spec over a stream, `shard` the state of
some keys, and `page_tree` the pages of one slot of keys.
"""

from slidewise.keyed.keyed_windows import KeyedWindows

__all__ = ["KeyedWindows"]
