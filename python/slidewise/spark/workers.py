"""What runs in Python workers: one pass over a partition's sorted rows."""

from collections.abc import Callable, Iterator
from itertools import chain

import pyarrow as pa

from slidewise.batches import Order, rolled
from slidewise.hop_batches import hopped
from slidewise.spec import Spec

__all__ = ["Answer", "answer"]

Answer = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

# Results go back in batches of so many rows.
_ROWS = 1 << 15


def answer(spec: Spec, order: Order, names: tuple[str, ...]) -> Answer:
    """A function for `mapInArrow`.

    Args:
        spec: What is asked.
        order: What is known of the order of rows.
        names: The columns that go back.
    """

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        first = next(batches, None)
        if first is None:
            return
        answered = hopped if spec.is_hopping else rolled
        for part in answered(chain([first], batches), spec, first.schema, order):
            yield from part.select(names).to_batches(max_chunksize=_ROWS)

    return run
