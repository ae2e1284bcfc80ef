"""`check_stream(engine="spark")`: right streams pass, and faults are found."""

import datetime as dt
import re
from typing import Any

import pyarrow as pa
import pytest
from seeds import SEED

import slidewise as sw
from slidewise.testing import check_stream, on_spark

START = dt.datetime(2026, 5, 1, tzinfo=dt.UTC)
EXACT = {"n": sw.count(), "sum": sw.sum("x"), "top": sw.max("x")}
LATE: dict[str, Any] = {"late": "2s", "late_rows": "correct"}


def rows_of(count: int) -> pa.Table:
    """Rows of some seconds apart, some in disorder, and others not in milliseconds."""
    seconds = [at * 0.9 - (at * 7 % 4) + 0.0003 * (at % 3) for at in range(count)]
    return pa.table(
        {
            "t": [START + dt.timedelta(seconds=second) for second in seconds],
            "k": ["a", "b", None, "a"] * (count // 4),
            "x": [1, 2, 7, None, 5] * (count // 5),
            "id": [at * 3 % 17 for at in range(count)],
            "gone": [at % 9 == 5 for at in range(count)],
        }
    )


def spec_of(**keywords: Any) -> sw.Spec:
    given = {"by": "k", "windows": ["7s", "3s"], "aggs": EXACT}
    return sw.Spec(on="t", **{**given, **keywords})


HOPS: dict[str, Any] = {"windows": None, "window": "6s", "every": "2s"}
MEAN = {"aggs": {**EXACT, "avg": sw.mean("x"), "all": sw.collect("x")}}
CASES: list[tuple[sw.Spec, dict[str, Any]]] = [
    (spec_of(**MEAN), {"late": "2s", "late_rows": "flag", "then_by": "id"}),
    (spec_of(), {**LATE, "emit": "change", "changed": True, "valid_until": True}),
    (spec_of(unique_by="id"), {"late": "1s", "emit": "arrival", "then_by": "id"}),
    (spec_of(**HOPS), {**LATE, "deletes": "gone", "then_by": "id"}),
    (spec_of(windows=["4s", sw.rows(2)]), {**LATE, "then_by": "id"}),
    (spec_of(**HOPS, empty=True), {"late": "1ms"}),
]


@pytest.mark.parametrize("case", range(len(CASES)))
@pytest.mark.usefixtures("spark")
def test_right_streams_of_spark_pass(case: int) -> None:
    spec, options = CASES[case]
    check_stream(spec, rows_of(20), engine="spark", runs=1, seed=SEED, **options)


@pytest.mark.usefixtures("spark")
def test_a_row_that_a_stream_of_spark_loses(monkeypatch: pytest.MonkeyPatch) -> None:
    right = on_spark.rolling

    def lose(**keywords: Any) -> Any:
        call = right(**keywords)
        return lambda df: call(df.where("x is null or x != 7"))

    monkeypatch.setattr(on_spark, "rolling", lose)
    monkeypatch.setattr(on_spark.OnSpark, "tries", 3)
    with pytest.raises(AssertionError) as raised:
        check_stream(spec_of(), rows_of(20), late="2s", engine="spark", runs=1)
    message = str(raised.value)
    assert re.search(r"rows: \w+ of k=.*, t=2026-\S+ .* is .*, not .*\n", message)
    lines = message.splitlines()[2:]
    assert lines
    assert all(line.startswith(("  micro-batch([{", "  restart")) for line in lines)


@pytest.mark.usefixtures("spark")
def test_what_streams_of_spark_refuse() -> None:
    rows = rows_of(20)
    local = rows.set_column(0, "t", rows["t"].cast(pa.timestamp("us")))
    with pytest.raises(sw.SpecError, match="timestamps with a time zone only"):
        check_stream(spec_of(), local, late="2s", engine="spark")
    with pytest.raises(sw.SpecError, match="which Spark does not keep: add then_by="):
        check_stream(spec_of(**MEAN), rows, late="2s", engine="spark")
