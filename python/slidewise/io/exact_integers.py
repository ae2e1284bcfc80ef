"""Integers of text beyond 64 bits: text where they are keys, otherwise refused.

The readers of pyarrow take such an integer for a float, and with it the whole column.
"""

import pyarrow as pa
import pyarrow.compute as pc

from slidewise.errors import Argument, SpecError

__all__ = ["ExactIntegers", "has_large"]

# Floats hold all integers up to this one.
_EXACT = 1 << 53
_INTEGER = r"^[+-]?\d+$"


def has_large(column: pa.ChunkedArray | pa.Array) -> bool:
    """Whether a column has numbers that floats may round, also within lists.

    Example:
        >>> has_large(pa.array([1.5, 1e15])), has_large(pa.array([[], [2**60]]))
        (False, True)
    """
    if isinstance(column, pa.ChunkedArray):
        return any(has_large(chunk) for chunk in column.chunks)
    if pa.types.is_floating(column.type) or pa.types.is_integer(column.type):
        ends = pc.min_max(column).as_py()
        largest = max(ends["max"] or 0, -(ends["min"] or 0))
        return bool(largest >= _EXACT)
    if pa.types.is_struct(column.type):
        return any(map(has_large, column.flatten()))
    return pa.types.is_list(column.type) and has_large(column.flatten())


class ExactIntegers:
    """The type of a column of numbers, found in their text.

    Args:
        name: The column.
        is_key: Whether it is one of the keys.

    Example:
        >>> ids = ExactIntegers("id", is_key=True)
        >>> ids.add(pa.array(["18446744073709551615", None, "5"]))
        >>> ids.type
        DataType(uint64)
        >>> ids.add(pa.array(["18446744073709551616"]))
        >>> ids.type
        DataType(string)
    """

    def __init__(self, name: str, *, is_key: bool) -> None:
        self._name = name
        self._is_key = is_key
        self._rows = 0
        # The first of a kind, with its row.
        self._first: dict[str, tuple[int, str]] = {}

    def add(self, text: pa.Array | pa.ChunkedArray) -> None:
        """Adds rows: the numbers as they are written, without spaces around them."""
        digits = pc.utf8_ltrim(text, characters="+-0")
        negative = pc.starts_with(text, "-")
        whole = pc.match_substring_regex(text, _INTEGER)
        above = pc.and_(whole, pc.invert(negative))
        below = pc.and_(whole, negative)
        int64 = pc.and_(above, _exceeds(digits, 2**63 - 1))
        beyond = pc.or_(
            pc.and_(above, _exceeds(digits, 2**64 - 1)),
            pc.and_(below, _exceeds(digits, 2**63)),
        )
        kinds = {
            "fraction": pc.invert(whole),
            "rounded": pc.and_(whole, _exceeds(digits, _EXACT)),
            "negative": below,
            "unsigned": int64,
            "beyond": beyond,
        }
        for kind, has in kinds.items():
            row = pc.index(has, pa.scalar(True)).as_py()
            if row >= 0 and kind not in self._first:
                self._first[kind] = (self._rows + row, text[row].as_py())
        self._rows += len(text)

    @property
    def type(self) -> pa.DataType:
        """The type that holds all integers exactly.

        Fractions make a column of values float64, which rounds its integers from 2^53
        on as it does fractions.

        Raises:
            SpecError: If there is none and the column is no key.
        """
        has = self._first
        mixed = "unsigned" in has and "negative" in has and "fraction" not in has
        if self._is_key:
            if "beyond" in has or mixed or {"fraction", "rounded"} <= has.keys():
                return pa.string()
        elif "beyond" in has or mixed:
            row, value = has["beyond" if "beyond" in has else "unsigned"]
            why = "which is beyond 64 bits"
            if "beyond" not in has:
                why = f"which is beyond int64, beside {has['negative'][1]}"
            raise SpecError(
                f"column {self._name!r} holds {value} in row {row} (counting from 0), "
                f"{why}: read the column as text with ",
                Argument("text", self._name),
            )
        if "fraction" in has:
            return pa.float64()
        return pa.uint64() if "unsigned" in has else pa.int64()


def _exceeds(digits: pa.Array, limit: int) -> pa.Array:
    """Whether digits without leading zeros exceed a number."""
    most = str(limit)
    length = pc.binary_length(digits)
    alike = pc.and_(pc.equal(length, len(most)), pc.greater(digits, most))
    return pc.or_(pc.greater(length, len(most)), alike)
