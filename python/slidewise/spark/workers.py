"""What runs in Python workers: one pass over a partition's sorted rows."""

import pickle
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import cloudpickle

from slidewise.batches import Order, rolled
from slidewise.hop_batches import hopped
from slidewise.spark.hot import MARK, PIECE, WARM
from slidewise.spec import Spec

__all__ = ["Answer", "answer"]

Answer = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

# Results go back in batches of so many rows.
_ROWS = 1 << 15


def answer(
    spec: Spec, order: Order, come: tuple[str, ...], go: tuple[str, ...]
) -> Answer:
    """A function for `mapInArrow`.

    Args:
        spec: What is asked.
        order: What is known of the order of rows.
        come: The names of the columns that come.
        go: The columns that go back.
    """
    blob = cloudpickle.dumps(spec)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        spec = _unpickled(blob)
        named = (_unmarked(batch.rename_columns(come)) for batch in batches)
        first = next(named, None)
        if first is None:
            return
        answered = hopped if spec.is_hopping else rolled
        for part in answered(chain([first], named), spec, first.schema, order):
            yield from part.select(go).to_batches(max_chunksize=_ROWS)

    return run


def _unmarked(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch with what its marks say, if it has any, in columns."""
    if MARK not in batch.schema.names:
        return batch
    marks = batch.column(MARK)
    warm = pc.equal(pc.bit_wise_and(marks, 1), 0)
    return batch.append_column(PIECE, pc.shift_right(marks, 1)).append_column(
        WARM, warm
    )


@lru_cache(maxsize=16)
def _unpickled(blob: bytes) -> Spec:
    """Once per process: native aggregations are compiled when they are unpickled."""
    spec: Spec = pickle.loads(blob)
    return spec
