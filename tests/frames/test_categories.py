"""Dictionaries of Arrow, categories of pandas, and Categorical and Enum of polars."""

from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import slidewise as sw


def test_categories_of_polars_in_lists():
    kind = pl.List(pl.Enum(["a", "b"]))
    table = pl.DataFrame({"t": [1, 2], "x": pl.Series([["a"], ["b", "a"]], dtype=kind)})
    out = sw.rolling(table, on="t", windows=1, aggs={"x": sw.last("x")})
    assert out["x_1"].to_list() == [["a"], ["b", "a"]]
    assert out.schema["x_1"] == kind
    with pytest.raises(sw.SpecError, match="cannot be a key"):
        sw.rolling(table, on="t", by="x", windows=1, aggs={"n": sw.count()})


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
def test_dictionaries_answer_like_their_values(column):
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
    if getattr(column, "dtype", None) == pl.Enum:
        for compares in ("min", "mode", "best"):
            del aggs[compares]
    keyed = sw.KeyedWindows(on="t", windows=3, aggs=aggs)
    keyed.ingest(table)
    keyed.advance()
    assert listed(keyed.collect()) == listed(expected)


def ordered_columns() -> list[Any]:
    names = ["small", "medium", "large"]
    values = ["small", "large", "medium", "large"]
    category = pd.Categorical(values, categories=names, ordered=True)
    return [
        pd.DataFrame({"t": [1, 2, 3, 4], "x": category}),
        pl.DataFrame({"t": [1, 2, 3, 4], "x": pl.Series(values, dtype=pl.Enum(names))}),
        pa.table({"t": [1, 2, 3, 4], "x": pa.Array.from_pandas(category)}),
    ]


@pytest.mark.parametrize("table", ordered_columns(), ids=["pandas", "polars", "Arrow"])
def test_categories_go_by_the_order_they_declare(table: Any) -> None:
    aggs = {
        "max": sw.max("x"),
        "min": sw.min("x"),
        "top": sw.top_k("x", 2),
        "where": sw.arg_max("t", by="x"),
        "times": sw.max_count("x"),
    }
    got = sw.rolling(table, on="t", windows=3, aggs=aggs)
    column = {name: list(got[f"{name}_3"]) for name in aggs}
    column = {
        n: [getattr(v, "as_py", lambda v=v: v)() for v in c] for n, c in column.items()
    }
    assert column["max"] == ["small", "large", "large", "large"]
    assert column["min"] == ["small", "small", "small", "medium"]
    assert [list(best) for best in column["top"]] == [
        ["small"],
        ["large", "small"],
        ["large", "medium"],
        ["large", "large"],
    ]
    assert column["where"] == [1, 2, 2, 2]
    assert column["times"] == [1, 1, 1, 2]


@pytest.mark.parametrize("dtype", [pl.Categorical, pl.Enum(["a", "b"])])
def test_categories_of_polars_in_a_window(dtype):
    window = sw.Window({"last": sw.last("x"), "n": sw.count_distinct("x")})
    window.insert_many(
        [1, 2, 3], pl.DataFrame({"x": pl.Series(["a", "b", "a"], dtype=dtype)})
    )
    assert window.query() == {"last": "a", "n": 2}
