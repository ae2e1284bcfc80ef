"""`QueryPoints`: the ends of windows, where these are not one per row of a table."""

from dataclasses import dataclass, replace

import pyarrow as pa

__all__ = ["QueryPoints"]


@dataclass(frozen=True, slots=True)
class QueryPoints:
    """The times at which windows are evaluated, where these are not the rows' own.

    Attributes:
        ends: The end of each window, in ticks of the table's time column.
        starts: The start of each window; None for the end less the window's length.
        groups: The key codes, as in the table's rows; None without keys.
        arrival: Only rows that arrived no later count; None if all do.
        noun: The name of a query point in messages.
        by_position: Whether `ends` and `starts` are positions of the rows in the order
            of key and time, and both belong to the window.
        times: The ends in ticks, where `ends` are positions.
        since: The starts in ticks, where `starts` are positions of windows that begin
            at a time.
        own: The number of the row that each point is; None if they are not rows, or
            results do not depend on these.
        leaves_out: Whether windows leave out the row of their point.
    """

    ends: pa.Array
    starts: pa.Array | None
    groups: pa.Array | None
    arrival: pa.Array | None
    noun: str
    by_position: bool = False
    times: pa.Array | None = None
    since: pa.Array | None = None
    own: pa.Array | None = None
    leaves_out: bool = False

    @property
    def in_ticks(self) -> pa.Array:
        """The ends in ticks."""
        return self.ends if self.times is None else self.times

    def take(self, rows: pa.Array) -> "QueryPoints":
        """Some of them."""
        ends, starts, groups, arrival, times, since, own = (
            None if column is None else column.take(rows)
            for column in (
                self.ends,
                self.starts,
                self.groups,
                self.arrival,
                self.times,
                self.since,
                self.own,
            )
        )
        assert ends is not None, "points have ends"
        return replace(
            self,
            ends=ends,
            starts=starts,
            groups=groups,
            arrival=arrival,
            times=times,
            since=since,
            own=own,
        )
