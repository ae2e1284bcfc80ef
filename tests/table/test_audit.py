"""Features as they were served, beside those that their rows give."""

import datetime as dt
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import slidewise as sw

SPEC = sw.Spec(
    on="t",
    by="card",
    windows=[10, sw.rows(2)],
    aggs={"n": sw.count(), "sum": sw.sum("x")},
)
# The row at 5 arrived last.
ROWS = {
    "t": [1, 5, 8, 9],
    "card": ["A", "A", "A", "B"],
    "x": [1.5, 2.0, 4.0, None],
    "came": [1, 20, 8, 9],
}
SERVED = {
    "id": [7, 8, 9, 10],
    "card": ["A", "A", "B", "C"],
    "when": [2, 9, 9, 9],
    "sent": [3, 10, 10, 10],
    "n_10": [1, 2, 1, 0],
    "sum_10": [1.5, 5.5, None, None],
    "n_2rows": [1, 2, 1, 1],
    "sum_2rows": [1.5, 6.0, None, None],
}


def audited(served: Any, rows: Any) -> Any:
    return sw.audit(served, rows, SPEC, at="when", served_at="sent", arrival="came")


EXPECTED = {
    "n_10": ([1, 3, 1, 0], [1, 2, 1, 0], "elee"),
    "sum_10": ([1.5, 7.5, None, None], [1.5, 5.5, None, None], "elee"),
    "n_2rows": ([1, 2, 1, 0], [1, 2, 1, 0], "eeed"),
    "sum_2rows": ([1.5, 6.0, None, None], [1.5, 5.5, None, None], "eeee"),
}
REASONS = {"e": "equal", "l": "arrived later", "d": "differs"}
TOTALS = {
    name: {each: letters.count(letter) for letter, each in REASONS.items()}
    for name, (_, _, letters) in EXPECTED.items()
}


def assert_audited(columns: Callable[[str], list[Any]], names: list[str]) -> None:
    added = [
        f"{name}_{end}" for name in EXPECTED for end in ("expected", "as_of", "reason")
    ]
    assert names == [*SERVED, *added]
    for name, values in SERVED.items():
        assert columns(name) == values
    for name, (expected, as_of, letters) in EXPECTED.items():
        assert columns(f"{name}_expected") == expected
        assert columns(f"{name}_as_of") == as_of
        assert columns(f"{name}_reason") == [REASONS[each] for each in letters]


def test_an_arrow_table_gets_three_columns_per_feature_and_totals() -> None:
    served = pa.table(SERVED).replace_schema_metadata({"of": "the table"})
    out = audited(served, pa.table(ROWS))
    assert_audited(lambda name: out[name].to_pylist(), out.column_names)
    assert json.loads(out.schema.metadata[b"audit"]) == TOTALS
    assert out.schema.metadata[b"of"] == b"the table"


def test_a_record_batch_comes_back_as_one() -> None:
    out = audited(pa.RecordBatch.from_pydict(SERVED), pa.table(ROWS))
    assert isinstance(out, pa.RecordBatch)
    assert_audited(lambda name: out[name].to_pylist(), out.schema.names)
    assert json.loads(out.schema.metadata[b"audit"]) == TOTALS


@pytest.mark.parametrize("lazy", [False, True])
def test_a_polars_frame_comes_back_as_one(lazy: bool) -> None:
    """A LazyFrame stays lazy."""
    frame = pl.DataFrame(SERVED)
    out = audited(frame.lazy() if lazy else frame, pl.LazyFrame(ROWS))
    assert isinstance(out, pl.LazyFrame) == lazy
    out = out.lazy().collect()
    assert_audited(lambda name: out[name].to_list(), out.columns)


def test_a_pandas_frame_has_totals_in_its_attributes() -> None:
    """Features with NaN for null are equal, and the index stays."""
    served = pd.DataFrame(SERVED, index=[3, 1, 4, 2])
    served.attrs["of"] = "the frame"
    out = audited(served, pd.DataFrame(ROWS))

    def column(name: str) -> list[Any]:
        values = out[name].tolist()
        return [None if value is pd.NA or value != value else value for value in values]

    assert_audited(column, [*out.columns])
    assert out.attrs == {"of": "the frame", "audit": TOTALS}
    assert served.attrs == {"of": "the frame"}
    assert out.index.tolist() == [3, 1, 4, 2]


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_a_frame_gives_a_summary(library: Any) -> None:
    found = audited(library(SERVED), library(ROWS)).summary()
    assert isinstance(found, library)
    assert {name: [*found[name]] for name in found.columns} == {
        "feature": [*TOTALS],
        **{
            reason: [counts[reason] for counts in TOTALS.values()]
            for reason in REASONS.values()
        },
    }
    named = library({**SERVED, "summary": ["mine"] * 4})
    assert [*audited(named, library(ROWS))["summary"]] == ["mine"] * 4


def test_null_equals_nan_where_a_library_has_no_null() -> None:
    served = {
        name: np.array([np.nan if each is None else each for each in values])
        for name, values in SERVED.items()
    }
    out = audited(served, pa.table(ROWS))
    for name, (_, _, letters) in EXPECTED.items():
        assert [*out[f"{name}_reason"]] == [REASONS[each] for each in letters]


def test_nan_is_not_null_in_arrow() -> None:
    nan = float("nan")
    spec = sw.Spec(on="t", windows=5, aggs={"sum": sw.sum("x")})
    rows = pa.table({"t": [1, 20], "x": [nan, 1.0]})
    served = pa.table({"at": [1, 1, 15, 15], "sum_5": [nan, None, nan, None]})
    out = sw.audit(served, rows, spec, at="at")
    reasons = ["equal", "differs", "differs", "equal"]
    assert out["sum_5_reason"].to_pylist() == reasons


def test_without_arrival_there_are_two_columns_and_two_reasons() -> None:
    """The column of times may be that of the rows; `arrival=` of a Spec is left out."""
    spec = sw.Spec(on="t", windows=10, aggs={"n": sw.count()}, arrival="came")
    served = pa.table({"t": [9, 9], "n_10": [4, 3]})
    out = sw.audit(served, pa.table(ROWS), spec, at="t")
    assert out.column_names == ["t", "n_10", "n_10_expected", "n_10_reason"]
    assert out["n_10_expected"].to_pylist() == [4, 4]
    assert out["n_10_reason"].to_pylist() == ["equal", "differs"]
    assert json.loads(out.schema.metadata[b"audit"]) == {
        "n_10": {"equal": 1, "differs": 1}
    }


def test_a_row_had_arrived_if_it_came_at_the_time_of_the_answer() -> None:
    """The Spec may name the arrival, and one column be event time and arrival."""
    spec = sw.Spec(on="t", windows=10, aggs={"n": sw.count()}, arrival="came")
    rows = pa.table({"t": [1, 2, 3], "came": [3, 4, 5]})
    served = pa.table({"t": [4, 4], "n_10": [2, 1]})
    out = sw.audit(served, rows, spec, at="t", served_at="t")
    assert out["n_10_as_of"].to_pylist() == [2, 2]
    assert out["n_10_reason"].to_pylist() == ["arrived later", "differs"]


def test_several_columns_of_arrival_are_compared_in_order() -> None:
    spec = sw.Spec(on="t", windows=10, aggs={"n": sw.count()})
    rows = pa.table({"t": [1, 2, 3], "file": [1, 1, 2], "line": [1, 2, 1]})
    served = pa.table({"t": [9, 9], "f": [1, 2], "l": [1, 0], "n_10": [1, 2]})
    out = sw.audit(
        served,
        rows,
        spec,
        at="t",
        served_at=["f", "l"],
        arrival=["file", "line"],
    )
    assert out["n_10_as_of"].to_pylist() == [1, 2]


@pytest.mark.parametrize(
    ("kind", "values", "reasons"),
    [
        # 0.1 + 0.2 is another float than 0.3; 0.1 and 0.2 are not in float32.
        (pa.float64(), [0.3, 0.30000000000004], "ed"),
        (pa.float32(), [0.3, 0.3000005], "ed"),
        (pa.string(), ["0.3", "0.31"], "ed"),
    ],
)
def test_floats_are_equal_within_the_bound(
    kind: pa.DataType, values: list[Any], reasons: str
) -> None:
    spec = sw.Spec(on="t", windows=10, aggs={"p": sw.product("x"), "s": sw.sum("x")})
    rows = pa.table({"t": [1, 2], "x": [0.1, 0.2]})
    served = pa.table({"t": [2, 2], "s_10": pa.array(values, kind)})
    served = served.append_column("p_10", pa.array([0.02, float("inf")]))
    out = sw.audit(served, rows, spec, at="t")
    assert out["s_10_reason"].to_pylist() == [REASONS[each] for each in reasons]
    assert out["p_10_reason"].to_pylist() == ["equal", "differs"]


def test_lists_text_times_and_integers_of_any_width_are_equal_exactly() -> None:
    spec = sw.Spec(
        on="t",
        windows="1h",
        aggs={
            "all": sw.collect("x"),
            "word": sw.max("word"),
            "when": sw.max("t"),
            "n": sw.count(),
        },
    )
    times = [dt.datetime(2026, 1, 1, 9), dt.datetime(2026, 1, 1, 9, 1)]
    rows = pa.table({"t": times, "x": [0.1, None], "word": ["a", "b"]})
    served = pa.table(
        {
            "t": [times[1]] * 2,
            "all_1h": [[0.1], [0.2]],
            "word_1h": pa.array(["b", "a"]).dictionary_encode(),
            "when_1h": pa.array([times[1], times[0]], pa.timestamp("s")),
            "n_1h": pa.array([2, 3], pa.int8()),
        }
    )
    out = sw.audit(served, rows, spec, at="t")
    for name in spec.results:
        assert out[f"{name}_reason"].to_pylist() == ["equal", "differs"], name


def test_a_served_integer_beyond_2_53_is_not_rounded() -> None:
    spec = sw.Spec(on="t", windows=10, aggs={"s": sw.sum("x")})
    rows = pa.table({"t": [1], "x": [2**53 + 1]})
    served = pa.table({"t": [1, 1], "s_10": [2**53 + 1, 2**53]})
    out = sw.audit(served, rows, spec, at="t")
    assert out["s_10_reason"].to_pylist() == ["equal", "differs"]


def test_tables_without_rows_have_the_columns() -> None:
    out = audited(pa.table(SERVED).slice(0, 0), pa.table(ROWS).slice(0, 0))
    assert out.num_rows == 0
    assert out.num_columns == len(SERVED) + 3 * len(SPEC.results)
    out = audited(pa.table(SERVED), pa.table(ROWS).slice(0, 0))
    assert out["n_10_expected"].to_pylist() == [0] * 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"at": "time"}, "served has no column 'time'"),
        ({"served_at": "sent"}, "tells when they arrived: give arrival="),
        ({"arrival": "came"}, "needs the time at which .* give served_at="),
        (
            {"served_at": ["sent", "id"], "arrival": "came"},
            r"names 2 columns, and 1 stand for arrival='came'",
        ),
        ({"served_at": "sent", "arrival": "gone"}, "no column 'gone'"),
        ({"served_at": "went", "arrival": "came"}, "served has no column 'went'"),
    ],
)
def test_wrong_arguments_are_refused(options: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"at": "when", **options}
    with pytest.raises(sw.SpecError, match=message):
        sw.audit(pa.table(SERVED), pa.table(ROWS), SPEC, **given)


def test_wrong_features_are_refused() -> None:
    rows, served = pa.table(ROWS), pa.table(SERVED)
    with pytest.raises(sw.SpecError, match="served has no column 'n_10'; it has"):
        sw.audit(served.drop_columns("n_10"), rows, SPEC, at="when")
    taken = served.append_column("n_10_reason", served["id"])
    with pytest.raises(sw.SpecError, match="a column 'n_10_reason' already"):
        sw.audit(taken, rows, SPEC, at="when")
    wrong = served.set_column(4, "n_10", pa.array([[1]] * 4))
    with pytest.raises(sw.SpecError, match=r"'n_10' was served as list.* as int64"):
        sw.audit(wrong, rows, SPEC, at="when")
    hopping = sw.Spec(on="t", window=10, every=5, aggs={"n": sw.count()})
    with pytest.raises(sw.SpecError, match="audit compares windows that end at a time"):
        sw.audit(served, rows, hopping, at="when")
    with pytest.raises(sw.SpecError, match="audit takes a Spec"):
        sw.audit(served, rows, "t", at="when")  # type: ignore[arg-type]
    near = sw.Spec(on="t", windows=sw.delta("x", 1.0), aggs={"n": sw.count()})
    column = served.append_column(near.results[0], served["id"])
    with pytest.raises(sw.SpecError, match="at="):
        sw.audit(column, rows, near, at="when")
