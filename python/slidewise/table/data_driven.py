"""Windows whose ends are rows: by a flag, a difference or a number of rows.

Rows are numbered in the order of key and time, those of equal time as in the table. In
these *positions* a window is a range, which kernels answer as a range of times.
"""

import sys
from collections.abc import Callable, Sequence
from fractions import Fraction

import pyarrow as pa
import pyarrow.compute as pc

import slidewise._core as _core
from slidewise.caching import cached_property
from slidewise.errors import Argument, SpecError
from slidewise.spec.durations import Length, format_duration
from slidewise.table.arrays import cast_lossless, decode_dictionary, row_numbers
from slidewise.table.decimals import DIGITS, can_sum
from slidewise.table.row_lengths import lengths_of
from slidewise.table.time_columns import RowKeys, TimeColumn, read_times, window_ticks

__all__ = ["Positions"]

_INT64 = pa.int64()
_MAX_UINT64 = 2**64 - 1
# Decimals of this many digits fit int64.
_INT64_DIGITS = 18


class Positions:
    """The rows of a table in the order of key and time."""

    def __init__(
        self,
        times: TimeColumn,
        groups: pa.Array | None,
        layout: _core.SortLayout,
        column: Callable[[str], pa.Array],
        keys: Sequence[tuple[str, pa.Array]],
        *,
        peers: bool = True,
    ) -> None:
        self._peers = peers
        self._times = times
        self._groups = groups
        self._layout = layout
        self._column = column
        self._keys = keys
        # The position of each row, and the row at each position.
        positions, rows = layout.positions()
        self.of_rows, self.rows = pa.array(positions), pa.array(rows)

    @cached_property
    def numbers(self) -> pa.Array:
        """The positions in turn."""
        return row_numbers(len(self.rows))

    @cached_property
    def begins(self) -> pa.Array:
        """The first position of the key of each position."""
        return pa.array(self._layout.begins())

    @cached_property
    def _first_peers(self) -> pa.Array:
        """The first position of the key and time of each."""
        ticks = self._times.ticks.take(self.rows)
        others = pc.not_equal(ticks.slice(1), ticks.slice(0, max(len(ticks) - 1, 0)))
        first = pa.array([True] * min(len(ticks), 1), pa.bool_())
        begin = pc.or_(
            pa.concat_arrays([first, others]), pc.equal(self.numbers, self.begins)
        )
        return pc.fill_null_forward(pc.if_else(begin, self.numbers, None))

    @property
    def before_peers(self) -> pa.Array:
        """The last position of an earlier time; of another key, if none is."""
        return pc.subtract(self._first_peers, 1)

    @cached_property
    def _last_peers(self) -> pa.Array:
        """The last position of the key and time of each."""
        first = self._first_peers
        end = pa.array([len(first)] * min(len(first), 1), _INT64)
        after = pa.concat_arrays([first.slice(1), end])
        last = pc.if_else(pc.greater(after, self.numbers), pc.subtract(after, 1), None)
        return pc.fill_null_backward(last)

    def up_to(self, *, own: bool) -> pa.Array:
        """Each position; without its `own`, the one before it."""
        return self.numbers if own else pc.subtract(self.numbers, 1)

    def rows_before(
        self, last: pa.Array, count: int, skipped: int
    ) -> tuple[pa.Array, pa.Array]:
        """Starts and ends of some rows, which end so many before `last`."""
        ends = pc.subtract(last, min(skipped, len(self.rows)))
        starts = pc.subtract(ends, min(count, len(self.rows)) - 1)
        return pc.max_element_wise(starts, self.begins), ends

    def starts_at_flags(self, column: str, kind: str) -> pa.Array:
        """Starts by flags: "landmark", "until" or "open"."""
        return pa.array(self._layout.flag_starts(self._flags(column), kind))

    def starts_by_rows(self, count: int) -> pa.Array:
        """Starts of windows of a number of rows."""
        first = pc.subtract(self.numbers, min(count, len(self.rows)) - 1)
        return pc.max_element_wise(first, self.begins)

    def starts_by_time(self, length: Length) -> pa.Array:
        """Starts of windows of a length of time."""
        ticks = self._times.ticks.take(self.rows)
        width = window_ticks(length, self._times) - 1
        return pa.array(_core.delta_starts(ticks, self.begins, width))

    def by_lengths(self, column: str) -> tuple[pa.Array, pa.Array]:
        """Starts and ends of windows whose lengths a column gives."""
        lengths, by_rows = self._lengths(column)
        if by_rows:
            most = pc.min_element_wise(lengths.take(self.rows), len(self.rows))
            first = pc.subtract(pc.add(self.numbers, 1), most)
            return pc.max_element_wise(first, self.begins), self.numbers
        before = self.at(self._earlier(lengths), self._groups, 1).take(self.rows)
        starts = pc.coalesce(pc.add(before, 1), self.begins)
        return starts, self._last_peers if self._peers else self.numbers

    def since_lengths(self, column: str) -> pa.Array | None:
        """The times, by row, at which these windows start; None for numbers of rows."""
        lengths, by_rows = self._lengths(column)
        return None if by_rows else self._earlier(lengths)

    def _lengths(self, column: str) -> tuple[pa.Array, bool]:
        """The lengths in a column, 0 for null, and whether they are of rows."""
        held = decode_dictionary(self._column(column))
        lengths, by_rows = lengths_of(column, held, self._times)
        return pc.fill_null(lengths, 0), by_rows

    def _earlier(self, lengths: pa.Array) -> pa.Array:
        """The time of each row, less a length."""
        # No time is earlier than the least int64.
        ticks = pc.max_element_wise(self._times.ticks, pc.add(lengths, -(2**63)))
        return pc.subtract(ticks, lengths)

    def missing(self, column: str) -> pa.Array | None:
        """A mask of the rows of the table without a value; None if all have one."""
        held = self._column(column)
        return held.is_null() if held.null_count else None

    def starts_by_delta(self, column: str, width: Length) -> pa.Array:
        """Starts of windows of values that are near."""
        held = decode_dictionary(self._column(column))
        values, distance = _comparable(column, width, held)
        try:
            found = _core.delta_starts(values.take(self.rows), self.begins, distance)
        except ValueError as error:
            raise self._falls(column, held, int(str(error))) from None
        return pa.array(found)

    def flagged(self, column: str) -> pa.Array:
        """The rows with a flag."""
        return pa.array(self._layout.flagged(self._flags(column)))

    def every(self, count: int) -> pa.Array:
        """Every row of a key whose number is a multiple of a count."""
        number = pc.add(pc.subtract(self.numbers, self.begins), 1)
        whole = pc.multiply(pc.divide(number, count), pa.scalar(count))
        return self.numbers.filter(pc.equal(number, whole))

    def at(self, ticks: pa.Array, groups: pa.Array | None, threads: int) -> pa.Array:
        """The last position of a key up to each time; null where it has none."""
        count = len(self.rows)
        both = None
        if self._groups is not None and groups is not None:
            both = pa.concat_arrays([self._groups, groups])
        times = pa.concat_arrays([self._times.ticks, ticks])
        # Times follow the rows of the same time.
        layout = _core.sort_rows(RowKeys(times, both), threads)
        places, order = map(pa.array, layout.positions())
        before = pc.cumulative_sum(pc.less(order, count).cast(_INT64))
        last = pc.subtract(before.take(places.slice(count)), 1)
        last = pc.if_else(pc.less(last, 0), None, last)
        if self._groups is None or groups is None:
            return last
        own = pc.equal(self._groups.take(self.rows.take(last)), groups)
        return pc.if_else(own, last, None)

    def _flags(self, name: str) -> pa.Array:
        """A column of flags, by row."""
        column = decode_dictionary(self._column(name))
        if pa.types.is_null(column.type):
            column = column.cast(pa.bool_())
        if not pa.types.is_boolean(column.type):
            raise SpecError(
                f"column {name!r} holds {column.type}, not booleans: a flag is true, "
                "false or null, such as the result of a comparison"
            )
        return column

    def _falls(self, name: str, column: pa.Array, position: int) -> SpecError:
        before, row = (self.rows[at].as_py() for at in (position - 1, position))
        values = [column[at].as_py() for at in (before, row)]
        key = ", ".join(f"{name}={keys[row].as_py()!r}" for name, keys in self._keys)
        return SpecError(
            f"column {name!r} falls from {values[0]!r} in row {before} to "
            f"{values[1]!r} in row {row} (counting from 0)"
            f"{f' of {key}' if key else ''}: sw.delta needs a column that does not "
            f"fall in order of {self._times.name!r}"
        )


def _comparable(
    name: str, given: Length, column: pa.Array
) -> tuple[pa.Array, int | float]:
    """A column as int64 or float64, and the width of windows in the same units."""
    types, held = pa.types, column.type
    if types.is_null(held) and not len(column):
        return column.cast(_INT64), 0
    if types.is_temporal(held) and not types.is_time(held):
        return _of_times(name, given, column)
    if not (types.is_integer(held) or types.is_floating(held) or can_sum(held)):
        raise SpecError(
            f"column {name!r} holds {held}: sw.delta takes integers, floats, decimals, "
            "timestamps, dates and durations"
        )
    if given.kind != "number":
        raise SpecError(
            Argument("width", format_duration(given.amount)),
            f" is a duration, but column {name!r} holds {held}: give a number",
        )
    if types.is_floating(held):
        column = column.cast(pa.float64())
    row = pc.index(column.is_null(nan_is_null=True), True).as_py()
    if row >= 0:
        what = "NaN" if column[row].is_valid else "no value"
        raise SpecError(
            f"column {name!r} has {what} in row {row} (counting from 0): sw.delta "
            "needs one in every row; drop the others, or fill them in"
        )
    width = Fraction(given.label)
    if types.is_floating(held):
        return column, float(min(width, Fraction(sys.float_info.max)))
    if types.is_decimal(held):
        width *= Fraction(10) ** held.scale
        column = _unscaled(name, column)
    elif types.is_uint64(held):
        # Its order and differences, around zero.
        column = pc.bit_wise_xor(column.view(_INT64), pa.scalar(-(2**63), _INT64))
    return column.cast(_INT64), min(width.numerator // width.denominator, _MAX_UINT64)


def _unscaled(name: str, column: pa.Array) -> pa.Array:
    """Decimals as integers, scaled by a power of ten."""
    kind = pa.decimal128(_INT64_DIGITS, column.type.scale)
    try:
        column = cast_lossless(column, kind).cast(pa.decimal128(DIGITS, kind.scale))
    except pa.ArrowInvalid as error:
        raise SpecError(
            f"column {name!r} holds decimals of more than {_INT64_DIGITS} digits, "
            "which sw.delta does not compare: cast it to float64"
        ) from error
    if not len(column):
        return pa.array([], _INT64)
    words = pa.Array.from_buffers(
        _INT64, 2 * len(column), [None, column.buffers()[1]], offset=2 * column.offset
    )
    return words.take(pc.multiply(row_numbers(len(column)), 2))


def _of_times(name: str, width: Length, column: pa.Array) -> tuple[pa.Array, int]:
    times = read_times(column, name)
    if width.kind == "number":
        raise SpecError(
            f"width={width.label} is a number, but column {name!r} holds "
            f"{column.type}: give a duration such as '5m'"
        )
    return times.ticks, window_ticks(width, times)
