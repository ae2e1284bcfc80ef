"""Batch queries in Python workers: one pass over the sorted rows of a partition."""

import pickle
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache, partial
from itertools import chain
from operator import methodcaller

import pyarrow as pa
from pyspark import cloudpickle

from slidewise.frames.adapt import frame
from slidewise.spark.columns import ASKED, END, START
from slidewise.spark.skew_split import SplitBounds
from slidewise.spark.sort_key import KEY_GROUP, check_times
from slidewise.spark.worker_errors import one_line_errors
from slidewise.spark.worker_memory import prepare_worker
from slidewise.spec.spec import Spec
from slidewise.table.batched_hopping import hopping_batches
from slidewise.table.batched_points import PointRows, point_batches
from slidewise.table.batched_rolling import Order, checked_batches, rolling_batches
from slidewise.table.time_columns import read_times

__all__ = ["PartitionFunction", "partition_function"]

Batches = Iterator[pa.RecordBatch]
PartitionFunction = Callable[[Batches], Batches]

# The number of rows in a batch of results.
_BATCH_ROWS = 1 << 15


def partition_function(
    spec: Spec,
    order: Order,
    bounds: SplitBounds | None,
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    points: PointRows | None = None,
    within: tuple[int | None, int | None] | None = None,
) -> PartitionFunction:
    """Returns a function for `mapInArrow`.

    `points` are the labels among the rows; `within` are the bounds of windows in ticks,
    as columns of `Order.within`.
    """
    blob = cloudpickle.dumps(spec)

    def run(batches: Batches) -> Batches:
        prepare_worker()
        with one_line_errors():
            spec = _unpickle(blob)
            rows: Batches = map(methodcaller("rename_columns", inputs), batches)
            if points is None:
                rows = checked_batches(rows, spec, order)
            else:
                rows = points.checked(rows, spec)
            if order.runs == (KEY_GROUP,):
                rows = _check_sort_keys(rows, spec)
            if within is not None:
                rows = map(partial(_add_bounds, within), rows)
            if bounds is not None:
                rows = map(partial(bounds.add_roles, spec=spec), rows)
                # Windows of n rows need enough of them.
                rows = bounds.check_overlap(rows) if any(bounds.min_rows) else rows
            first = next(rows, None)
            if first is None:
                return
            rows, schema = chain([first], rows), first.schema
            if points is not None:
                for results in point_batches(rows, spec, schema, points, order):
                    yield from results.to_batches(max_chunksize=_BATCH_ROWS)
                return
            row_order = replace(order, is_checked=True)
            if bounds is not None:
                row_order = bounds.order(spec, row_order)
            compute = hopping_batches if spec.is_hopping else rolling_batches
            for results in compute(rows, spec, schema, row_order):
                if ASKED in results.schema.names:
                    results = results.filter(results[ASKED])
                yield from results.select(outputs).to_batches(max_chunksize=_BATCH_ROWS)

    return run


def _check_sort_keys(batches: Batches, spec: Spec) -> Batches:
    """Checks that the times of each batch fit into its sort keys."""
    for batch in batches:
        table = pa.Table.from_batches([batch])
        check_times(read_times(frame(table).column(spec.on), spec.on).ticks, spec.on)
        yield batch


def _add_bounds(
    within: tuple[int | None, int | None], batch: pa.RecordBatch
) -> pa.RecordBatch:
    """Adds the columns of the bounds of windows."""
    for name, tick in zip((START, END), within, strict=True):
        bound = pa.repeat(pa.scalar(tick, pa.int64()), batch.num_rows)
        batch = batch.append_column(name, bound)
    return batch


@lru_cache(maxsize=16)
def _unpickle(blob: bytes) -> Spec:
    """Unpickles a spec once per process, as this compiles its native aggregations."""
    spec: Spec = pickle.loads(blob)
    return spec
