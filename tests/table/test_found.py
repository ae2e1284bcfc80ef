"""What hunts for bugs found, one test each: none of it comes back."""

import math
import pickle
import struct
import zlib
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import slidewise as sw
from slidewise.cli import main
from slidewise.io import readers
from slidewise.window.scalar_codec import read_form


def many_or_number(total):
    return total if total < 10 else "many"


def test_answers_that_change_their_type_lose_nothing():
    own = sw.aggregation(combine=lambda a, b: a + b, identity=0, lower=many_or_number)
    keyed = sw.KeyedWindows(on="t", windows=5, aggs={"o": own("x")}, emit="arrival")
    keyed.ingest(pa.table({"t": [1], "x": [1]}))
    with pytest.raises(sw.SpecError, match="returns="):
        keyed.ingest(pa.table({"t": [2], "x": [50]}))
    keyed.ingest(pa.table({"t": [3], "x": [2]}))
    assert keyed.collect()["o_5"].to_pylist() == [1, 3]


@pytest.mark.parametrize("capacity", [10**12, 2**63 - 1])
def test_a_large_capacity_is_grown_into(capacity):
    window = sw.Window(sw.sum(), algorithm="flat_fat", capacity=capacity)
    window.insert_many(range(100_000), [1] * 100_000)
    assert window.query() == 100_000
    assert sw.Window.from_bytes(window.to_bytes()).query() == 100_000


def test_parameters_beyond_int64():
    with pytest.raises(sw.SpecError, match="capacity"):
        sw.Window(sw.sum(), algorithm="flat_fat", capacity=2**64)
    w = sw.Window(sw.sum(), algorithm="daba_late", latency=2**64)
    with pytest.raises(sw.SpecError, match=f"latency={2**64} is too long"):
        w.insert(1, 1)  # which says what it counts
    assert len(w) == 0


def test_more_rows_than_there_can_be():
    with pytest.raises(sw.SpecError, match=r"int from 1 to 2\*\*63 - 1"):
        sw.rows(2**64)


@pytest.mark.parametrize("dtype", [pl.Categorical, pl.Enum(["a", "b"])])
def test_categories_of_polars_in_a_window(dtype):
    window = sw.Window({"last": sw.last("x"), "n": sw.count_distinct("x")})
    window.insert_many(
        [1, 2, 3], pl.DataFrame({"x": pl.Series(["a", "b", "a"], dtype=dtype)})
    )
    assert window.query() == {"last": "a", "n": 2}


def test_objects_of_polars_are_not_their_addresses():
    things = [object(), object()]
    series = pl.Series(things, dtype=pl.Object)
    window = sw.Window(sw.collect())
    window.insert_many([1, 2], series)
    assert window.query() == things
    table = pl.DataFrame({"t": [1, 2], "o": series})
    with pytest.raises(sw.SpecError, match="'o' holds Python objects"):
        sw.rolling(table, on="t", windows=1, aggs={"l": sw.collect("o")})


@pytest.mark.parametrize("missing", [pd.NaT, pd.NA, np.datetime64("NaT"), None])
def test_no_time_is_a_missing_value(missing):
    window = sw.Window({"n": sw.count("x"), "top": sw.max("x")})
    window.insert(0, {"x": pd.Timestamp("2024")})
    window.insert(1, {"x": missing})
    window.insert_many([2, 3], [{"x": missing}, {"x": missing}])
    assert window.query() == {"n": 1, "top": pd.Timestamp("2024")}


def test_a_picture_that_cannot_be_is_left_out():
    window = sw.Window(sw.sum(), algorithm="daba_lite")
    window.insert(1, 2**62)
    window.insert(1, 2**62)
    assert window._repr_svg_() is None
    assert "beyond int64" in repr(window)


@pytest.mark.parametrize(
    ("functions", "message"),
    [
        ({"lower": lambda p: p.pop(), "lift": lambda v: [v]}, "lower made"),
        ({"lift": lambda v: v.append(1) or v}, "lift made"),
    ],
)
def test_functions_that_change_their_argument(functions, message):
    own = sw.aggregation(combine=lambda a, b: a + b, identity=[], **functions)
    with pytest.raises(sw.LawError, match=message):
        sw.check_laws(own, [[1], [2]])


@pytest.mark.parametrize(
    "algorithm", ["btree", "fiba_published", "flat_fat", "reactive"]
)
def test_a_snapshot_with_more_of_the_best_than_there_are(algorithm):
    window = sw.Window(sw.top_k(k=2), algorithm=algorithm, ties="keep")
    window.insert_many([1, 2, 3], [1.0, 2.0, 3.0])
    blob = window.to_bytes()
    (header,) = struct.unpack_from("<I", blob, 12)
    for at in range(24 + header, len(blob) - 12):
        damaged = bytearray(blob)
        struct.pack_into("<Q", damaged, at, 2**61)
        damaged[-4:] = struct.pack("<I", zlib.crc32(bytes(damaged[:-4])))
        try:
            sw.Window.from_bytes(bytes(damaged)).query()
        except sw.SnapshotError:
            continue  # anything else is a panic, which pytest reports


# at=


def test_moments_keep_their_time_of_day():
    table = pa.table({"t": pa.array([0, 1], pa.date32())})
    noon = pa.table({"t": pa.array([86_400 + 43_200], pa.timestamp("s"))})
    midnight = pa.table({"t": pa.array([86_400], pa.timestamp("s"))})
    asked = {"on": "t", "windows": "1d", "aggs": {"n": sw.count()}}
    with pytest.raises(sw.SpecError, match="without loss"):
        sw.rolling(table, at=noon, **asked)
    assert sw.rolling(table, at=midnight, **asked)["n_1d"].to_pylist() == [1]


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (pa.array([True]), pa.array([2])),
        (pa.array([1]), pa.array(["1"])),
        (pa.array([1], pa.date32()), pa.array([86_405], pa.timestamp("s"))),
        (pa.array([1], pa.timestamp("s")), pa.array([1], pa.timestamp("s", "UTC"))),
        (pa.array([1]), pa.array([1.0])),
    ],
)
def test_keys_of_other_kinds_are_not_the_same(ours, theirs):
    table, at = pa.table({"t": [1], "k": ours}), pa.table({"t": [1], "k": theirs})
    with pytest.raises(sw.SpecError, match="cast one of them"):
        sw.rolling(table, on="t", by="k", windows=3, at=at, aggs={"n": sw.count()})


@pytest.mark.parametrize("other", ["a", pd.Categorical(["a"])[0]])
def test_categories_as_keys_at_other_rows(other):
    table = pd.DataFrame({"t": [1, 2], "k": pd.Categorical(["a", "b"])})
    for at in (table, pd.DataFrame({"t": [1], "k": [other]})):
        out = sw.rolling(
            table, on="t", by="k", windows=3, at=at, aggs={"n": sw.count()}
        )
        assert out["n_3"].tolist() == [1] * len(at)


# Tables


def test_units_of_numpy_that_are_not_kept():
    for unit in ("10s", "ps", "M"):
        table = {"t": np.arange(3), "x": np.arange(3).astype(f"M8[{unit}]")}
        with pytest.raises(sw.SpecError, match="in no unit that is kept"):
            sw.rolling(table, on="t", windows=1, aggs={"x": sw.max("x")})
    weeks = {"t": np.arange(2), "x": np.arange(2).astype("M8[W]")}
    out = sw.rolling(weeks, on="t", windows=1, aggs={"x": sw.max("x")})
    assert out["x_1"].tolist() == weeks["x"].astype("M8[s]").tolist()


def test_masked_arrays_stay_exact():
    large = np.ma.masked_array([2**53 + 1, 7, 2**62 + 1], mask=[False, True, False])
    out = sw.rolling(
        {"t": np.arange(3), "x": large}, on="t", windows=1, aggs={"s": sw.sum("x")}
    )
    assert out["s_1"].tolist() == [2**53 + 1, None, 2**62 + 1]


def test_a_column_of_nothing():
    table = pa.table({"t": [1, 2], "x": pa.nulls(2)})
    aggs = {
        "sum": sw.sum("x"),
        "top": sw.max("x"),
        "n": sw.count("x"),
        "m": sw.mode("x"),
    }
    out = sw.rolling(table, on="t", windows=2, aggs=aggs)
    assert out["n_2"].to_pylist() == [0, 0]
    for name in ("sum_2", "top_2", "m_2"):
        assert out[name].to_pylist() == [None, None]


def test_not_a_number_is_one_key_whatever_its_bits():
    keys = pa.array(np.array([math.nan, -math.nan, math.nan]))
    table = pa.table({"t": [1, 2, 3], "k": keys})
    aggs = {"n": sw.count(), "kinds": sw.collect_distinct("k")}
    out = sw.rolling(table, on="t", by="k", windows=5, aggs=aggs)
    assert out["n_5"].to_pylist() == [1, 2, 3]
    assert all(len(kinds) == 1 for kinds in out["kinds_5"].to_pylist())


def test_a_series_is_no_table():
    for series in (pd.Series([1, 2]), pl.Series([1, 2])):
        with pytest.raises(sw.SpecError, match="is not a table"):
            sw.rolling(series, on="t", windows=1, aggs={"n": sw.count()})


@pytest.mark.parametrize("missing", [pd.NA, math.nan])
def test_text_keeps_its_missing_value(missing):
    dtype = pd.StringDtype(na_value=missing)
    table = pd.DataFrame({"t": [1, 2], "x": pd.array(["a", None], dtype=dtype)})
    out = sw.rolling(table, on="t", windows=1, aggs={"x": sw.last("x")})
    assert out["x_1"].dtype == dtype
    assert out["x_1"].isna().tolist() == [False, True]
    hopped = sw.hopping(table, on="t", by="x", window=1, aggs={"n": sw.count()})
    assert hopped["x"].dtype == dtype


def test_half_floats_as_keys():
    table = pa.table({"t": [1, 2, 3], "k": pa.array(np.array([1, 2, 1], np.float16))})
    keyed = sw.KeyedWindows(
        on="t", by="k", windows=5, aggs={"n": sw.count()}, emit="arrival"
    )
    keyed.ingest(table)
    out = sw.rolling(table, on="t", by="k", windows=5, aggs={"n": sw.count()})
    assert keyed.collect()["n_5"].to_pylist() == out["n_5"].to_pylist() == [1, 1, 2]


def test_days_that_end():
    last = pa.array([2**31 - 1], pa.int32()).view(pa.date32())
    with pytest.raises(sw.SpecError, match="beyond the days that column 'd'"):
        sw.hopping(pa.table({"d": last}), on="d", window="1d", aggs={"n": sw.count()})


def test_types_of_polars_that_arrow_lacks():
    table = pl.DataFrame({"t": [1, 2], "x": pl.Series([1, 2], dtype=pl.Int128)})
    with pytest.raises(sw.SpecError, match="'x' holds Int128"):
        sw.rolling(table, on="t", windows=1, aggs={"s": sw.sum("x")})
    out = sw.rolling(table, on="t", windows=1, aggs={"n": sw.count()})
    assert out.schema["x"] == pl.Int128


def test_categories_of_polars_in_lists():
    kind = pl.List(pl.Enum(["a", "b"]))
    table = pl.DataFrame({"t": [1, 2], "x": pl.Series([["a"], ["b", "a"]], dtype=kind)})
    out = sw.rolling(table, on="t", windows=1, aggs={"x": sw.last("x")})
    assert out["x_1"].to_list() == [["a"], ["b", "a"]]
    assert out.schema["x_1"] == kind
    with pytest.raises(sw.SpecError, match="cannot be a key"):
        sw.rolling(table, on="t", by="x", windows=1, aggs={"n": sw.count()})


@pytest.mark.parametrize("empty", [False, True])
def test_more_windows_than_there_can_be(empty):
    table = pa.table({"t": [0, 2**62]})
    asked = {"on": "t", "every": 1, "window": 2**61, "aggs": {"n": sw.count()}}
    with pytest.raises(sw.SpecError, match=r"there are \d{19} windows.* larger every="):
        sw.hopping(table, **asked, empty=empty)


@pytest.mark.parametrize("keys", [[3, 0, 3, 9], [7, 8, 7, 8], [-1, 2, -1, 2]])
def test_whole_numbers_as_keys(keys):
    rows = [*keys, *keys, *keys]
    table = pa.table({"t": range(12), "k": rows, "x": [float(at) for at in range(12)]})
    asked = {"on": "t", "windows": 6, "aggs": {"s": sw.sum("x"), "n": sw.count()}}
    out = sw.rolling(table, by="k", **asked)
    text = table.set_column(1, "k", table["k"].cast(pa.string()))
    assert out.drop(["k"]).equals(sw.rolling(text, by="k", **asked).drop(["k"]))


# Files

ROLL = ["--on", "t", "--window", "3", "--agg", "n=count"]


def test_ids_beyond_int64_in_a_csv(tmp_path, capsys):
    file = tmp_path / "ids.csv"
    file.write_text("t,k\n1,18446744073709551615\n2,18446744073709551614\n")
    assert main.main(["rolling", str(file), *ROLL, "--by", "k"]) == 0
    out = capsys.readouterr().out
    assert "18446744073709551615  1    1" in out
    assert "18446744073709551614  2    1" in out
    file.write_text("t,x\n1,1e19\n2,0.5\n")
    assert readers.read_table(file)["x"].to_pylist() == [1e19, 0.5]
    file.write_text("t,x\n1,1e19\n2,3e18\n")
    assert readers.read_table(file)["x"].to_pylist() == [1e19, 3e18]


@pytest.mark.parametrize("memory", ["unlimited", "1MB"])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("18446744073709551615\n18446744073709551614\n5\n", pa.uint64()),
        ("1e19\n0.5\n1\n", pa.float64()),
        ("18446744073709551615\n-1\n1\n", pa.float64()),
        ("18446744073709551616\n1\n1\n", pa.float64()),
    ],
)
def test_ids_beyond_int64_by_disk(tmp_path, memory, text, expected):
    file, out = tmp_path / "ids.csv", tmp_path / "out.parquet"
    lines = [f"{at},{value}" for at, value in enumerate(text.split())]
    file.write_text("\n".join(["t,x", *lines, ""]))
    given = [*ROLL, "--agg", "top=max:x", "--memory", memory, "-o", str(out), "--quiet"]
    assert main.main(["rolling", str(file), *given]) == 0
    table = readers.read_table(out)
    assert table.schema.field("top_3").type == expected
    first = text.split()[0]
    exact = float(first) if expected == pa.float64() else int(first)
    assert table["top_3"][0].as_py() == exact


@pytest.mark.parametrize("memory", ["unlimited", "1MB"])
@pytest.mark.parametrize("window", ["3", "1h"])
def test_a_csv_without_rows(tmp_path, memory, window):
    file, out = tmp_path / "empty.csv", tmp_path / "out.parquet"
    file.write_text("t,x\n")
    given = ["--on", "t", "--window", window, "--agg", "n=count", "--memory", memory]
    assert main.main(["rolling", str(file), *given, "-o", str(out), "--quiet"]) == 0
    assert readers.read_table(out).column_names == ["t", "x", f"n_{window}"]


@pytest.mark.parametrize("size", ["0", "0MB", "0.1"])
def test_no_memory_at_all(tmp_path, capsys, size):
    file = tmp_path / "rows.csv"
    file.write_text("t\n1\n")
    out = str(tmp_path / "out.parquet")
    assert main.main(["rolling", str(file), *ROLL, "--memory", size, "-o", out]) == 2
    assert f"--memory {size} leaves no memory" in capsys.readouterr().err


def test_an_aggregation_that_is_nearly_one(tmp_path, capsys):
    file = tmp_path / "rows.csv"
    file.write_text("t\n1\n")
    given = ["--on", "t", "--window", "3", "--agg", "n=cout"]
    assert main.main(["rolling", str(file), *given]) == 2
    assert "did you mean 'count'?" in capsys.readouterr().err


def test_a_picture_of_large_whole_times(tmp_path):
    pytest.importorskip("matplotlib")
    file, picture = tmp_path / "rows.csv", tmp_path / "rows.svg"
    rows = [f"{2**60 + 700 * at},{at}" for at in range(20)]
    file.write_text("\n".join(["t,x", *rows, ""]))
    given = ["--on", "t", "--window", "2000", "--agg", "s=sum:x", "--quiet"]
    out = ["-o", str(tmp_path / "out.csv"), "--plot", str(picture)]
    assert main.main(["rolling", str(file), *given, *out]) == 0
    assert picture.stat().st_size > 0


@pytest.mark.parametrize("by_disk", [[], ["--memory", "1MB", "-o"]])
def test_columns_of_one_name_in_a_file(tmp_path, capsys, by_disk):
    file = tmp_path / "twice.csv"
    file.write_text("t,x,x\n1,1,2\n")
    if by_disk:
        by_disk = [*by_disk, str(tmp_path / "out.parquet")]
    assert main.main(["rolling", str(file), *ROLL, *by_disk]) == 2
    assert "has 2 columns 'x'" in capsys.readouterr().err


@pytest.mark.parametrize(
    "text",
    [
        '[{"t": 1, "x": 18446744073709551615}]',
        '[{"t": 1, "x": "\\ud800"}]',
        "[" * 100_000,
    ],
)
def test_json_that_cannot_be_held(tmp_path, capsys, text):
    file = tmp_path / "odd.json"
    file.write_text(text)
    assert main.main(["rolling", str(file), *ROLL]) == 2
    assert "cannot be read as JSON" in capsys.readouterr().err


@pytest.mark.parametrize("output", ["nowhere/out.csv", "out.xyz", "out.csv.gz"])
def test_outputs_are_looked_at_first(tmp_path, capsys, output):
    missing = tmp_path / "there-is-no-such.csv"
    given = [str(missing), *ROLL, "-o", str(tmp_path / output)]
    assert main.main(["rolling", *given]) == 2
    assert "there-is-no-such" not in capsys.readouterr().err


@pytest.mark.parametrize(
    "values",
    [
        [Decimal("1.50"), Decimal("-2E+7"), Decimal("0.1")],
        [timedelta(days=-1, microseconds=5), timedelta(hours=3)],
        [Fraction(-1, 3), Fraction(10**40, 7)],
        [("a", Decimal(1)), ("b", Decimal(2))],
    ],
)
def test_objects_of_the_standard_library_go_into_snapshots(values):
    aggs = {"all": sw.collect("x"), "top": sw.max("x"), "kinds": sw.count_distinct("x")}
    window = sw.Window(aggs)
    window.insert_many(range(len(values)), [{"x": value} for value in values])
    for again in (
        sw.Window.from_bytes(window.to_bytes()),
        pickle.loads(pickle.dumps(window)),
    ):
        assert again.query() == window.query()
        assert again.query()["all"] == values
        assert again.to_bytes() == window.to_bytes()


def test_what_has_no_form_names_a_way_that_is_there():
    window = sw.Window(sw.max())
    window.insert(1, pd.Timestamp("2024"))
    with pytest.raises(sw.SnapshotError, match="convert the values"):
        window.to_bytes()


@pytest.mark.parametrize(
    "text", ["d1 2", "d9999999999 0 0", "nspam", "q1/0", "q1", "x"]
)
def test_forms_that_are_none(text):
    with pytest.raises(sw.SnapshotError):
        read_form(text)


def test_keyed_windows_are_checked_when_they_are_made():
    given = {"on": "t", "windows": 5, "aggs": {"n": sw.count()}}
    with pytest.raises(sw.SpecError, match="emit='all' does not fit rolling"):
        sw.KeyedWindows(**given, emit="all")
    with pytest.raises(sw.SpecError, match="on=, windows=, aggs=, is missing"):
        sw.KeyedWindows()
    with pytest.raises(sw.SpecError, match="a Spec, or aggs=, is missing"):
        sw.KeyedWindows(on="t", window=5)


WORDS = ["b", "a", None, "c", "a", "b"]


@pytest.mark.parametrize(
    "column",
    [
        pa.array(WORDS).dictionary_encode(),
        pd.Series(pd.Categorical(WORDS, categories=["c", "zz", "b", "a"])),
        pl.Series(WORDS, dtype=pl.Categorical),
        pl.Series(WORDS, dtype=pl.Enum(["a", "b", "c"])),
    ],
    ids=["arrow", "pandas", "categorical", "enum"],
)
def test_codes_of_a_dictionary_are_the_text_they_stand_for(column):
    aggs = {
        "min": sw.min("x"),
        "mode": sw.mode("x"),
        "best": sw.top_k("x", k=2),
        "joined": sw.concat("x"),
        "last": sw.last("x"),
        "n": sw.count_distinct("x"),
    }
    times = list(range(6))
    makes = {pd.Series: pd.DataFrame, pl.Series: pl.DataFrame}
    table = makes.get(type(column), pa.table)({"t": times, "x": column})
    plain = pa.table({"t": times, "x": WORDS})

    def listed(answers):
        answers = answers if isinstance(answers, pa.Table) else pl.DataFrame(answers)
        rows = answers.select([f"{name}_3" for name in aggs])
        return pa.table(rows).to_pylist()

    expected = sw.rolling(plain, on="t", windows=3, aggs=aggs)
    answers = sw.rolling(table, on="t", windows=3, aggs=aggs)
    assert listed(answers) == listed(expected)
    assert type(answers) is type(table)
    if isinstance(table, pa.Table):
        assert answers.schema.field("min_3").type == column.type
    else:
        assert answers["min_3"].dtype == column.dtype
    kind = pa.table(table)["x"].type
    if pa.types.is_dictionary(kind) and kind.ordered:
        for compares in ("min", "mode", "best"):
            del aggs[compares]
    keyed = sw.KeyedWindows(on="t", windows=3, aggs=aggs)
    keyed.ingest(table)
    keyed.advance()
    assert listed(keyed.collect()) == listed(expected)


def test_columns_that_arrow_has_no_type_for():
    wide = pl.DataFrame({"t": [1, 2], "x": pl.Series([1, 2], dtype=pl.Int128)})
    sparse = pd.DataFrame({"t": [1, 2], "x": pd.arrays.SparseArray([1, 2])})
    for table in (wide, sparse):
        for window, values in [
            (sw.Window(sw.sum()), table["x"]),
            (sw.Window(sw.sum("x")), table),
        ]:
            window.insert_many([1, 2], values)
            assert window.query() == 3
    assert list(sw.rolling(sparse, on="t", windows=5, aggs={"s": sw.sum("x")}).s_5) == [
        1,
        3,
    ]
    complexes = pd.DataFrame({"t": [1, 2], "x": [1j, 2j]})
    for table in (wide, complexes, {"t": np.arange(2), "x": np.array([1j, 2j])}):
        with pytest.raises(sw.SpecError, match="column 'x' "):
            sw.rolling(table, on="t", windows=5, aggs={"s": sw.sum("x")})
        with pytest.raises(sw.SpecError, match="column 'x' "):
            sw.KeyedWindows(on="t", windows=5, aggs={"s": sw.sum("x")}).ingest(table)
    window = sw.Window(sw.first())
    window.insert_many([1, 2], complexes["x"])
    assert window.query() == 1j


def test_a_confidence_of_one():
    with pytest.raises(sw.SpecError, match=r"0\.5 up, below 1, got 1"):
        sw.count_min("x", confidence=1)
