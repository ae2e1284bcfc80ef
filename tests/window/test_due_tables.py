"""The tables of `SharedWindow.insert_many` have one schema for all answers."""

from datetime import UTC, date, datetime

import numpy as np
import pyarrow as pa
import pytest
from definitions import AREAS, BITS, DECAYED, GAPS, PAIRS

import slidewise as sw
from slidewise.aggregations import Aggregation
from slidewise.aggregations.records import kinds

# Their values decide the type, or their columns hold other values.
ELSEWHERE = {"concat", "collect_distinct", *BITS, "count_distinct", "quantile"}
ELSEWHERE |= {"median", "mode", "value_counts", "entropy"}
# Each with a column of values and, if it needs one, a second column.
PLAIN = {
    "top_k": sw.top_k("x", k=2),
    "histogram": sw.histogram("x", edges=[1, 3]),
    **{kind: getattr(sw, kind)("x", "y") for kind in PAIRS},
    "arg_max": sw.arg_max("y", by="x"),
    "arg_min": sw.arg_min("x", by="y"),
    "approx_quantile": sw.approx_quantile("x", q=0.5),
    "approx_quantiles": sw.approx_quantile("x", q=[0.1, 0.9]),
    "approx_count_distinct": sw.approx_count_distinct("x"),
}
PLAIN |= {kind: getattr(sw, kind)() for kind in (*GAPS, "since_last", "since_first")}
PLAIN |= {kind: getattr(sw, kind)("x", edge="first") for kind in AREAS}
PLAIN |= {
    kind: Aggregation(
        kind, None if kind == "decayed_count" else "x", half_life=sw.rows(2)
    )
    for kind in DECAYED
}
_NAMED = {agg.kind for agg in PLAIN.values()} | ELSEWHERE
PLAIN |= {kind: getattr(sw, kind)("x") for kind in kinds() if kind not in _NAMED}
VALUES = {
    "int64": [3, 1, 2, 7],
    "float64": [0.5, 2.5, 1.5, 3.5],
}
QUERIES = {
    "time": sw.Query(4, every=2),
    "rows": sw.Query(sw.rows(3), every=sw.rows(1)),
    "session": sw.Query(sw.session(1)),
}
TIMES = {
    "int": [1, 2, 4, 9],
    "date": [date(2024, 1, day) for day in (1, 2, 4, 9)],
    "instant": [datetime(2024, 1, 1, hour) for hour in (1, 2, 4, 9)],
    "zoned": [datetime(2024, 1, 1, hour, tzinfo=UTC) for hour in (1, 2, 4, 9)],
    "nanoseconds": np.array([1, 2, 4, 9], "datetime64[ns]"),
}


def entries(values):
    return {"x": values, "y": values}


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("dtype", VALUES)
@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("empty", [False, True])
def test_the_schema_does_not_depend_on_the_answers(name, dtype, query, empty):
    """Tables without answers, or with nulls only, have the schema of other tables."""

    def window():
        queries = [QUERIES[query]]
        return sw.SharedWindow(
            {"r": PLAIN[name]}, queries=queries, dtype=dtype, empty=empty
        )

    many = window().insert_many(TIMES["int"], entries(VALUES[dtype]))
    assert many["value"].null_count < len(many)
    w = window()
    before = w.insert_many([], entries([])).schema
    if query == "rows":
        # The type of the times is not known yet.
        assert before.field("end").type == pa.null()
        before = before.set(1, many.schema.field("end"))
        if name in ("max_gap", "min_gap", "since_last", "since_first"):
            before = before.set(2, many.schema.field("value"))
    schemas = [before]
    schemas += [w.insert_many([1, 2], entries([None, None])).schema]
    schemas += [w.insert_many([8, 9], entries([None, None])).schema]
    schemas += [w.insert_many([20], entries(VALUES[dtype][:1])).schema]
    schemas += [w.insert_many([70], entries(VALUES[dtype][:1])).schema]
    assert schemas == [many.schema] * len(schemas)


@pytest.mark.parametrize("kind", TIMES)
@pytest.mark.parametrize("latest", [False, True])
def test_the_times_have_one_type(kind, latest):
    """Ends and answers that are times keep their type."""
    agg = sw.arg_max(by="x") if latest else sw.count()
    query = sw.Query(sw.rows(2), every=sw.rows(1))
    w = sw.SharedWindow({"r": agg}, queries=[query])
    assert w.insert_many([], {"x": []} if latest else []).schema.field("end").type == (
        pa.null()
    )
    full = w.insert_many(
        TIMES[kind], [{"x": x} for x in range(4)] if latest else [1] * 4
    )
    assert full.num_rows == 4
    none = w.insert_many(TIMES[kind][:0], {"x": []} if latest else [])
    assert none.schema == full.schema
    if latest:
        answers = full["value"].combine_chunks().field("r")
        assert answers.type == full.schema.field("end").type
        assert answers.to_pylist() == full["end"].to_pylist()
        skipped = w.insert_many(TIMES[kind][-1:], [{"x": None}])
        assert skipped.schema == full.schema


def test_a_column_without_values_has_no_type_yet():
    w = sw.SharedWindow(sw.sum(), queries=[sw.Query(2, every=1)])
    kinds = [
        w.insert_many([at], [value]).schema.field("value").type
        for at, value in enumerate([None, None, True, 2, 2.5, None])
    ]
    ints, floats = [pa.int64()] * 2, [pa.float64()] * 2
    assert kinds == [pa.null(), pa.null(), *ints, *floats]
    greatest = sw.SharedWindow(sw.max(), queries=[sw.Query(2, every=1)])
    kinds = [
        greatest.insert_many([at], [value]).schema.field("value").type
        for at, value in enumerate([True, None, 2])
    ]
    assert kinds == [pa.bool_(), pa.bool_(), pa.int64()]


def test_integers_before_floats_are_floats():
    w = sw.SharedWindow(sw.sum(), queries=[sw.Query(1, every=1)])
    table = w.insert_many([1, 2, 3, 4], [1, 2, 0.5, 1])
    assert table["value"].type == pa.float64()
    assert table["value"].to_pylist() == [1.0, 2.0, 0.5]


def longest(values: tuple) -> str:
    return "".join(values)


def test_the_type_that_a_custom_aggregation_declares():
    def join(returns=None):
        return sw.aggregation(
            lambda value: (value,),
            lambda older, younger: older + younger,
            longest,
            (),
            returns=returns,
        )

    for returns, kind in ((None, pa.string()), (pa.large_string(), pa.large_string())):
        w = sw.SharedWindow(join(returns), queries=[sw.Query(2, every=1)])
        none = w.insert_many([], [])
        some = w.insert_many([1, 2, 3], ["a", "b", "c"])
        assert none.schema == some.schema
        assert some["value"].type == kind
        assert some["value"].to_pylist() == ["a", "ab"]
    w = sw.SharedWindow(join(pa.int32()), queries=[sw.Query(2, every=1)])
    with pytest.raises(sw.SpecError, match="fit no Arrow column of int32"):
        w.insert_many([1, 2, 3], ["a", "b", "c"])


def test_heavy_hitters_are_structs():
    w = sw.SharedWindow(sw.heavy_hitters(k=2), queries=[sw.Query(9, every=3)])
    table = w.insert_many([1, 2, 3, 4], ["a", "b", "a", "c"])
    assert table["value"].to_pylist() == [
        [{"value": "a", "count": 2, "error": 0}, {"value": "b", "count": 1, "error": 0}]
    ]
    aggs = {"top": sw.heavy_hitters("x", k=2), "sum": sw.sum("x")}
    w = sw.SharedWindow(aggs, queries=[sw.Query(2, every=2)], dtype="int64")
    none = w.insert_many([], {"x": []})
    assert none.schema == w.insert_many([1, 3], {"x": [7, 7]}).schema


@pytest.mark.parametrize("dtype", [None, "object"])
def test_lists_and_counts_of_objects_keep_their_type(dtype):
    """For objects, only the items of lists have the type of the values."""
    cases = {
        sw.collect: pa.list_(pa.null()),
        sw.collect_distinct: pa.list_(pa.null()),
        sw.heavy_hitters: pa.list_(pa.null()),
        sw.min_count: pa.int64(),
    }
    if dtype == "object":
        cases[sw.any] = pa.bool_()
    for make, kind in cases.items():
        w = sw.SharedWindow(make(), queries=[sw.Query(2, every=2)], dtype=dtype)
        w.insert(1, "a")
        assert w.insert_many([], []).schema.field("value").type == kind, make
        some = w.insert_many([3], ["b"]).schema.field("value").type
        assert pa.types.is_list(some) if pa.types.is_list(kind) else some == kind
