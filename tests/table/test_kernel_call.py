"""`KernelCall`: answers that were computed elsewhere."""

import pyarrow as pa
import pytest

import slidewise as sw
import slidewise._core as _core
from slidewise.errors import ResultOverflowError
from slidewise.frames.adapt import frame
from slidewise.spec.spec import Spec
from slidewise.table.asof import query_points_of
from slidewise.table.kernel_call import KernelCall

ROWS = pa.table({"t": [1, 2, 4], "x": [5, None, 2**62], "u": pa.array([1] * 3, "u8")})
LABELS = frame(pa.table({"t": [2, 9, 4]}))
AGGS = {"n": sw.count(), "x": sw.sum("x"), "u": sw.max("u"), "mean": sw.mean("x")}


def answers_of(call: KernelCall, points: object) -> object:
    """The answers of the core for a call, not decoded."""
    return _core.rolling(
        *(call.rows, call.inputs.columns, call.calls, call.spans, "peers", points),
        *([], 0, 1, None, False),
    )


def test_answers_are_decoded_by_themselves() -> None:
    """A call over no rows gives the types and nulls of `compute`."""
    spec = Spec.make(on="t", windows=[3, 1], aggs=AGGS, min_rows=1)
    call = KernelCall(frame(ROWS), spec)
    points = query_points_of(LABELS, call, spec)
    answers, beyond = answers_of(call, points)
    bare = KernelCall(frame(ROWS.slice(0, 0)), spec)
    assert bare.decode(answers, beyond, points, points.ends) == call.compute(points)


def test_decoded_overflows_name_their_query_point() -> None:
    """Overflows raise the errors of `compute`."""
    spec = Spec.make(on="t", windows=9, aggs={"x": sw.sum("x")})
    rows = ROWS.set_column(1, "x", pa.array([2**62] * 3))
    call = KernelCall(frame(rows), spec)
    points = query_points_of(LABELS, call, spec)
    answers, beyond = answers_of(call, points)
    bare = KernelCall(frame(rows.slice(0, 0)), spec)
    with pytest.raises(ResultOverflowError, match=r"'9' of row of at=, 0"):
        bare.decode(answers, beyond, points, points.ends)
