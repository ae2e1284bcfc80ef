"""The one specification."""

import json
import re
from datetime import timedelta
from typing import Any, cast

import numpy as np
import pytest

import slidewise as sw
from slidewise.spec.spec import Spec

AVG = {"kind": "mean", "of": "km"}
# The fields that only data-driven windows and slides by rows have.
AGGS = {"n": sw.count(), "avg": sw.mean("km")}


def make(**changes: Any) -> Spec:
    return Spec.make(
        **{"on": "t", "windows": ["1h", sw.rows(3)], "aggs": AGGS, **changes}
    )


def test_windows_are_records() -> None:
    spec = make(windows=["90s", timedelta(minutes=90), 3, sw.rows(100)])
    found = [
        (window.label, window.timed and (window.timed.kind, window.timed.amount))
        for window in spec.windows
    ]
    assert found == [
        ("90s", ("time", 90 * 10**9)),
        ("90m", ("time", 5_400 * 10**9)),
        ("3", ("integer", 3)),
        ("100rows", None),
    ]
    assert [window.rows for window in spec.windows] == [0, 0, 0, 100]
    assert spec.results[:4] == ("n_90s", "avg_90s", "n_90m", "avg_90m")


def test_columns_are_named_once() -> None:
    spec = make(by=["k", "t"], arrival="seen", aggs={"a": sw.arg_max("km", by="t")})
    assert spec.columns == ("t", "k", "seen", "km")
    assert spec.times == ("t", "seen")
    spec = make(by="k", arrival=["seen", "t", "k"])
    assert spec.columns == ("t", "k", "seen", "km")
    assert (spec.arrivals, spec.times) == (("seen", "t", "k"), ("t", "seen", "k"))
    assert (make().arrivals, make().times) == ((), ("t",))
    assert make(by="k").by == make(by=["k"]).by == ("k",)


def test_columns_are_replaced_as_they_are_given() -> None:
    spec = make().replace(by="k", arrival=["batch", "a"])
    assert spec == make(by="k", arrival=["batch", "a"])
    assert hash(spec) == hash(make(by="k", arrival=["batch", "a"]))
    assert spec.replace(by=None, arrival=["a"]) == make(arrival="a")
    with pytest.raises(sw.SpecError, match=r"arrival=.* names 'a' twice"):
        spec.replace(arrival=["a", "a"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"on": 5}, "on= takes the name of a column, got 5"),
        ({"windows": "1"}, "windows='1' is not a duration"),
        ({"aggs": {"n": 3}}, "aggs['n'] is not an aggregation: 3"),
        ({"ties": "row"}, "ties= is one of peers, rows; got 'row'"),
        ({"min_rows": True}, "min_rows= takes an int"),
        ({"overflow": None}, "overflow= is one of raise, null; got None"),
    ],
)
def test_replaced_arguments_are_validated(
    changes: dict[str, object], message: str
) -> None:
    with pytest.raises(sw.SpecError, match=re.escape(message)):
        make().replace(**changes)


def test_other_arguments_stay() -> None:
    """Also those of windows, which the attributes hold in another form."""
    given = {"closed": "both", "offset": "5m", "by": "k", "nan": "skip"}
    spec, other = make(windows="1h", **given), make(windows=["2h", "1d"], **given)
    assert spec.replace(windows=["2h", "1d"]) == other
    hops = sw.Spec(on="t", window="1h", every="5m", aggs={"n": sw.count()}, offset="1m")
    assert hops.replace(window="2h") == sw.Spec(
        on="t", window="2h", every="5m", aggs={"n": sw.count()}, offset="1m"
    )
    several = hops.replace(windows=["1h", sw.Query("2h", every="1h")])
    assert [window.label for window in several.windows] == ["1h", "2h every 1h"]
    assert several.replace(window="1h") == hops
    with pytest.raises(TypeError, match="did you mean windows="):
        hops.replace(windwos="1h")


def test_the_hash_is_that_of_every_release() -> None:
    """Checkpoints store the hash: if this fails, they can no longer be read."""
    assert make().hash == (
        "5f86d1c09e8628b9bb0f2eb744a310ab4a560ed8eef9e929329568430c3c8d35"
    )


@pytest.mark.parametrize(
    ("agg", "same"),
    [
        (sw.quantile("x", 1), sw.quantile("x", 1.0)),
        (sw.quantile("x", 0), sw.quantile("x", np.float64(0))),
        (sw.quantile("x", 0.0), sw.quantile("x", -0.0)),
        (sw.approx_quantile("x", 1), sw.approx_quantile("x", 1.0)),
        (sw.approx_quantile("x", 0.0), sw.approx_quantile("x", -0.0)),
        (sw.approx_quantile("x", 0.5), sw.approx_quantile("x", np.float64(0.5))),
        (sw.approx_quantile("x", [0, 0.5]), sw.approx_quantile("x", (0.0, 0.5))),
        (sw.variance("x", 0), sw.variance("x", cast("int", np.int64(0)))),
        (sw.top_k("x", 2), sw.top_k("x", cast("int", np.int64(2)))),
    ],
    ids=str,
)
def test_equal_aggregations_have_equal_hashes(agg: Any, same: Any) -> None:
    spec, other = make(aggs={"q": agg}), make(aggs={"q": same})
    assert spec == other
    assert spec.hash == other.hash
    assert spec.to_json() == other.to_json()


@pytest.mark.parametrize(
    "changes",
    [
        {"on": "u"},
        {"by": "k"},
        {"windows": ["1h", sw.rows(4)]},
        {"windows": ["60m", sw.rows(3)]},
        {"aggs": {"n": sw.count(), "avg": sw.mean("miles")}},
        {"aggs": {"m": sw.count(), "avg": sw.mean("km")}},
        {"ties": "rows"},
        {"nan": "skip"},
        {"arrival": "seen"},
        {"arrival": ["seen", "k"]},
        {"min_rows": 1},
        {"windows": "1h", "closed": "left"},
        {"windows": ["1h", sw.landmark("f")]},
        {"windows": ["1h", sw.delta("km", 3)]},
    ],
)
def test_different_specs_have_different_hashes(changes: dict[str, Any]) -> None:
    assert make(**changes).hash != make().hash
    assert make(**changes).hash == make(**changes).hash


def test_the_canonical_form_is_json() -> None:
    spec = make(by="ключ")
    parsed = json.loads(spec.canonical())
    assert parsed["version"] == 1
    assert parsed["by"] == ["ключ"]
    assert parsed["aggs"] == [["n", {"kind": "count"}], ["avg", AVG]]
    assert spec.canonical().isascii()


def test_more_rows_than_there_can_be():
    with pytest.raises(sw.SpecError, match=r"int from 1 to 2\*\*63 - 1"):
        sw.rows(2**64)
