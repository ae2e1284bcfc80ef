"""Windows over a sorted stream of batches whose ends are not times: key by key.

The begin of a window may depend on any earlier row of its key, so the rows of a key are
held until all have come, and then computed as a table.
"""

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa

from slidewise.spec.spec import Spec

__all__ = ["needs_whole_keys", "whole_keys"]


def needs_whole_keys(spec: Spec) -> bool:
    """Whether a window depends on more rows than those within its times.

    Example:
        >>> import slidewise as sw
        >>> windows = [sw.landmark("f")]
        >>> needs_whole_keys(Spec.make(on="t", windows=windows, aggs={"n": sw.count()}))
        True
    """
    return spec.several or any(window.by_position for window in spec.windows)


def whole_keys(
    batches: Iterable[pa.RecordBatch],
    compute: Callable[[pa.Table], pa.Table],
    last_run: Callable[[pa.Table], int],
    schema: pa.Schema,
    min_rows: int,
) -> Iterator[pa.Table]:
    """Yields the results of the rows, in parts of whole keys.

    Args:
        batches: Sorted by key and time.
        compute: Gives the results of some rows.
        last_run: Gives the start of the last run of rows, which may continue.
        schema: The schema of the results.
        min_rows: The least number of rows per call of `compute`.
    """
    held: list[pa.Table] = []
    count = kept = 0
    for batch in batches:
        held.append(pa.Table.from_batches([batch]))
        count += batch.num_rows
        if count < max(min_rows, 2 * kept):
            continue
        rows = pa.concat_tables(held).combine_chunks()
        start = last_run(rows)
        if start:
            yield _cast(compute(rows.slice(0, start)), schema)
        left = rows.slice(start)
        held, count, kept = [left], left.num_rows, left.num_rows
    if count:
        yield _cast(compute(pa.concat_tables(held).combine_chunks()), schema)


def _cast(results: pa.Table, schema: pa.Schema) -> pa.Table:
    """The results, cast to the types of the schema."""
    columns = [results[field.name].cast(field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)
