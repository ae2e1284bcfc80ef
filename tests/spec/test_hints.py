"""Names of pandas, polars and SQL give a hint with the name in slidewise."""

import inspect
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import slidewise as sw

ROWS = pa.table({"t": [1, 2], "x": [1, 2]})
COUNT = {"n": sw.count()}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"min_periods": 1}, "'min_periods': did you mean min_rows="),
        ({"min_samples": 1}, "'min_samples': did you mean min_rows="),
        ({"window": 5}, "'window': did you mean windows="),
        ({"period": "1h"}, "'period': did you mean windows="),
        ({"group_by": "x"}, "'group_by': did you mean by="),
        ({"partition_by": "x"}, "'partition_by': did you mean by="),
        ({"index_column": "t"}, "'index_column': did you mean on="),
        ({"order_by": "t"}, "'order_by': did you mean on="),
        ({"agg": COUNT}, "'agg': did you mean aggs="),
        ({"clsoed": "left"}, "'clsoed': did you mean closed="),
        ({"center": True}, "'center': .* half .* offset='-30m' with windows='1h'"),
        ({"every": 5}, r"'every': .* sw\.hopping"),
        ({"nonsense": 5}, "'nonsense'$"),
    ],
)
def test_rolling_suggests_arguments(given: Any, message: str) -> None:
    with pytest.raises(TypeError, match=rf"^rolling\(\) takes no argument {message}"):
        sw.rolling(ROWS, on="t", windows=5, aggs=COUNT, **given)
    # The right argument is missing for the same reason.
    with pytest.raises(TypeError, match=message):
        sw.rolling(ROWS, **given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"period": 5}, "'period': did you mean window="),
        ({"min_periods": 1}, "'min_periods': did you mean min_rows="),
        ({"group_by": "x"}, "'group_by': did you mean by="),
        ({"center": True}, "takes no argument 'center'$"),
    ],
)
def test_hopping_suggests_arguments(given: Any, message: str) -> None:
    with pytest.raises(TypeError, match=r"^hopping\(\) takes no argument ") as raised:
        sw.hopping(ROWS, on="t", aggs=COUNT, **given)
    assert raised.match(message)


def test_arguments_by_position_are_named() -> None:
    rolling: Any = sw.rolling
    with pytest.raises(sw.SpecError, match=r"takes a Spec or the keywords.* got 't'"):
        rolling(ROWS, "t")
    with pytest.raises(TypeError, match=r"after table and spec by name: on=5"):
        rolling(ROWS, "t", 5, COUNT)
    spec: Any = sw.Spec
    with pytest.raises(
        TypeError, match=r"^Spec\(\) takes its arguments by name: on='t'"
    ):
        spec("t", 5, COUNT)
    with pytest.raises(TypeError, match=r"^Spec\(\) takes no .* did you mean aggs="):
        spec(on="t", windows=5, agg=COUNT)


def test_signatures_and_pages_of_help_stay() -> None:
    assert list(inspect.signature(sw.rolling).parameters)[:3] == [
        "table",
        "spec",
        "on",
    ]
    assert (sw.hopping.__doc__ or "").startswith("Aggregates over hopping")
    assert sw.explain.__name__ == "explain"


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("std", "stddev"),
        ("var", "variance"),
        ("nunique", "count_distinct"),
        ("n_unique", "count_distinct"),
        ("avg", "mean"),
        ("average", "mean"),
        ("prod", "product"),
        ("skew", "skewness"),
        ("kurt", "kurtosis"),
        ("corr", "correlation"),
        ("cov", "covariance"),
        ("argmax", "arg_max"),
        ("percentile", "quantile"),
        ("array_agg", "collect"),
        ("hoping", "hopping"),
        ("KeyedWindow", "KeyedWindows"),
    ],
)
def test_names_of_other_libraries(name: str, meant: str) -> None:
    assert hasattr(sw, meant)
    with pytest.raises(AttributeError, match=rf"no attribute '{name}'.*sw\.{meant}\?$"):
        getattr(sw, name)


def test_unknown_names_get_a_hint() -> None:
    with pytest.raises(
        AttributeError, match=r"^module 'slidewise' has no attribute 'xyzzy'$"
    ):
        sw.xyzzy  # noqa: B018
    assert not hasattr(sw, "__path_of_nothing__")


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("windows", r"windows= takes .* not a mapping; got \{'1h': 3600\}"),
        ("by", r"by= takes a column or a list of columns, got \{'1h': 3600\}"),
    ],
)
def test_a_mapping_is_refused_where_its_values_would_be_ignored(
    argument: str, message: str
) -> None:
    given: dict[str, Any] = {"on": "t", "windows": "1h", "aggs": COUNT}
    given[argument] = {"1h": 3600}
    with pytest.raises(sw.SpecError, match=message):
        sw.rolling(ROWS, **given)


@pytest.mark.parametrize(
    ("windows", "message"),
    [
        ({"1h": "5m"}, r"not a mapping; got \{'1h': '5m'\}"),
        (b"x", "not bytes; got b'x'"),
    ],
)
@pytest.mark.parametrize("call", [sw.rolling, sw.hopping])
def test_windows_are_not_taken_from_values_with_other_items(
    call: Callable[..., object], windows: Any, message: str
) -> None:
    with pytest.raises(sw.SpecError, match=f"windows= takes one length .*{message}"):
        call(ROWS, on="t", windows=windows, aggs=COUNT)


def test_ranges_are_not_a_mapping() -> None:
    ranges: Any = {"1h": 3600}
    with pytest.raises(sw.SpecError, match=r"ranges= takes .* not a mapping"):
        sw.SharedWindow(sw.sum(), ranges=ranges)
