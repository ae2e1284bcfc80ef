"""What runs in Python workers: one pass over a partition's sorted rows."""

import pickle
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from operator import methodcaller

import pyarrow as pa
from pyspark import cloudpickle

from slidewise.frames.adapt import frame
from slidewise.spark.skew_split import Bounds
from slidewise.spark.sort_key import RUN, check_times
from slidewise.spec.spec import Spec
from slidewise.table.batched_hopping import hopping_batches
from slidewise.table.batched_rolling import Order, check_rows, rolling_batches
from slidewise.table.time_columns import read_times

__all__ = ["Answer", "answer"]

Answer = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

# Results go back in batches of so many rows.
_ROWS = 1 << 15


def answer(
    spec: Spec,
    order: Order,
    bounds: Bounds | None,
    come: tuple[str, ...],
    go: tuple[str, ...],
) -> Answer:
    """A function for `mapInArrow`.

    Args:
        spec: What is asked.
        order: What is known of the order of rows.
        bounds: Of pieces, if keys are cut.
        come: The names of the columns that come.
        go: The columns that go back.
    """
    blob = cloudpickle.dumps(spec)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        spec = _unpickled(blob)
        named: Iterator[pa.RecordBatch] = map(
            methodcaller("rename_columns", come), batches
        )
        named = _checked(named, spec)
        if order.runs == (RUN,):
            named = _in_runs(named, spec)
        if bounds is not None:
            named = _in_pieces(named, spec, bounds)
        own = replace(order, is_checked=True)
        own = own if bounds is None else bounds.order(spec, own)
        first = next(named, None)
        if first is None:
            return
        answered = hopping_batches if spec.is_hopping else rolling_batches
        for part in answered(chain([first], named), spec, first.schema, own):
            yield from part.select(go).to_batches(max_chunksize=_ROWS)

    return run


def _checked(batches: Iterator[pa.RecordBatch], spec: Spec) -> Iterator[pa.RecordBatch]:
    """Batches of which each row is as it must be: looked at once, before all else."""
    for batch in batches:
        check_rows(batch, spec)
        yield batch


def _in_runs(batches: Iterator[pa.RecordBatch], spec: Spec) -> Iterator[pa.RecordBatch]:
    """Batches of which all times were in the number that sorted them."""
    for batch in batches:
        table = pa.Table.from_batches([batch])
        check_times(read_times(frame(table).column(spec.on), spec.on).ticks, spec.on)
        yield batch


def _in_pieces(
    batches: Iterator[pa.RecordBatch], spec: Spec, bounds: Bounds
) -> Iterator[pa.RecordBatch]:
    """Batches with what their rows are to their piece."""
    watch = bounds.watch()
    for batch in batches:
        marked = bounds.marked(batch, spec)
        if watch is not None:
            watch.take(marked)
        yield marked
    if watch is not None:
        watch.check()


@lru_cache(maxsize=16)
def _unpickled(blob: bytes) -> Spec:
    """Once per process: native aggregations are compiled when they are unpickled."""
    spec: Spec = pickle.loads(blob)
    return spec
