"""`check_stream` with the options of streams, and with Features: right ones pass."""

import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from seeds import SEED
from test_check_stream import AGGS, ROWS, SPEC, counts_of, drawn, fault_of, found

import slidewise as sw
from slidewise.testing import check_stream

# Whose results have equal bits wherever rows are folded.
EXACT = {"n": sw.count(), "sum": sw.sum("x"), "top": sw.max("x")}


def spec_of(**keywords: Any) -> sw.Spec:
    return sw.Spec(on="t", **{"by": "k", "aggs": AGGS, **keywords})


BOTH = sw.Features(
    card=spec_of(windows=7), all=spec_of(by=None, windows=[3, sw.rows(2)], aggs=EXACT)
)
IDS = sw.Features(
    card=spec_of(windows=7, unique_by="x"),
    long=spec_of(windows=30, aggs=EXACT, unique_by="x"),
)
# Many of which are late.
DISORDERED = ROWS.take([at * 7 % 12 for at in range(12)])
LATE: dict[str, Any] = {"late": 2, "late_rows": "correct"}
CHANGE: dict[str, Any] = {"late": 2, "emit": "change"}
GONE: dict[str, Any] = {"late": 2, "deletes": "flag"}
CASES: list[tuple[sw.Spec | sw.Features, dict[str, Any]]] = [
    (spec_of(windows=[7, 3]), LATE),
    (spec_of(windows=[7, sw.rows(3)]), {**LATE, "then_by": "o"}),
    (spec_of(windows=[7, 3], closed="left", offset=1), LATE),
    (spec_of(windows=[7, 3]), {**LATE, "emit": "arrival"}),
    (spec_of(windows=[7, 3]), {**LATE, "emit": "update"}),
    (spec_of(windows=[7, 3]), {**LATE, "emit": "change"}),
    (spec_of(window=6, every=2), LATE),
    (spec_of(by=None, windows=[5, sw.Query(10, every=5)]), LATE),
    (spec_of(windows=[7, 3], aggs=EXACT), {**CHANGE, "changed": True}),
    (
        spec_of(windows=[7, 3], aggs=EXACT, closed="left", offset=1),
        {**CHANGE, "changed": True, "valid_until": True},
    ),
    (spec_of(windows=[7, sw.rows(3)]), {**CHANGE, "valid_until": True}),
    (
        spec_of(windows=[7, 3], aggs=EXACT, min_rows=2),
        {"late": 2, "emit": "update", "valid_until": True},
    ),
    (
        spec_of(windows=[7, 3], aggs=EXACT, closed="both"),
        {**LATE, "emit": "change", "changed": True, "valid_until": True},
    ),
    (BOTH, {"late": 2}),
    (BOTH, {"late": 2, "emit": "arrival", "late_rows": "flag"}),
    (BOTH, {"late": 2, "emit": "none", "ahead": 3}),
    (IDS, {"late": 2}),
    (spec_of(windows=[7, 3]), GONE),
    (spec_of(windows=[7, 3]), {**GONE, "emit": "arrival", "then_by": "o"}),
    (spec_of(windows=[7, 3]), {**GONE, "emit": "update"}),
    (spec_of(windows=[7, 3]), {**GONE, "emit": "change"}),
    (spec_of(window=6, every=2), GONE),
    (spec_of(windows=[7, 3]), {**GONE, "late_rows": "correct"}),
]


@pytest.mark.parametrize("case", range(len(CASES)))
def test_right_streams_pass_with_options(case: int) -> None:
    spec, options = CASES[case]
    check_stream(spec, pa.table(drawn(16)), runs=1, seed=SEED, **options)


# Faults, and what finds them.


def emitted(
    monkeypatch: pytest.MonkeyPatch, change: Callable[[pa.Table], pa.Table]
) -> None:
    """Changes what the stream emits."""
    fault_of(monkeypatch, "collect", lambda right, self: change(right(self)))


def test_corrections_that_do_not_come(monkeypatch: pytest.MonkeyPatch) -> None:
    emitted(monkeypatch, lambda table: table.filter(pc.invert(table["_correction"])))
    message = found(rows=DISORDERED, late=0, late_rows="correct")
    assert counts_of(message)[1] == 2
    assert re.search(r"n_9 of k='[ab]', t=\d+ is no row, not 2\n", message)


@pytest.mark.parametrize("emit", ["final", "update", "slide"])
def test_corrections_without_their_flag(
    monkeypatch: pytest.MonkeyPatch, emit: str
) -> None:
    def unflagged(table: pa.Table) -> pa.Table:
        none = pa.repeat(pa.scalar(False), table.num_rows)
        place = table.column_names.index("_correction")
        return table.set_column(place, "_correction", none)

    emitted(monkeypatch, unflagged)
    spec = spec_of(window=9, aggs=EXACT) if emit == "slide" else SPEC
    message = found(spec, DISORDERED, late=0, late_rows="correct", emit=emit)
    assert counts_of(message)[1] in (2, 3)
    assert re.search(r"_correction of k='[ab]', .* is False, not True\n", message)


def test_results_that_changed_leaves_in(monkeypatch: pytest.MonkeyPatch) -> None:
    right = sw.KeyedWindows.__init__

    def keep(self: Any, *given: Any, **named: Any) -> None:
        right(self, *given, **{**named, "changed": False})

    monkeypatch.setattr(sw.KeyedWindows, "__init__", keep)
    spec = spec_of(windows=9, aggs={"top": sw.max("x")})
    check_stream(spec, ROWS, late=5, emit="change", runs=1)
    message = found(spec, emit="change", changed=True)
    assert counts_of(message)[1] == 2
    assert re.search(r"top_9 of k='[ab]', t=\d+ is given again, not left out", message)


def test_a_changed_result_that_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    emitted(monkeypatch, lambda table: table.filter(pc.less(table["n_9"], 2)))
    message = found(emit="change", changed=True)
    assert counts_of(message)[1] == 2
    assert re.search(r"n_9 of k='[ab]', t=\d+ is [01], not 2\n", message)


@pytest.mark.parametrize("by", [1, -1, None])
def test_a_time_of_validity_that_is_wrong(
    monkeypatch: pytest.MonkeyPatch, by: int | None
) -> None:
    def shift(table: pa.Table) -> pa.Table:
        place = table.column_names.index("valid_until_9")
        times = pa.scalar(by, pa.int64())
        return table.set_column(
            place, "valid_until_9", pc.add(table["valid_until_9"], times)
        )

    emitted(monkeypatch, shift)
    message = found(emit="update", valid_until=True)
    assert counts_of(message) == (1, 1, 0)
    named = re.search(r"valid_until_9 of k='\w', t=(\d+) is (\w+), not (\d+)", message)
    assert named, message
    time, wrong, right = named.groups()
    assert int(right) == int(time) + 9
    assert wrong == str(None if by is None else int(right) + by)


def test_features_of_which_one_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    features = sw.Features(card=SPEC, all=sw.Spec(on="t", windows=4, aggs=EXACT))

    def wrong(table: pa.Table) -> pa.Table:
        place = table.column_names.index("all_n_4")
        return table.set_column(place, "all_n_4", pc.add(table["all_n_4"], 1))

    emitted(monkeypatch, wrong)
    with pytest.raises(AssertionError, match=r"all_n_4 of k='\w', t=\d+ is 2, not 1\n"):
        check_stream(features, ROWS, late=5)


def test_a_deletion_that_deletes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = ROWS.append_column("gone", pc.equal(ROWS["x"], 7))
    rows = pa.concat_tables([rows, rows.set_column(3, "gone", pc.equal(rows["x"], 1))])

    def ignore(right: Any, self: Any, batch: pa.Table) -> None:
        right(self, batch.filter(pc.invert(batch["gone"])))

    check_stream(SPEC, rows, late=5, deletes="gone", runs=2)
    fault_of(monkeypatch, "ingest", ignore)
    message = found(rows=rows, deletes="gone")
    assert counts_of(message)[1] <= 2


# Arguments.


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"engine": "flink"}, "engine= is one of process, spark; got 'flink'"),
        ({"schema": {}}, "does not take schema=: a table has types"),
        ({"clock": int}, "does not take clock=: ahead= and idle= get a clock of"),
        ({"engine": "spark", "keep": 9}, "does not take keep=: a stream of Spark has"),
        ({"engine": "spark", "idle": 9}, "does not take idle=: a stream of Spark has"),
        ({"engine": "spark", "ahead": 9}, "ahead=: a stream of Spark compares with"),
        ({"changed": True}, "emit='change'"),
        ({"deletes": "z"}, "no column 'z'"),
    ],
)
def test_options_that_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(sw.SpecError, match=re.escape(message)):
        check_stream(SPEC, ROWS, **options)


def test_features_with_different_arrivals_are_refused() -> None:
    features = sw.Features(
        card=spec_of(windows=7, arrival="came"), all=spec_of(windows=7, by=None)
    )
    with pytest.raises(sw.SpecError, match="whose Specs have one arrival="):
        check_stream(features, pa.table(drawn(4)), emit="arrival")


def test_spark_needs_pyspark(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pyspark", "pyspark.sql", "pyspark.errors"):
        monkeypatch.setitem(__import__("sys").modules, name, None)
    with pytest.raises(ImportError, match=r"pip install 'slidewise\[spark\]'$"):
        check_stream(SPEC, ROWS, engine="spark")
