"""Windows of many keys over a stream of rows.

`keyed_windows` defines the public class, with its `read_calls`. A `plan` states what a
Spec needs of a stream, and `query` makes its results. `processor` ingests rows and
emits results: `shard` holds the rows of some keys, in a `row_log`, which is stored, and
in an `index` in memory; `answer` makes results of them; and `emit` decides which
results are emitted, and when. A `publisher` writes what changes, and a `follower` in
another process answers from it.
"""

from slidewise.keyed.follower import Follower, follow
from slidewise.keyed.keyed_windows import KeyedWindows

__all__ = ["Follower", "KeyedWindows", "follow"]


def __dir__() -> list[str]:
    """Lists the public names only."""
    return sorted(__all__)
