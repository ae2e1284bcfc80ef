"""Files as people write them: what is read follows from the rules, not the reader.

`test_odd_files` writes tables of text in odd ways (delimiters, quotes, byte order
marks, line ends, encodings, blank lines, compression) and compares what the command
makes of them, in memory and on disk, with an oracle of the rules for numbers in text.
"""

import gzip
import json
import random
import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from seeds import SEED

from slidewise.cli import main
from slidewise.io import out_of_core

FILES = 40
WINDOW = 5
WORDS = ["a", "b;c", 'q"uote', "two\nlines", "é", "x|y", "tab\there", "comma,", "ab"]
INTEGERS = ["0", "7", "-5", "12", "9007199254740993"]
KINDS = {
    "small": INTEGERS[:4],
    "int64": [*INTEGERS, "9223372036854775807", "-9223372036854775808"],
    "uint64": ["1", "9223372036854775808", "18446744073709551615"],
    "signed": ["-1", "9223372036854775809", "9223372036854775810"],
    "huge": ["5", "45395787636214861234", "45395787636214861235"],
    "negative": ["5", "-9223372036854775809", "-9223372036854775810"],
    "long": ["9" * 500, "9" * 499 + "8", "1"],
    "fraction": ["0.5", "1.25", "3"],
    "wide": ["0.5", "9007199254740993", "9007199254740992", "18446744073709551615"],
    "mixed": ["0.5", "18446744073709551616", "18446744073709551617"],
    "words": WORDS,
}
ZEROS = ["00123", "123", "0123"]


class BeyondError(Exception):
    """A value that no type holds."""


def oracle(texts: list[str | None], *, is_key: bool, is_text: bool) -> list[Any]:
    """The values of a column of text, by the rules."""
    held = [text for text in texts if text is not None]
    if is_text or not all(re.fullmatch(r"[+-]?\d+([.,]\d+)?", text) for text in held):
        return texts
    exact = [text for text in held if not re.search("[.,]", text)]
    integers = [int(text) for text in exact]
    signed = all(-(2**63) <= each < 2**63 for each in integers)
    unsigned = all(0 <= each < 2**64 for each in integers)
    if len(exact) == len(held):
        if signed or unsigned:
            return [None if text is None else int(text) for text in texts]
        if is_key:
            return texts
        bad = [each for each in integers if not -(2**63) <= each < 2**64]
        bad = bad or [each for each in integers if each >= 2**63]
        raise BeyondError(
            next(t for t, n in zip(exact, integers, strict=True) if n in bad)
        )
    if is_key and any(abs(each) > 2**53 for each in integers):
        return texts
    for text, each in zip(exact, integers, strict=True):
        if not is_key and not -(2**63) <= each < 2**64:
            raise BeyondError(text)
    return [text and float(text.replace(",", ".")) for text in texts]


def counts(times: list[int], keys: list[Any]) -> list[int]:
    """The rows of each row's key in (t − WINDOW, t]."""
    rows = list(zip(times, keys, strict=True))
    return [
        sum(key == other and time - WINDOW < at <= time for at, other in rows)
        for time, key in rows
    ]


def as_csv(
    rng: random.Random, rows: list[dict[str, str | None]], options: dict[str, Any]
) -> str:
    delimiter = options["delimiter"]
    end = rng.choice(["\n", "\r\n"])

    def field(text: str | None) -> str:
        if text is None:
            return str(rng.choice(options["missing"]))
        special = re.search(r'[",;|\t\r\n]', text) or text in ("", "NA", "-")
        if special or rng.random() < 0.2:
            return '"' + text.replace('"', '""') + '"'
        return text

    lines = [delimiter.join(map(field, rows[0]))]
    lines += [delimiter.join(map(field, row.values())) for row in rows]
    blank = [""] * rng.choice([0, 0, 2])
    for _ in range(rng.choice([0, 3])):
        lines.insert(rng.randrange(1, len(lines) + 1), "")
    return end.join([*blank, *lines]) + end * rng.choice([0, 1, 2])


def as_json(rng: random.Random, rows: list[dict[str, str | None]], form: str) -> str:
    end = rng.choice(["\n", "\r\n"])

    def value(text: str) -> str:
        is_number = re.fullmatch(r"-?\d+(\.\d+)?", text)
        return text if is_number else json.dumps(text, ensure_ascii=False)

    def item(row: dict[str, str | None]) -> str:
        space = rng.choice(["", " ", "  "])
        pairs = []
        for name, text in row.items():
            if text is not None:
                pairs.append(f"{json.dumps(name)}:{space}{value(text)}")
            elif row is rows[0] or rng.random() < 0.5:
                pairs.append(f'"{name}":null')
        return "{" + f",{space}".join(pairs) + "}"

    items = [item(row) for row in rows]
    if form == "jsonl":
        for _ in range(rng.choice([0, 3])):
            items.insert(rng.randrange(len(items) + 1), "")
        return end.join(items) + end * rng.choice([0, 1, 2])
    inner = rng.choice([",", f",{end}", f"{end} , "]).join(items)
    return f"{rng.choice(['', end, '  '])}[{inner}{end}]{end}"


def with_comma(text: str | None) -> str | None:
    return text and re.sub(r"^(\d+)\.(\d+)$", r"\1,\2", text)


def column(rng: random.Random, kind: str, count: int) -> list[str | None]:
    texts = KINDS.get(kind, ZEROS)
    return [rng.choice(texts) if rng.random() < 0.9 else None for _ in range(count)]


def random_file(
    rng: random.Random, folder: Path
) -> tuple[Path, list[dict[str, str | None]], list[str]]:
    """A file, its rows as text, and the options that it needs."""
    form = rng.choice(["csv", "csv", "csv", "jsonl", "json"])
    kinds = [*KINDS, "zeros"] if form == "csv" else list(KINDS)
    count = rng.choice([1, 3, 150])
    columns = {
        "t": [str(rng.randrange(60)) for _ in range(count)],
        "k": column(rng, rng.choice(kinds), count),
        "a,b;c": column(rng, "small", count),
        "x": column(rng, rng.choice(kinds), count),
    }
    rows = [
        dict(zip(columns, row, strict=True))
        for row in zip(*columns.values(), strict=True)
    ]
    given: list[str] = []
    for name in ("k", "x"):
        if rng.random() < 0.2:
            given += ["--text", name]
    encoding = rng.choice(["utf-8", "utf-8-sig", "latin-1", "utf-16"])
    if encoding in ("latin-1", "utf-16"):
        given += ["--encoding", encoding]
    name = form
    if form == "csv":
        options: dict[str, Any] = {
            "delimiter": rng.choice(",;|\t"),
            "decimal": rng.choice([".", ","]),
            "missing": rng.choice([["", "NA", "null"], ["", "-"]]),
        }
        if options["delimiter"] == ",":
            options["decimal"] = "."
        if options["decimal"] == ",":
            given += ["--decimal", ","]
            for row in rows:
                row |= {name: with_comma(text) for name, text in row.items()}
        if "-" in options["missing"]:
            given += ["--missing", "-"]
        if rng.random() < 0.3:
            given += ["--delimiter", options["delimiter"]]
        text = as_csv(rng, rows, options)
        name = rng.choice(["csv", "txt"] + ["tsv"] * (options["delimiter"] == "\t"))
    else:
        text = as_json(rng, rows, form)
    file = folder / f"in.{name}{rng.choice(['', '', '.gz'])}"
    data = text.encode(encoding)
    file.write_bytes(gzip.compress(data, 1) if file.suffix == ".gz" else data)
    return file, rows, given


@pytest.mark.parametrize("number", range(FILES))
def test_odd_files(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    number: int,
) -> None:
    monkeypatch.setattr(out_of_core, "_MIN_BLOCK", 1 << 12)
    rng = random.Random(f"{SEED} {number}")
    file, rows, given = random_file(rng, tmp_path)
    texts = {name: [row[name] for row in rows] for name in rows[0]}
    command = ["rolling", str(file), "--on", "t", "--by", "k", "--window", str(WINDOW)]
    command += ["--agg", "n=count", "--quiet", *given]
    expected: dict[str, list[Any]] = {}
    bad = None
    try:
        for name in ("k", "x"):
            is_text = name in given
            values = oracle(texts[name], is_key=name == "k", is_text=is_text)
            expected[name] = values
    except BeyondError as error:
        bad = str(error)
    for memory in ("unlimited", "1MB"):
        if memory != "unlimited" and ".json" in file.suffixes:
            continue
        out = tmp_path / f"{memory}.parquet"
        code = main.main([*command, "--memory", memory, "-o", str(out)])
        printed = capsys.readouterr().err
        about = f"SLIDEWISE_SEED={SEED}, file {number}: {' '.join(command)}: {printed}"
        if bad is not None:
            row = texts["x"].index(bad)
            wanted = f"column 'x' holds {bad} in row {row} (counting from 0)"
            assert (code, wanted in printed) == (2, True), about
            assert "--text x" in printed, about
            continue
        assert code == 0, about
        table = pq.read_table(out)
        for name, values in expected.items():
            assert table[name].to_pylist() == values, about
        times = [int(row["t"] or 0) for row in rows]
        assert table["n_5"].to_pylist() == counts(times, expected["k"]), about
