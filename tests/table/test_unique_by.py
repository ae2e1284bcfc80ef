"""Rows that count once, by `unique_by=`, against the definition."""

import random

import pyarrow as pa
import pytest
from seeds import SEED

import slidewise as sw
from slidewise.cli.main import main

AGGS = {"n": sw.count(), "sum": sw.sum("x"), "all": sw.collect("x")}


def random_rows(draw, count):
    """Rows of which some come twice, as they were or with another time."""
    rows = []
    for at in range(count):
        row = {
            "t": draw.randrange(count // 2),
            "k": draw.choice(["a", "b", None]),
            "id": None if draw.random() < 0.1 else at,
            "part": draw.choice("xy"),
            "x": draw.randrange(9),
            "a": draw.randrange(count),
        }
        if rows and draw.random() < 0.2:
            row = {**draw.choice(rows), "a": row["a"]}
            row["t"] += draw.choice([0, 0, 3])
            row["x"] = at
        rows.append(row)
    return rows


def counting(rows, by, ids, arrival=None):
    """The numbers of the rows that count: the first of each key and id to arrive."""
    order = range(len(rows))
    if arrival is not None:
        order = sorted(order, key=lambda at: rows[at][arrival])
    seen, found = set(), set()
    for at in order:
        row = rows[at]
        known = tuple(row[name] for name in (*by, *ids))
        if any(row[name] is None for name in ids) or known not in seen:
            found.add(at)
        seen.add(known)
    return found


@pytest.mark.parametrize("ids", [["id"], ["id", "part"]])
@pytest.mark.parametrize("by", [[], ["k"]])
@pytest.mark.parametrize("arrival", [None, "a"])
def test_the_first_to_arrive_counts(ids, by, arrival):
    for seed in range(SEED, SEED + 8):
        draw = random.Random(seed)
        rows = random_rows(draw, 60)
        table = pa.Table.from_pylist(rows)
        counts = counting(rows, by, ids, arrival)
        spec = sw.Spec(
            on="t", by=by, windows=[5, 20], aggs=AGGS, arrival=arrival, unique_by=ids
        )
        found = sw.rolling(table, spec).to_pylist()
        for at, (row, given) in enumerate(zip(rows, found, strict=True)):
            for length in (5, 20):
                held = [
                    other
                    for other in range(len(rows))
                    if other in counts
                    and all(rows[other][name] == row[name] for name in by)
                    and row["t"] - length < rows[other]["t"] <= row["t"]
                    and (arrival is None or rows[other][arrival] <= row[arrival])
                ]
                values = [rows[other]["x"] for other in held]
                where = (seed, at, length)
                assert given[f"n_{length}"] == len(values), where
                assert given[f"sum_{length}"] == (sum(values) if values else None)
                assert sorted(given[f"all_{length}"] or []) == sorted(values), where
        # Rows that count have the results of a table without the others.
        alone = sw.rolling(
            table.take(sorted(counts)), spec.replace(unique_by=None)
        ).to_pylist()
        assert [found[at] for at in sorted(counts)] == alone, seed


def test_hopping_windows_hold_a_row_once():
    for seed in range(SEED, SEED + 8):
        rows = random_rows(random.Random(seed), 60)
        table = pa.Table.from_pylist(rows)
        counts = sorted(counting(rows, ["k"], ["id"]))
        for windows in ({"window": 6, "every": 2}, {"window": sw.session(2)}):
            spec = sw.Spec(on="t", by="k", aggs=AGGS, unique_by="id", **windows)
            alone = sw.hopping(table.take(counts), spec.replace(unique_by=None))
            assert sw.hopping(table, spec).equals(alone), seed


def test_an_id_is_one_per_key_and_a_missing_id_none():
    ids = [7, 7, 7, None, None]
    table = pa.table({"t": [1, 1, 1, 1, 1], "k": [*"aabbb"], "id": ids})
    out = sw.rolling(
        table, on="t", by="k", windows=5, aggs={"n": sw.count()}, unique_by="id"
    )
    assert out["n_5"].to_pylist() == [1, 1, 3, 3, 3]


def test_of_equal_arrivals_the_first_in_the_table_counts():
    table = pa.table({"t": [1, 1, 1], "a": [5, 4, 4], "id": [7, 7, 7], "x": [1, 2, 3]})
    out = sw.rolling(
        table,
        on="t",
        windows=5,
        aggs={"x": sw.collect("x")},
        arrival="a",
        unique_by="id",
    )
    assert out["x_5"].to_pylist() == [[2], [2], [2]]


def test_windows_that_need_a_row_give_duplicates_none():
    table = pa.table({"t": [1, 2, 3], "x": [1.0, 2.0, 9.0], "id": [7, 8, 7]})
    windows = [sw.delta("x", 5.0), sw.rows(2), 9]
    out = sw.rolling(
        table, on="t", windows=windows, aggs={"n": sw.count()}, unique_by="id"
    )
    first, *others = out.column_names[-3:]
    assert out[first].to_pylist() == [1, 2, None]
    assert [out[name].to_pylist() for name in others] == [[1, 2, 2], [1, 2, 2]]


def test_labels_are_answered_from_rows_that_count():
    table = pa.table({"t": [1, 1, 2], "k": [*"aaa"], "id": [7, 7, 8]})
    labels = pa.table({"t": [1, 1, 3], "k": [*"aaa"]})
    out = sw.rolling(
        table,
        on="t",
        by="k",
        windows=5,
        aggs={"n": sw.count()},
        unique_by="id",
        at=labels,
    )
    assert out["n_5"].to_pylist() == [1, 1, 2]


def test_specs_of_features_have_ids_of_their_own():
    table = pa.table({"t": [1, 1, 2], "k": [*"aba"], "id": [7, 7, 7]})
    spec = sw.Spec(on="t", windows=5, aggs={"n": sw.count()}, unique_by="id")
    of_all = spec.replace(unique_by=None)
    features = sw.Features(every=of_all, once=spec, key=spec.replace(by="k"))
    out = sw.rolling(table, features)
    assert out["every_n_5"].to_pylist() == [2, 2, 3]
    assert out["once_n_5"].to_pylist() == [1, 1, 1]
    assert out["key_n_5"].to_pylist() == [1, 1, 1]


def test_frames_keep_their_rows_and_types():
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    columns = {"t": [1, 1, 2], "id": ["p", "p", "q"], "x": [1.5, 1.5, 2.0]}
    given = {"on": "t", "windows": 5, "aggs": {"x": sw.sum("x")}, "unique_by": "id"}
    rows = sw.rolling(pd.DataFrame(columns, index=[5, 6, 7]), **given)
    assert rows["x_5"].to_dict() == {5: 1.5, 6: 1.5, 7: 3.5}
    for rows in (pl.DataFrame(columns), pl.LazyFrame(columns)):
        found = sw.rolling(rows, **given).lazy().collect()
        assert found["x_5"].to_list() == [1.5, 1.5, 3.5]


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ("idd", "no column 'idd'.*Did you mean 'id'"),
        (3, "unique_by= takes a column or a list of columns, got 3"),
        ("m", r"column 'm' \(map<string, int64>\) cannot be a key"),
    ],
)
def test_ids_are_columns_of_values(ids, message):
    pairs = pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64()))
    table = pa.table({"t": [1], "id": [1], "m": pairs})
    with pytest.raises(sw.SpecError, match=message):
        sw.rolling(table, on="t", windows=5, aggs={"n": sw.count()}, unique_by=ids)


def test_messages_name_rows_of_the_whole_table():
    big = 2**62
    table = pa.table(
        {"t": [1, 1, 1, 2, 2], "id": [1, 1, 2, 3, 3], "x": [1, 1, big, big, big]}
    )
    with pytest.raises(sw.ResultOverflowError, match="row 3 "):
        sw.rolling(table, on="t", windows=5, aggs={"s": sw.sum("x")}, unique_by="id")
    floats = table.set_column(2, "x", pa.array([1.0, 1.0, float("nan"), 1.0, 1.0]))
    with pytest.raises(sw.SpecError, match="row 2 "):
        sw.rolling(
            floats,
            on="t",
            windows=5,
            aggs={"s": sw.sum("x")},
            unique_by="id",
            nan="raise",
        )


def test_a_spec_keeps_its_ids():
    spec = sw.Spec(on="t", windows=5, aggs={"n": sw.count()}, unique_by="id")
    assert spec.columns == ("t", "id")
    assert sw.Spec.from_json(spec.to_json()) == spec
    assert '"unique_by": "id"' in spec.to_json()
    assert spec.hash != spec.replace(unique_by=None).hash


def test_the_command_takes_ids(tmp_path, capsys):
    file = tmp_path / "in.csv"
    file.write_text("t,id,part\n1,7,a\n1,7,a\n1,7,b\n")
    given = [str(file), "--on", "t", "--window", "5", "--agg", "n=count"]
    ids = ["--unique-by", "id", "--unique-by", "part"]
    out = tmp_path / "out.csv"
    main(["rolling", *given, *ids, "-o", str(out), "--quiet"])
    assert [line.split(",")[-1] for line in out.read_text().split()[1:]] == ["2"] * 3
    windows = tmp_path / "windows.csv"
    main(["hopping", *given, *ids, "--every", "5", "-o", str(windows), "--quiet"])
    assert windows.read_text().split()[1:] == ["0,5,2"]
    code = main(["rolling", *given, *ids, "-o", str(out), "--memory", "200MB"])
    assert code != 0
    assert "--memory unlimited" in capsys.readouterr().err
