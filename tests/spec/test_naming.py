"""`names=` and `prefix=`: the names of result columns, wherever results are given."""

import re
from typing import Any

import pyarrow as pa
import pytest

import slidewise as sw

ROWS = pa.table(
    {"t": [1, 3, 4, 9, 9], "k": [*"abaab"], "x": [5, 2, 7, None, 3], "n": [0] * 5}
)
AGGS = {"n": sw.count(), "sum": sw.sum("x"), "mid": sw.median("x")}
# As the names that follow, but with names and prefix.
NAMED: dict[str, Any] = {"names": "{window} {agg}", "prefix": "card_"}
HOPS_NAMED: dict[str, Any] = {"names": "{agg}x", "prefix": "p_"}
BARE: dict[str, Any] = {}
EMITS = ("arrival", "final", "update", "change")


def renamed(name: str) -> str:
    """The name of a column of results, by hand."""
    label = re.fullmatch(r"(.+)_([^_]+)", name)
    assert label is not None
    return f"card_{label[2]} {label[1]}"


def roll(**changes: Any) -> dict[str, Any]:
    return {"on": "t", "by": "k", "windows": [3, sw.rows(2)], "aggs": AGGS} | changes


def hop(**changes: Any) -> dict[str, Any]:
    return {"on": "t", "by": "k", "window": 4, "every": 2, "aggs": AGGS} | changes


def plain(results: pa.Table, names: tuple[str, ...]) -> pa.Table:
    """A table whose columns of these names are renamed by hand."""
    found = [renamed(name) if name in names else name for name in results.column_names]
    return results.rename_columns(found)


def test_results_of_tables_are_named() -> None:
    rows = ROWS.drop_columns("n")
    same = plain(sw.rolling(rows, **roll()), sw.Spec(**roll()).results)
    # The table has a column "n", and no result has that name here.
    assert sw.rolling(rows, **roll(), **NAMED).equals(same)
    assert sw.rolling(ROWS, **roll(windows=3), names="{agg}s").column_names == [
        *ROWS.column_names,
        *("ns", "sums", "mids"),
    ]
    labels = rows.select(["t", "k"])
    at = sw.rolling(rows, **roll(), **NAMED, at=labels)
    assert at.column_names[2:] == [*map(renamed, sw.Spec(**roll()).results)]


def test_results_of_hopping_windows_are_named() -> None:
    results = sw.hopping(ROWS, **hop())
    names = ["k", "window_start", "window_end"]
    named = [*names, "card_4 n", "card_4 sum", "card_4 mid"]
    assert sw.hopping(ROWS, **hop(), **NAMED).equals(results.rename_columns(named))
    several: dict[str, Any] = {
        "on": "t",
        "by": "k",
        "windows": [4, sw.Query(3, every=1)],
        "aggs": AGGS,
    }
    results = sw.hopping(ROWS, **several)
    named = ["k", "window", "window_start", "window_end", "p_nx", "p_sumx", "p_midx"]
    found = sw.hopping(ROWS, **several, **HOPS_NAMED)
    assert found.equals(results.rename_columns(named))


@pytest.mark.parametrize("emit", EMITS)
@pytest.mark.parametrize("windows", [[3, 5], [3, sw.rows(2)]])
@pytest.mark.parametrize("late_rows", ["drop", "correct"])
def test_results_of_streams_are_named(
    emit: str, windows: list[Any], late_rows: str
) -> None:
    request = roll(windows=windows)
    names = sw.Spec(**request).results
    found = []
    for named in (BARE, NAMED):
        stream = sw.KeyedWindows(
            **request, **named, emit=emit, late=3, late_rows=late_rows
        )
        for start in range(0, 5, 2):
            stream.ingest(ROWS.slice(start, 2))
            stream.advance()
        stream.advance(20)
        found.append(stream.collect())
    assert found[1].equals(plain(found[0], names))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"empty": True},
        {"late_rows": "correct"},
        {"window": sw.session(2), "every": None},
        {"window": sw.rows(2), "every": sw.rows(1)},
        {"window": None, "every": None, "windows": [4, sw.Query(3, every=1)]},
    ],
    ids=repr,
)
def test_results_of_hopping_streams_are_named(changes: dict[str, Any]) -> None:
    request = {name: x for name, x in hop(**changes).items() if x is not None}
    found = []
    for named in (BARE, HOPS_NAMED):
        stream = sw.KeyedWindows(**request, **named, late=3)
        for start in range(0, 5, 2):
            stream.ingest(ROWS.slice(start, 2))
            stream.advance()
        stream.advance(20)
        found.append(stream.collect())
    columns = [f"p_{name}x" if name in AGGS else name for name in found[0].column_names]
    assert found[1].equals(found[0].rename_columns(columns))


@pytest.mark.parametrize("windows", [[3, 5], [3, sw.rows(2)]])
def test_results_of_queries_are_named(windows: list[Any]) -> None:
    one, other = (
        sw.KeyedWindows(**roll(windows=windows), **named, late=3)
        for named in (BARE, NAMED)
    )
    keys = pa.table({"k": [*"abz"], "when": [4, 9, 3]})
    for stream in (one, other):
        stream.ingest(ROWS)
    queries: list[dict[str, Any]] = [
        {"at": 4},
        {"at": 4, "windows": [2, 1]},
        {"at": 9, "plus": {"x": 8}},
        {"at": 4, "valid_until": True},
    ]
    for given in queries:
        results = one.query("a", **given)
        named = {renamed(name): value for name, value in results.items()}
        assert other.query("a", **given) == named
        assert [*other.query("a", **given)] == [*named]
    results = one.query_many(keys, at="when")
    assert other.query_many(keys, at="when").equals(
        plain(results, results.schema.names[2:])
    )
    listed = one.query_many({"k": [*"ab"]}, at=9)
    named = {name if name == "k" else renamed(name): x for name, x in listed.items()}
    assert other.query_many({"k": [*"ab"]}, at=9) == named


def test_times_of_changes_follow_the_names() -> None:
    """Without `{agg}` in the names, they are as without names."""
    for names, name in [
        ("{window}-{agg}", "p_3-valid_until"),
        ("n", "p_valid_until_3"),
    ]:
        stream = sw.KeyedWindows(
            on="t", windows=3, aggs={"n": sw.count()}, names=names, prefix="p_"
        )
        stream.ingest(ROWS.select(["t"]))
        assert [*stream.query(valid_until=True)][-1] == name


def test_windows_of_a_query_must_differ_in_name() -> None:
    stream = sw.KeyedWindows(**roll(windows=5), names="{agg}")
    stream.ingest(ROWS.drop_columns("n"))
    assert stream.query("a", windows=3)["n"] == 1
    with pytest.raises(sw.SpecError, match=r"'\{agg\}' gives the result column 'n' tw"):
        stream.query("a", windows=[3, 4])


def test_names_are_part_of_a_spec() -> None:
    spec = sw.Spec(**roll(), **NAMED)
    again = sw.Spec.from_json(spec.to_json())
    assert (again, again.hash, hash(again)) == (spec, spec.hash, hash(spec))
    assert spec != sw.Spec(**roll())
    assert "names='{window} {agg}', prefix='card_'" in repr(spec)
    assert spec.replace(names=None, prefix="") == sw.Spec(**roll())
    assert sw.Spec(**roll()).hash == spec.replace(names=None, prefix="").hash
    assert spec.results[:2] == ("card_3 n", "card_3 sum")


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("{group}_{agg}", "has {group}, the name of a Spec within Features, and this"),
        ("{agg}_{w}", "names='{agg}_{w}' has the field 'w'"),
        ("{agg:>9}", "has the field 'agg', or a format"),
        ("{agg", "is not a text such as '{agg}_{window}'"),
        (3, "names= takes a text such as '{agg}_{window}', got 3"),
        ("{agg}", "names='{agg}' gives the result column 'n' twice: add {agg} or {win"),
        ("x", "names='x' gives the result column 'x' twice"),
    ],
)
def test_wrong_names_are_refused(names: Any, message: str) -> None:
    with pytest.raises(sw.SpecError, match=re.escape(message)):
        sw.rolling(ROWS, **roll(), names=names)


def test_names_of_several_hopping_windows_have_no_window() -> None:
    with pytest.raises(sw.SpecError, match="the column 'window' tells it"):
        sw.hopping(ROWS, on="t", windows=[2, 4], aggs=AGGS, names="{agg}_{window}")
    with pytest.raises(sw.SpecError, match="prefix= takes a text such as 'card_'"):
        sw.hopping(ROWS, **hop(), prefix=3)  # type: ignore[arg-type]
    with pytest.raises(sw.SpecError, match="the table has a column 'x' already"):
        sw.rolling(ROWS, on="t", windows=3, aggs={"n": sw.count()}, names="x")
