"""Writes files of random payments, as the service reads them.

    python examples/serving/payments.py FEED [--files 10] [--rows 5000]

A file has the payments of five minutes, some up to four minutes late. It is written
under another name and then renamed, so that the service never reads a part of it.
"""

import argparse
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["START", "payments", "write"]

# The first time, in seconds since 1970.
START = 1_700_000_000
_LATE = 240


def payments(number: int, rows: int, cards: int) -> pa.Table:
    """The payments of a file, which its number decides."""
    draw = random.Random(number)
    begin = START + number * 300
    times = [
        begin + draw.randrange(300) - draw.choice([0, 0, _LATE]) for _ in range(rows)
    ]
    return pa.table(
        {
            "t": pa.array([time * 10**6 for time in times], pa.timestamp("us", "UTC")),
            "card": [f"c{draw.randrange(cards)}" for _ in range(rows)],
            "amount": [round(draw.random() * 100, 2) for _ in range(rows)],
        }
    )


def write(table: pa.Table, folder: Path, number: int) -> None:
    """Writes a file of the feed as a whole."""
    hidden = folder / f"{number:06}.part"
    pq.write_table(table, hidden)
    hidden.rename(folder / f"{number:06}.parquet")


def main() -> None:
    """Writes some files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("feed", type=Path, help="a folder, which is created")
    parser.add_argument("--files", type=int, default=10)
    parser.add_argument("--rows", type=int, default=5_000)
    parser.add_argument("--cards", type=int, default=10_000)
    options = parser.parse_args()
    options.feed.mkdir(parents=True, exist_ok=True)
    for number in range(options.files):
        table = payments(number, options.rows, options.cards)
        write(table, options.feed, number)


if __name__ == "__main__":
    main()
