"""A `Spec` in place of keywords, in every function that takes them."""

import inspect
import pickle
from typing import Any

import pyarrow as pa
import pytest

import slidewise as sw

ROWS = pa.table({"t": [1, 2, 4, 9], "k": [*"abab"], "x": [1, 2, 3, 4]})
COUNT: dict[str, Any] = {"n": sw.count(), "x": sw.sum("x")}
ROLLS: dict[str, Any] = {
    "on": "t",
    "by": "k",
    "windows": [3, 5],
    "aggs": COUNT,
    "closed": "left",
    "offset": 1,
    "min_rows": 1,
}
HOPS: dict[str, Any] = {
    "on": "t",
    "by": ["k"],
    "window": 4,
    "every": 2,
    "aggs": COUNT,
    "empty": True,
}


@pytest.mark.parametrize(
    ("request_", "same"),
    [
        (ROLLS, sw.Spec.make(**ROLLS)),
        (HOPS, sw.Spec.make_hopping(**HOPS)),
        (
            {"on": "t", "windows": [sw.Query(4, every=2), 3], "aggs": COUNT},
            sw.Spec.make_hopping(on="t", windows=[sw.Query(4, every=2), 3], aggs=COUNT),
        ),
        (
            {"on": "t", "windows": iter([3]), "aggs": COUNT},
            sw.Spec.make(on="t", windows=[3], aggs=COUNT),
        ),
    ],
)
def test_a_spec_is_made_of_keywords(request_: dict[str, Any], same: sw.Spec) -> None:
    spec = sw.Spec(**request_)
    assert spec == same
    assert (spec.hash, hash(spec)) == (same.hash, hash(same))
    assert pickle.loads(pickle.dumps(spec)) == spec


def test_rolling_takes_a_spec() -> None:
    spec, labels = sw.Spec(**ROLLS), ROWS.select(["t", "k"])
    assert sw.rolling(ROWS, spec).equals(sw.rolling(ROWS, **ROLLS))
    at = sw.rolling(ROWS, spec=spec, at=labels, threads=1)
    assert at.equals(sw.rolling(ROWS, at=labels, **ROLLS))
    assert sw.explain(ROWS, spec) == sw.explain(ROWS, **ROLLS)


def test_hopping_takes_a_spec() -> None:
    spec = sw.Spec(**HOPS)
    assert sw.hopping(ROWS, spec).equals(sw.hopping(ROWS, **HOPS))
    assert sw.explain(ROWS, spec) == sw.explain(ROWS, **HOPS)


KEYWORDS = {*inspect.signature(sw.Spec).parameters}
OF_HOPPING = {"window", "every", "empty"}
OF_ROLLING = {"ties", "arrival", "exclude"}


@pytest.mark.parametrize(
    ("function", "others"),
    [
        (sw.rolling, OF_HOPPING),
        (sw.hopping, OF_ROLLING),
        (sw.explain, set()),
        (sw.KeyedWindows, set()),
    ],
)
def test_functions_take_every_keyword_of_a_spec(
    function: Any, others: set[str]
) -> None:
    taken = inspect.signature(function).parameters
    assert KEYWORDS - others == KEYWORDS & taken.keys()
    for name in KEYWORDS - others:
        given = inspect.signature(sw.Spec).parameters[name]
        assert taken[name].default == given.default, name


def test_explain_takes_names_and_fill() -> None:
    request: Any = ROLLS | {"names": "{window}_{agg}", "prefix": "a_", "fill": 0}
    assert sw.explain(ROWS, **request) == sw.explain(ROWS, sw.Spec(**request))


def test_a_spec_and_keywords_contradict_each_other() -> None:
    spec: Any = sw.Spec(**ROLLS)
    with pytest.raises(sw.SpecError, match=r"closed= belongs in the Spec"):
        sw.rolling(ROWS, spec, closed="right")
    with pytest.raises(sw.SpecError, match=r"on=, by= belong in the Spec"):
        sw.explain(ROWS, spec, on="t", by="k")
    with pytest.raises(sw.SpecError, match="are one per row: give it to rolling"):
        sw.hopping(ROWS, spec)
    with pytest.raises(sw.SpecError, match="are not one per row: give it to hopping"):
        sw.rolling(ROWS, sw.Spec(**HOPS))
    spec = {"on": "t"}
    with pytest.raises(sw.SpecError, match="takes a Spec or the keywords"):
        sw.rolling(ROWS, spec)


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({}, "^on=, windows=, aggs= are missing"),
        ({"on": "t", "aggs": COUNT}, "^windows= is missing"),
        ({"on": "t", "windows": 3, "window": 3}, "not both"),
    ],
)
def test_what_a_spec_needs(request_: dict[str, Any], message: str) -> None:
    with pytest.raises(sw.SpecError, match=message):
        sw.Spec(**request_)
