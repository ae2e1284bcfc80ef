"""Producers of Arrow arrays that violate the protocol."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import slidewise as sw


class Once:
    """Hands out the same capsules at every call."""

    def __init__(self, array: pa.Array) -> None:
        self.capsules = array.__arrow_c_array__()
        self.length = len(array)

    def __len__(self) -> int:
        return self.length

    def __arrow_c_array__(self, requested_schema: object = None) -> Any:
        return self.capsules


def insert_times(array: Any) -> None:
    sw.Window(sw.count()).insert_many(array)


def insert_values(array: Any) -> None:
    sw.Window(sw.sum()).insert_many([1, 2, 3], array)


@pytest.mark.parametrize("call", [insert_times, insert_values])
@pytest.mark.parametrize("dtype", [pa.int64(), pa.int32(), pa.bool_(), pa.string()])
def test_an_array_that_was_taken_before_is_refused(
    call: Callable[[Any], None], dtype: pa.DataType
) -> None:
    array = Once(pa.array([1, 0, 1]).cast(dtype))
    pa.array(array)  # takes the array out of its capsule
    with pytest.raises(sw.SpecError, match="new capsules at every call"):
        call(array)


def test_a_producer_that_hands_out_one_capsule_is_refused_the_second_time() -> None:
    array = Once(pa.array([1, 2, 3]))
    w = sw.Window(sw.sum())
    w.insert_many([1, 2, 3], array)
    with pytest.raises(sw.SpecError, match=r"Once .* was taken before"):
        w.insert_many([4, 5, 6], array)
    assert (len(w), w.query()) == (3, 6)
    w.check()


class Stream:
    """A table that has only the Arrow C stream."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.table.__arrow_c_stream__(requested_schema)


def test_empty_slices_in_a_stream() -> None:
    """pyarrow fails to join imported arrays of this layout (found by `make fuzz`)."""
    numbers = pa.array([0, 1, 2, 3])
    chunks = [numbers.slice(1, 1), numbers.slice(2, 0), numbers.slice(2, 2)]
    table = pa.table({"t": pa.chunked_array(chunks), "x": pa.chunked_array(chunks)})
    answers = sw.rolling(Stream(table), on="t", windows=2, aggs={"s": sw.sum("x")})
    assert pa.table(answers)["s_2"].to_pylist() == [1, 3, 5]
