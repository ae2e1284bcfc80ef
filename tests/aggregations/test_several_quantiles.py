"""`quantile` of several shares: a result for each, in every engine."""

from typing import Any

import pyarrow as pa
import pytest

import slidewise as sw
from slidewise.cli.spec_options import parse_aggregation

SHARES = [0.5, 0.999, 0]
ROWS = pa.table({"t": [1, 2, 3, 4], "k": [1, 1, 1, 1], "x": [4.0, None, 1.0, 9.0]})
EACH = {"d_p50": 0.5, "d_p99_9": 0.999, "d_p0": 0.0}
SPEC: dict[str, Any] = {"on": "t", "by": "k", "windows": [3, 9]}
SEVERAL = {"n": sw.count(), "d": sw.quantile("x", SHARES)}
APART = {"n": sw.count()} | {
    name: sw.quantile("x", share) for name, share in EACH.items()
}


def spec_of(aggs: dict[str, Any], **more: Any) -> sw.Spec:
    return sw.Spec(**SPEC, aggs=aggs, **more)


def test_a_table_has_a_column_per_share() -> None:
    out = sw.rolling(ROWS, spec_of(SEVERAL))
    assert out.equals(sw.rolling(ROWS, spec_of(APART)))
    assert [name for name in out.column_names if name.startswith("d_")] == [
        *("d_p50_3", "d_p99_9_3", "d_p0_3", "d_p50_9", "d_p99_9_9", "d_p0_9"),
    ]
    assert out["d_p50_3"].to_pylist() == [4.0, 4.0, 2.5, 5.0]
    hops = [sw.hopping(ROWS, on="t", window=2, aggs=aggs) for aggs in (SEVERAL, APART)]
    assert hops[0].equals(hops[1])


def test_a_spec_is_written_as_its_author_wrote_it() -> None:
    spec = spec_of(SEVERAL, names="{window} {agg}", fill={"quantile": 0})
    assert spec == spec_of(APART, names="{window} {agg}", fill={"quantile": 0})
    assert spec.results[1] == "3 d_p50"
    assert "q=[0.5, 0.999, 0.0]" in repr(spec)
    assert '"q": [0.5, 0.999, 0.0]' in spec.to_json()
    again = sw.Spec.from_json(spec.to_json())
    assert again == spec
    assert again.to_json() == spec.to_json()
    assert spec.replace(windows=3).results == ("3 n", "3 d_p50", "3 d_p99_9", "3 d_p0")
    features = sw.Features(card=spec_of(SEVERAL))
    assert sw.Features.from_json(features.to_json()).results == features.results
    assert features.results[:2] == ("card_n_3", "card_d_p50_3")


def test_its_own_windows_are_those_of_each_share() -> None:
    own = {"n": sw.count(), "d": sw.quantile("x", [0.1, 0.9], windows=5)}
    spec = sw.Spec(on="t", windows=3, aggs=own)
    assert spec.results == ("n_3", "d_p10_5", "d_p90_5")
    assert sw.Spec.from_json(spec.to_json()) == spec


def test_windows_and_keyed_streams_answer_each_share() -> None:
    window = sw.Window({"d": sw.quantile(SHARES)})
    bare = sw.Window(sw.quantile(SHARES))
    for each in (window, bare):
        each.insert_many([1, 3, 2], [4.0, 1.0, 2.0])
    assert window.query() == {"d_p50": 2.0, "d_p99_9": 3.996, "d_p0": 1.0}
    assert bare.query() == {"p50": 2.0, "p99_9": 3.996, "p0": 1.0}
    assert sw.Window.from_bytes(bare.to_bytes()).query() == bare.query()
    kw = sw.KeyedWindows(spec_of(SEVERAL), emit="arrival")
    kw.ingest(ROWS)
    expected = sw.rolling(ROWS, spec_of(SEVERAL))
    names = expected.column_names
    assert kw.collect().select(names).to_pylist() == expected.to_pylist()
    asked = kw.query(1, at=4)
    assert [asked[name] for name in ("d_p50_3", "d_p0_9")] == [5.0, 1.0]


def test_the_command_takes_several() -> None:
    name, agg = parse_aggregation("d=quantile:x:0.5,0.99")
    assert (name, agg) == ("d", sw.quantile("x", [0.5, 0.99]))


@pytest.mark.parametrize(
    ("shares", "message"),
    [
        ([], r"q takes one or several different numbers, got \[\]"),
        ([0.5, 0.5], r"q takes one or several different numbers"),
        ([0, 0.0], r"q takes one or several different numbers"),
        ([0.5, 1.5], r"q must be a number from 0 to 1, got 1\.5"),
        ("0.5", r"q must be a number from 0 to 1, got '0\.5'"),
    ],
)
def test_wrong_shares_are_refused(shares: Any, message: str) -> None:
    with pytest.raises(sw.SpecError, match=message):
        sw.quantile("x", shares)


def test_a_name_that_another_has_is_refused() -> None:
    aggs = {"d": sw.quantile("x", [0.5]), "d_p50": sw.count()}
    with pytest.raises(sw.SpecError, match="'d_p50' would occur twice"):
        spec_of(aggs)
