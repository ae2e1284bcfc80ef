"""Damages snapshots and varies Arrow data at random, for a number of minutes.

    python tests/helpers/fuzz.py --minutes 10 --seed 20260101 --targets keyed,arrow

- `window` and `keyed` damage the bytes of `Window` and `KeyedWindows`, and forge their
  checksums: reading raises a `SlidewiseError`, or gives windows that pass their checks.
- `arrow` passes the same rows in other layouts (slices, chunks, dictionaries, views,
  large offsets, garbage under nulls, only the C stream): answers must be equal.

Cases run in a separate process that may take 4 GiB more memory than at its start: a
crash, a panic, a case that takes half a minute, and more memory are failures. Each is
printed with the command that repeats it.
"""

import argparse
import faulthandler
import itertools
import resource
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import slidewise as sw
from slidewise.window.algorithms import ALGORITHMS

SECONDS = 30  # for one case
MAX_NEW_BYTES = 4 << 30

AGGS: list[Any] = [
    sw.sum(),
    sw.max(),
    sw.collect(),
    sw.median(),
    sw.count_distinct(),
    sw.mode(),
    sw.approx_quantile(0.5),
    sw.heavy_hitters(3),
    {"n": sw.count(), "m": sw.mean(), "s": sw.stddev()},
]


def damaged(chance: Random, blob: bytes, start: int) -> bytearray:
    """Changes, doubles, removes or moves some bytes after the start."""
    out = bytearray(blob)
    for _ in range(chance.choice((1, 1, 2, 5))):
        at = chance.randrange(start, max(len(out), start + 1))
        size = chance.choice((1, 1, 4, 8, 40))
        kind = chance.randrange(6)
        if kind == 0 and at < len(out):
            out[at] ^= 1 << chance.randrange(8)
        elif kind == 1:
            extreme = chance.choice((0, 1, 2**31, 2**32 - 1, 2**61, 2**63, 2**64 - 1))
            out[at : at + 8] = struct.pack("<Q", extreme)[: max(0, len(out) - at)]
        elif kind == 2:
            del out[at : at + size]
        elif kind == 3:
            out[at:at] = out[at : at + size]
        elif kind == 4:
            out[at : at + size] = chance.randbytes(len(out[at : at + size]))
        else:
            other = chance.randrange(start, max(len(out), start + 1))
            out[at : at + size] = out[other : other + len(out[at : at + size])]
    return out


def value(chance: Random, kind: str) -> Any:
    if chance.random() < 0.1:
        return None
    drawn = chance.randrange(-50, 50)
    return {"int": drawn, "float": drawn / 4, "text": str(drawn)}[kind]


def window(chance: Random) -> str:
    agg = chance.choice(AGGS)
    ties = chance.choice(("combine", "keep"))
    algorithm = chance.choice(["auto", "fiba"] * 9 + list(ALGORITHMS))
    kind = chance.choice(("int", "float"))
    try:
        made = sw.Window(agg, algorithm=algorithm, ties=ties)
        for time_ in range(chance.choice((0, 1, 9, 200))):
            made.insert(time_, value(chance, kind))
        blob = made.to_bytes()
    except sw.SlidewiseError:
        return "does not go together"
    out = damaged(chance, blob, 8)
    if chance.random() < 0.9 and len(out) > 4:
        out[-4:] = struct.pack("<I", zlib.crc32(bytes(out[:-4])))
    try:
        read = sw.Window.from_bytes(bytes(out))
        read.check()
        read.query()
        read.insert(read.youngest or 0, value(chance, kind))
        read.evict_until(chance.randrange(200))
        list(read.items())
        read.check()
    except sw.SlidewiseError:
        return "refused"
    except TypeError as error:  # the values are of another kind after the damage
        return f"refused: {type(error).__name__}"
    return "read"


def keyed(chance: Random) -> str:
    aggs = {"a": chance.choice((sw.sum("x"), sw.collect("x"), sw.median("x")))}
    span = chance.choice((5, 1000))
    request: dict[str, Any] = {"on": "t", "by": "k", "windows": span, "aggs": aggs}
    if chance.random() < 0.3:
        request = {"on": "t", "by": "k", "window": 9, "every": 5, "aggs": aggs}
    made = sw.KeyedWindows(**request, late=chance.choice((0, 7)))
    count = chance.choice((1, 30, 2000))
    times = [at + chance.randrange(-5, 1) for at in range(count)]
    keys = [str(chance.randrange(30)) for _ in times]
    values = pa.array([value(chance, "int") for _ in times], pa.int64())
    made.ingest(pa.table({"t": times, "k": keys, "x": values}))
    made.advance()
    made.collect()
    blob = made.to_bytes()
    head = 20 + struct.unpack_from("<Q", blob, 12)[0]
    # Pages have their own checksums: most damage is done before they are computed.
    front = bytes(blob[: head + 400]) if chance.random() < 0.8 else blob
    out = damaged(chance, front, 12) + blob[len(front) :]
    out[8:12] = struct.pack("<I", zlib.crc32(bytes(out[12:])))
    try:
        read = sw.KeyedWindows.from_bytes(bytes(out), **request)
        read.check()
        read.ingest(pa.table({"t": [3000], "k": ["7"], "x": pa.array([1], pa.int64())}))
        read.advance()
        read.collect()
    except sw.SlidewiseError:
        return "refused"
    return "read"


TYPES = [
    *(pa.int8(), pa.uint16(), pa.int64(), pa.float32(), pa.float64(), pa.bool_()),
    *(pa.decimal128(9, 2), pa.date32(), pa.timestamp("ms", "UTC"), pa.duration("s")),
    *(pa.string(), pa.large_string(), pa.binary(), pa.string_view()),
]


def column(chance: Random, dtype: pa.DataType, count: int) -> pa.Array:
    small = [chance.randrange(0, 90) for _ in range(count)]
    some = [None if chance.random() < 0.2 else one for one in small]
    if pa.types.is_boolean(dtype):
        return pa.array([None if one is None else one > 40 for one in some], dtype)
    if dtype in (pa.date32(), pa.duration("s"), pa.timestamp("ms", "UTC")):
        width = pa.int32() if dtype == pa.date32() else pa.int64()
        return pa.array(some, width).cast(dtype)
    if pa.types.is_decimal(dtype) or pa.types.is_primitive(dtype):
        return pa.array(some, pa.int16()).cast(dtype)
    return pa.array([None if one is None else str(one) for one in some]).cast(dtype)


def otherwise(chance: Random, array: pa.Array) -> pa.ChunkedArray:
    """The same values in another layout."""
    if chance.random() < 0.5:  # a slice of a longer array
        front = array.slice(0, chance.randrange(len(array) + 1))
        array = pa.concat_arrays([front, array, front])
        array = array.slice(len(front), len(array) - 2 * len(front))
    if chance.random() < 0.3 and pa.types.is_large_string(array.type):
        array = array.dictionary_encode()
    if chance.random() < 0.3 and pa.types.is_string(array.type):
        array = array.cast(chance.choice((pa.large_string(), pa.string_view())))
    if chance.random() < 0.3 and pa.types.is_integer(array.type):
        # Garbage under nulls.
        there = pa.array([one.is_valid for one in array], pa.bool_())
        values = pc.fill_null(array, pa.scalar(77, array.type)).to_numpy()
        buffers = [there.buffers()[1], pa.py_buffer(values.copy())]
        array = pa.Array.from_buffers(array.type, len(array), buffers)
    cuts = sorted(chance.randrange(len(array) + 1) for _ in range(chance.randrange(3)))
    ends = [0, *cuts, len(array)]
    pairs = itertools.pairwise(ends)
    return pa.chunked_array(
        [array.slice(start, end - start) for start, end in pairs], array.type
    )


class Stream:
    """A table of another library, which exports only the Arrow C stream."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.table.__arrow_c_stream__(requested_schema)


def arrow(chance: Random) -> str:
    count = chance.choice((0, 1, 2, 9, 70, 300))
    times = sorted(chance.randrange(200) for _ in range(count))
    if chance.random() < 0.5:
        chance.shuffle(times)
    plain = pa.table(
        {
            "t": pa.array(times, pa.int64()),
            "k": column(chance, chance.choice(TYPES), count),
            "x": column(chance, chance.choice(TYPES), count),
        }
    )
    names = chance.sample(["count", "max", "first", "collect", "sum", "median"], 2)
    aggs = {name: getattr(sw, name)("x") for name in names}
    layouts = [otherwise(chance, one.combine_chunks()) for one in plain.columns]
    unusual = pa.table(layouts, names=plain.column_names)
    tables = [plain, unusual, Stream(unusual)]

    def answers(table: Any) -> Any:
        try:
            made = sw.rolling(table, on="t", by="k", windows=[9, sw.rows(3)], aggs=aggs)
        except (sw.SlidewiseError, TypeError) as error:
            return type(error)
        return pa.table(made).select([f"{name}_9" for name in names]).to_pydict()

    wanted, *others = map(answers, tables)
    for got in others:
        assert repr(got) == repr(wanted), (unusual.schema, names, got, wanted)
    return "refused" if isinstance(wanted, type) else "read"


TARGETS: dict[str, Callable[[Random], str]] = {
    "window": window,
    "keyed": keyed,
    "arrow": arrow,
}


def child(name: str, seed: str, first: int, seconds: float, log: Path) -> None:
    """Runs cases one after another; the log has the number of the current one."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MAX_NEW_BYTES, used + MAX_NEW_BYTES))
    ends, number, results = time.monotonic() + seconds, first, dict[str, int]()
    while number == first or time.monotonic() < ends:
        log.write_text(str(number))
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        result = TARGETS[name](Random(f"{seed} {name} {number}"))
        results[result] = results.get(result, 0) + 1
        number += 1
    faulthandler.cancel_dump_traceback_later()
    print(f"{name}: {number - first} cases, {results}", flush=True)


def main() -> int:
    """Runs each target for its share of the time; returns 1 if a case failed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--seed", default=time.strftime("%Y%m%d"))
    parser.add_argument("--targets", default=",".join(TARGETS))
    parser.add_argument("--case", type=int, help="one case of one target alone")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    names = given.targets.split(",")
    if given.child:
        child(names[0], given.seed, given.case, given.minutes * 60, given.child)
        return 0
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "case"
        for name in names:
            case, minutes = given.case or 0, given.minutes / len(names)
            ends = time.monotonic() + minutes * 60
            while True:
                left = 0 if given.case else max(0, ends - time.monotonic()) / 60
                command = [sys.executable, __file__, "--targets", name]
                command += ["--seed", given.seed, "--case", str(case)]
                command += ["--minutes", str(left), "--child", str(log)]
                if subprocess.run(command, check=False).returncode == 0:
                    break
                failed += 1
                case = int(log.read_text())
                again = f"--targets {name} --seed {given.seed} --case {case}"
                print(f"FAILED; to repeat: python {__file__} {again}", flush=True)
                case += 1
                if given.case or time.monotonic() > ends:
                    break
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
