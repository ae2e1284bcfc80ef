"""Names of pandas, polars and SQL give a hint with the name in slidewise."""

import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any, get_type_hints

import pyarrow as pa
import pytest

import slidewise as sw
from slidewise import hint_words
from slidewise.hint_words import ADVICE, ARGUMENTS, NAMES, WAYS
from slidewise.hints import find_typo

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
        ({"drop_duplicates": "x"}, "'drop_duplicates': did you mean unique_by="),
        ({"agg": COUNT}, "'agg': did you mean aggs="),
        ({"clsoed": "left"}, "'clsoed': did you mean closed="),
        ({"center": True}, "'center': .* half .* offset='-30m' with windows='1h'"),
        ({"every": 5}, r"'every': .* sw\.hopping"),
        ({"nonsense": 5}, "'nonsense'$"),
        ({"late": "5m"}, r"'late': only streams have late rows: see sw\.KeyedWindows"),
        ({"grace": "5m"}, r"'grace': only streams have late rows"),
        ({"slide": 5}, r"'slide': for hopping windows there is sw\.hopping"),
        ({"label": "left"}, "'label'$"),
        ({"ddof": 0}, r"'ddof': .* sw\.stddev\('x', ddof=0\)"),
        ({"filter": "x"}, r"'filter': .* where='flag'"),
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
        ({"slide": 5}, "'slide': did you mean every="),
        ({"hop": 5}, "'hop': did you mean every="),
        ({"size": 5}, "'size': did you mean window="),
        ({"origin": 5}, "'origin': did you mean offset="),
        ({"label": "left"}, "'label': .* window_start and window_end"),
        ({"session_gap": 5}, r"'session_gap': .* window=sw\.session"),
        ({"at": ROWS}, r"'at': windows of hopping lie on a grid: .* sw\.rolling"),
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
    with pytest.raises(
        TypeError,
        match=r"after table by name: on='t', windows=5, aggs=\{'n': count\(\)\}$",
    ):
        rolling(ROWS, "t", 5, COUNT)
    with pytest.raises(TypeError, match=r"after table by name: on='t', windows='1h'$"):
        rolling(ROWS, "t", "1h")
    hopping: Any = sw.hopping
    with pytest.raises(TypeError, match=r"by name: on='t', window='1h', aggs=\{'n': c"):
        hopping(ROWS, "t", "1h", COUNT)
    spec: Any = sw.Spec
    with pytest.raises(
        TypeError, match=r"^Spec\(\) takes its arguments by name: on='t'"
    ):
        spec("t", 5, COUNT)
    with pytest.raises(TypeError, match=r"^Spec\(\) takes no .* did you mean aggs="):
        spec(on="t", windows=5, agg=COUNT)


@pytest.mark.parametrize("function", [sw.rolling, sw.KeyedWindows, sw.Spec])
def test_help_names_the_aliases_of_types(function: Any) -> None:
    shown = str(inspect.signature(function))
    assert "windows: RollingLike | Iterable[RollingLike" in shown
    assert "offset: WindowLike | None = None" in shown
    assert "aggs: Mapping[str, Aggregation] | None = None" in shown
    assert "slidewise." not in shown
    assert "collections.abc" not in shown


@pytest.mark.parametrize(
    ("function", "types"),
    [
        (sw.Window, "last: WindowLike | None = None"),
        (sw.SharedWindow, "ranges: Iterable[WindowLike] | None = None"),
        (sw.KeyedWindows.query, "windows: WindowLike | Iterable[WindowLike] | None"),
        (sw.KeyedWindows.from_bytes, "spec: Spec | Features | None = None"),
        (sw.hopping, "(table: TableT, spec: Spec | None = None"),
        (sw.trailing, "length: DurationLike"),
        (sw.cumulate, "every: DurationLike"),
        (sw.follow, "spec: Spec | None = None"),
        (sw.check_laws, "samples: Iterable[Any]"),
    ],
)
def test_help_names_types_without_their_modules(function: Any, types: str) -> None:
    shown = str(inspect.signature(function))
    assert types in shown
    assert "'Follower'" not in shown
    assert not re.search(r"slidewise[.]|collections[.]|typing[.]|datetime[.]|~", shown)


def test_annotations_stay_types() -> None:
    hints = get_type_hints(sw.rolling)
    assert hints["by"] == str | Sequence[str] | None
    bound = inspect.signature(sw.Spec.__init__).bind(None, on="t")
    assert bound.arguments == {"self": None, "on": "t"}
    assert inspect.signature(sw.rolling).parameters["ties"].default == "peers"


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
        ("regr_slope", "slope"),
        ("vwap", "weighted_mean"),
        ("shift", "lag"),
        ("tail", "last_k"),
        ("argmax", "arg_max"),
        ("percentile", "quantile"),
        ("array_agg", "collect"),
        ("hoping", "hopping"),
        ("KeyedWindow", "KeyedWindows"),
        ("collect_list", "collect"),
        ("collect_set", "collect_distinct"),
        ("max_by", "arg_max"),
        ("min_by", "arg_min"),
        ("any_value", "first"),
        ("len", "count"),
        ("var_samp", "variance"),
        ("stddev_samp", "stddev"),
        ("approx_n_unique", "approx_count_distinct"),
        ("percentile_approx", "approx_quantile"),
        ("approx_percentile", "approx_quantile"),
        ("argMax", "arg_max"),
        ("groupArray", "collect"),
        ("groupUniqArray", "collect_distinct"),
        ("uniq", "approx_count_distinct"),
        ("uniqExact", "count_distinct"),
        ("countDistinct", "count_distinct"),
        ("string_agg", "concat"),
        ("LISTAGG", "concat"),
        ("bool_and", "all"),
        ("rolling_std", "stddev"),
        ("rolling_mean_by", "mean"),
        ("TUMBLE", "hopping"),
        ("session_window", "session"),
        ("first_value", "first"),
        ("nlargest", "top_k"),
        ("idxmax", "arg_max"),
    ],
)
def test_names_of_other_libraries(name: str, meant: str) -> None:
    assert hasattr(sw, meant)
    with pytest.raises(AttributeError, match=rf"no attribute '{name}'.*sw\.{meant}\?$"):
        getattr(sw, name)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("stddev_pop", r"did you mean sw\.stddev\(ddof=0\)\?"),
        ("var_pop", r"did you mean sw\.variance\(ddof=0\)\?"),
        ("varPop", r"did you mean sw\.variance\(ddof=0\)\?"),
        ("covar_pop", r"did you mean sw\.covariance\(ddof=0\)\?"),
        ("count_if", r"sw\.count\(where="),
        ("sumIf", r"sw\.sum, with where="),
        ("nanmax", r"sw\.max, with nan='skip'"),
        ("diff", r"subtract sw\.last\('x'\) with closed='left'"),
        ("nth_value", r"sw\.collect\('x'\) has all values of a window"),
        ("cumsum", r"windows=sw\.unbounded\(\) holds all rows so far"),
        ("expanding", r"windows=sw\.unbounded\(\)"),
        ("topK", r"sw\.top_k gives the largest .* sw\.heavy_hitters the most frequent"),
        ("quantiles", r"sw\.quantile takes several"),
        ("merge_asof", r"sw\.rolling\(\.\.\., at=\)"),
        ("sumDistinct", r"sw\.collect_distinct"),
        ("mad", r"sw\.aggregation makes one of your own"),
        ("zscore", r"sw\.aggregation makes one of your own"),
    ],
)
def test_names_without_an_equivalent_get_a_way(name: str, words: str) -> None:
    with pytest.raises(AttributeError, match=rf"no attribute '{name}': .*{words}"):
        getattr(sw, name)


def test_the_words_name_what_is_there() -> None:
    for word, meant in NAMES.items():
        assert word == word.lower().replace("_", "")
        made = eval(f"sw.{meant}", {"sw": sw})
        assert isinstance(made, sw.Aggregation) or "(" not in meant
    texts = [
        *WAYS.values(),
        *(way for each in ADVICE.values() for way in each.values()),
    ]
    for text in texts:
        named = re.findall(r"\bsw\.(\w+)", text)
        assert [name for name in named if not hasattr(sw, name)] == []
    assert NAMES.keys().isdisjoint(WAYS)
    for words, lists in ((NAMES, hint_words._NAMES), (WAYS, hint_words._WAYS)):
        assert sum(len(listed.split()) for listed in lists.values()) == len(words)
    rows = sum(len(listed.split()) for listed in hint_words._ARGUMENTS.values())
    assert rows == len(ARGUMENTS)


def test_the_arguments_that_are_meant_are_there() -> None:
    functions: list[Any] = [sw.rolling, sw.hopping, sw.KeyedWindows, sw.Query]
    functions += [sw.Window, sw.SharedWindow, sw.sum, sw.quantile]
    known = {name for one in functions for name in inspect.signature(one).parameters}
    known |= {"agg", "checkpoint", "memory", "output", "time_format"}  # the command's
    meant = {name for names in ARGUMENTS.values() for name in names}
    assert meant - known == set()
    needed = {name for each in ADVICE.values() for name in each}
    assert needed - known == {"partitions"}  # Spark's


@pytest.mark.parametrize(
    "name",
    [
        "map",
        "mae",
        "pow",
        "exp",
        "mid",
        "sem",
        "rename",
        "round",
        "label",
    ],
)
def test_a_function_of_another_library_is_no_typing_error(name: str) -> None:
    assert find_typo(name, sw.__all__) is None


def test_typing_errors() -> None:
    for wrong, right in {
        "clsoed": "closed",
        "windws": "windows",
        "countdistinct": "count_distinct",
        "approx_count_distnict": "approx_count_distinct",
        "smu": "sum",
        "Sum": "sum",
    }.items():
        assert find_typo(wrong, ["closed", "windows", *sw.__all__]) == right
    for word, known in {
        "label": "table",
        "late": "at",
        "lag": "last",
        "sem": "sum",
    }.items():
        assert find_typo(word, [known]) is None


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
