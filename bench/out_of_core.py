"""Sorting a file that does not fit into memory: slidewise, DuckDB, polars and Arrow.

    python -m bench.out_of_core slidewise --memory 512

or `duckdb`, `polars`, `arrow`, `whole`.

Each sorts four columns by key, time and row number within `--memory` MB and reads the
result as a stream; `whole` is `rolling_file`, stage by stage. The file is made first
and kept. Prints wall and CPU seconds and the peak of resident memory.
"""

import argparse
import itertools
import resource
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import slidewise as sw
from slidewise.io.external_sort import SampleSort
from slidewise.io.out_of_core import rolling_file
from slidewise.io.scanner import Scan
from slidewise.spec.spec import Spec

COLUMNS = ["t", "k", "v", "y"]
ORDER = ["k", "t", "row"]


def write_file(file: Path, rows: int) -> None:
    """Rows of 5,000 keys over 30 days, in random order."""
    rng = np.random.default_rng(1)
    writer = None
    for _ in range(20):
        count = rows // 20
        times = pa.array(rng.integers(0, 30 * 86_400 * 10**6, count))
        words = pa.array(rng.integers(0, 9, count)).cast(pa.string())
        table = pa.table(
            {
                "t": times.cast(pa.timestamp("us")),
                "k": rng.integers(0, 5_000, count),
                "v": rng.random(count),
                "c": words.dictionary_encode(),
                "x": rng.random(count),
                "y": rng.integers(0, 10**9, count),
            }
        )
        writer = writer or pq.ParquetWriter(file, table.schema)
        writer.write_table(table, row_group_size=1 << 20)
    writer.close()


def numbered(file: Path) -> Iterator[pa.RecordBatch]:
    """The columns to sort, with the number of each row."""
    first = 0
    for batch in Scan(file).batches(COLUMNS):
        row = pa.array(range(first, first + len(batch)), pa.int64())
        yield pa.record_batch([*batch.columns, row], names=[*COLUMNS, "row"])
        first += len(batch)


def reader(file: Path) -> pa.RecordBatchReader:
    """The numbered rows as a stream of Arrow."""
    batches = numbered(file)
    first = next(batches)
    return pa.RecordBatchReader.from_batches(
        first.schema, itertools.chain([first], batches)
    )


def by_slidewise(file: Path, memory: int, folder: Path) -> int:
    """By key, time and row number as int64 columns, chunks as in `rolling_file`."""
    sort = SampleSort(folder, ["k", "ticks", "row"], (memory << 20) // 8)
    for batch in numbered(file):
        rows = pa.Table.from_batches([batch])
        sort.add(rows.append_column("ticks", rows["t"].cast(pa.int64())))
    return sum(map(len, sort.sorted()))


def by_duckdb(file: Path, memory: int, folder: Path) -> int:
    """ORDER BY over a stream of Arrow, which DuckDB spills by itself."""
    import duckdb

    config = {"memory_limit": f"{memory}MB", "temp_directory": str(folder)}
    con = duckdb.connect(config=config)
    con.register("r", reader(file))
    ordered = con.sql(f"SELECT * FROM r ORDER BY {', '.join(ORDER)}")
    return sum(map(len, ordered.to_arrow_reader(1 << 16)))


def by_polars(file: Path, _memory: int, folder: Path) -> int:
    """The streaming engine, which has no limit for memory."""
    import polars as pl

    frame = pl.scan_parquet(file).select(COLUMNS).with_row_index("row")
    frame.sort(*ORDER).sink_ipc(folder / "sorted.arrow")
    with pa.memory_map(str(folder / "sorted.arrow")) as source:
        reader = pa.ipc.open_file(source)
        counts = (len(reader.get_batch(n)) for n in range(reader.num_record_batches))
        return sum(counts)


def by_arrow(file: Path, _memory: int, _folder: Path) -> int:
    """Arrow's engine, which has no limit for memory and no spill."""
    from pyarrow import acero

    rows = acero.RecordBatchReaderSourceNodeOptions(reader(file))
    source = acero.Declaration("record_batch_reader_source", rows)
    keys = [(name, "ascending") for name in ORDER]
    ordered = acero.Declaration("order_by", acero.OrderByNodeOptions(keys), [source])
    return sum(map(len, ordered.to_reader()))


def whole(file: Path, memory: int, folder: Path) -> int:
    """`rolling_file`, from file to file."""
    aggs = {"s": sw.sum("v"), "n": sw.count(), "m": sw.max("y")}
    spec = Spec.make(on="t", by="k", windows=["1h", "1d"], aggs=aggs)

    @contextmanager
    def stage(name: str) -> Iterator[object]:
        with measured(name):
            yield lambda _: None

    target = folder / "out.parquet"
    return rolling_file(
        file, target, spec, memory=memory << 20, folder=folder, stage=stage
    )


@contextmanager
def measured(name: str) -> Iterator[None]:
    """Prints the time and memory that the block takes."""
    begin, cpu = time.perf_counter(), time.process_time()
    yield
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_024
    print(
        f"{name}: {time.perf_counter() - begin:.1f} s, "
        f"{time.process_time() - cpu:.1f} s CPU, peak {peak:,.0f} MB",
        flush=True,
    )


def main() -> None:
    """Makes the file if it is missing, else measures one engine."""
    engines = {"slidewise": by_slidewise, "duckdb": by_duckdb, "polars": by_polars}
    engines |= {"arrow": by_arrow, "whole": whole}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engine", choices=engines)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--memory", type=int, default=512, help="in MB")
    parser.add_argument("--file", type=Path, default=Path("target/rows.parquet"))
    options = parser.parse_args()
    if not options.file.exists():
        write_file(options.file, options.rows)
        return print("made the file: run again")
    with (
        tempfile.TemporaryDirectory(dir=options.file.parent) as folder,
        measured(options.engine),
    ):
        rows = engines[options.engine](options.file, options.memory, Path(folder))
    assert rows == pq.ParquetFile(options.file).metadata.num_rows
    return None


if __name__ == "__main__":
    main()
