"""`slidewise.sklearn.RollingFeatures`: new rows see those of `fit`."""

import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from seeds import SEED

import slidewise as sw

pytest.importorskip("sklearn", reason="scikit-learn is not installed")

from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks

from slidewise.sklearn import RollingFeatures

AGGS = {"n": sw.count(), "sum": sw.sum("x"), "first": sw.first("x")}
REQUEST: dict[str, Any] = {"on": "t", "by": "k", "windows": [4, 9], "aggs": AGGS}
TRAIN = pd.DataFrame({"t": [1, 2, 5], "k": ["a", "b", "a"], "x": [10, 20, 30]})
TEST = pd.DataFrame({"t": [6, 4], "k": ["a", "a"], "x": [1, 2]}, index=[7, 8])
SUM: dict[str, Any] = {"on": "t", "by": "k", "windows": 4, "aggs": {"s": sw.sum("x")}}


def payments(rows: int) -> pd.DataFrame:
    """Rows in any order of time, of which many are equal."""
    draw = np.random.default_rng(SEED)
    return pd.DataFrame(
        {
            "t": draw.integers(0, rows // 3, rows),
            "k": draw.choice(["a", "b"], rows),
            "x": draw.integers(0, 3, rows),
            "came": draw.permutation(rows),
        }
    )


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"closed": "left"},
        {"ties": "rows"},
        {"windows": [sw.rows(3), sw.unbounded()], "ties": "rows"},
        {"exclude": "self", "offset": 2},
        {"arrival": "came"},
        {"by": None, "min_rows": 2},
    ],
    ids=str,
)
def test_new_rows_see_the_history_as_rolling_does(options: dict[str, Any]) -> None:
    rows, request = payments(300), REQUEST | options
    draw = np.random.default_rng(SEED)
    for known in (rows["t"] < 60, pd.Series(draw.random(300) < 0.6)):
        train, test = rows[known], rows[~known]
        whole = sw.rolling(pd.concat([train, test]), **request)
        transformer = RollingFeatures(**request)
        fitted = transformer.fit_transform(train)
        alone = sw.rolling(train, **request)[[*fitted.columns]]
        pd.testing.assert_frame_equal(fitted, alone.astype(fitted.dtypes))
        pd.testing.assert_frame_equal(transformer.transform(train), fitted)
        for _ in range(2):  # transform leaves the history as it is
            got = transformer.transform(test)
            expected = whole.loc[test.index, [*got.columns]].astype(got.dtypes)
            pd.testing.assert_frame_equal(got, expected)
        frame = transformer.transform(pl.from_pandas(test))
        assert isinstance(frame, pl.DataFrame)
        np.testing.assert_array_equal(frame.to_numpy(), got.to_numpy())


def test_no_row_sees_a_later_one() -> None:
    later = pd.DataFrame({"t": [7, 9], "k": ["a", "a"], "x": [1000, 1000]})
    got = RollingFeatures(**SUM).fit(TRAIN).transform(TEST)
    assert got["s_4"].tolist() == [33.0, 12.0]
    seen = RollingFeatures(**SUM).fit(pd.concat([TRAIN, later])).transform(TEST)
    assert seen["s_4"].tolist() == [33.0, 12.0]
    assert seen.index.tolist() == [7, 8]


def test_no_rows_are_rows() -> None:
    none = TEST[:0]
    got = RollingFeatures(**SUM).fit(TRAIN).transform(none)
    assert got.shape == (0, 1)
    transformer = RollingFeatures(**SUM, row_id="t").fit(TRAIN[:0])
    assert transformer.transform(TEST)["s_4"].tolist() == [3.0, 2.0]
    assert transformer.transform(none).shape == (0, 1)


def test_rows_of_the_history_count_once_by_row_id() -> None:
    rows = payments(200).assign(id=range(200))
    transformer = RollingFeatures(**REQUEST, row_id="id")
    whole = transformer.fit_transform(rows)
    shuffled = rows.sample(frac=0.5, random_state=1)
    got = transformer.transform(shuffled)
    pd.testing.assert_frame_equal(got, whole.loc[shuffled.index])
    transformer.fit(rows[:120])  # of which some come again with the new ones
    got = transformer.transform(rows[60:])
    pd.testing.assert_frame_equal(got, whole[60:])


def test_equal_ids_are_one_row_each() -> None:
    rows = pd.DataFrame({"t": [1, 1, 2], "x": [5, 7, 9], "id": ["p", "p", "q"]})
    request = {
        "on": "t",
        "windows": 9,
        "aggs": {"all": sw.collect("x")},
        "ties": "rows",
    }
    transformer = RollingFeatures(**request, row_id=["id"]).fit(rows)
    again = pd.DataFrame({"t": [1, 1, 1], "x": [5, 7, 8], "id": ["p", "p", "p"]})
    got = [[*seen] for seen in transformer.transform(again)["all_9"]]
    assert got == [[5], [5, 7], [5, 7, 8]]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_labels_count_in_no_window(make: Any) -> None:
    labels = make({"asked": [6, 4, 4], "who": ["a", "a", "c"]})
    names = {"at_on": "asked", "at_by": {"k": "who"}}
    transformer = RollingFeatures(**SUM, **names, prefix="card_").fit(TRAIN)
    got = transformer.transform(labels)
    expected = sw.rolling(TRAIN, **SUM, **names, at=labels, prefix="card_")
    assert transformer.get_feature_names_out().tolist() == ["card_s_4"]
    assert [None if v != v else v for v in got["card_s_4"]] == [30, 10, None]
    assert len(got.columns) == 1
    assert len(expected) == len(got)
    same = RollingFeatures(**SUM, at_on="t").fit(TRAIN)
    assert same.transform(TEST)["s_4"].tolist() == [30.0, 10.0]


def test_a_frozen_history_answers_labels_in_a_pipeline() -> None:
    labels = pd.DataFrame({"t": [6, 4, 3], "k": ["a", "a", "b"]})
    history = RollingFeatures(**SUM, at_on="t", fill=0).fit(TRAIN)
    pipeline = make_pipeline(FrozenEstimator(history), LinearRegression())
    pipeline.fit(labels, [60.0, 20.0, 40.0])  # twice the sums 30, 10 and 20
    np.testing.assert_allclose(pipeline.predict(labels[:2]), [60.0, 20.0])


def test_features_and_specs_are_taken() -> None:
    spec = sw.Spec(**SUM)
    features = sw.Features(key=spec, all=spec.replace(by=None))
    got = RollingFeatures(features).fit(TRAIN).transform(TEST)
    assert got["key_s_4"].tolist() == [33.0, 12.0]
    assert got["all_s_4"].tolist() == [33.0, 32.0]
    got = RollingFeatures(spec, row_id="t").fit(TRAIN).transform(TEST)
    assert got["s_4"].tolist() == [33.0, 12.0]


def test_numbers_are_those_of_models() -> None:
    aggs = {"n": sw.count(), "x": sw.last("x"), "up": sw.any("up"), "k": sw.last("k")}
    rows = TRAIN.assign(up=[True, False, None]).astype({"x": "Int64", "up": "boolean"})
    transformer = RollingFeatures(on="t", windows=4, closed="left", aggs=aggs).fit(rows)
    got = transformer.transform(rows)
    kinds = [dtype.kind for dtype in got.dtypes]
    assert kinds[:3] == ["i", "f", "f"]
    assert got["n_4"].tolist() == [0, 1, 2]
    assert got["x_4"].fillna(-1).tolist() == [-1, 10, 20]
    array = transformer.transform(pa.Table.from_pandas(rows))
    assert array.dtype == object
    assert array[2].tolist() == [2, 20.0, 1.0, "b"]
    transformer.set_params(aggs={"n": sw.count(), "x": sw.last("x")}).fit(rows)
    columns = {name: rows[name].to_numpy() for name in ("t",)} | {
        "x": np.array([1, 2, 3])
    }
    assert transformer.fit_transform(columns)[1:].tolist() == [[1.0, 1.0], [2.0, 2.0]]


def test_narwhals_frames_come_back() -> None:
    narwhals = pytest.importorskip("narwhals", reason="narwhals is not installed")
    test = narwhals.from_native(TEST)
    got = RollingFeatures(**SUM).fit(narwhals.from_native(TRAIN)).transform(test)
    assert isinstance(got, narwhals.DataFrame)
    assert got["s_4"].to_list() == [33.0, 12.0]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_the_output_is_what_set_output_asks_for(make: Any) -> None:
    train, test = (make(rows.to_dict("list")) for rows in (TRAIN, TEST))
    transformer = RollingFeatures(**SUM).fit(train)
    for name, kind in (("pandas", pd.DataFrame), ("polars", pl.DataFrame)):
        got = transformer.set_output(transform=name).transform(test)
        assert isinstance(got, kind)
        assert [*got.columns] == ["s_4"]
        assert [*got["s_4"]] == [33.0, 12.0]
        assert [*transformer.fit_transform(train)["s_4"]] == [10.0, 20.0, 30.0]
    default = transformer.set_output(transform="default").transform(test)
    assert isinstance(default, np.ndarray if make is pa.table else make)


def test_lazy_frames_are_collected() -> None:
    train, test = (pl.from_pandas(rows).lazy() for rows in (TRAIN, TEST))
    transformer = RollingFeatures(**SUM)
    assert transformer.fit_transform(train)["s_4"].to_list() == [10.0, 20.0, 30.0]
    assert transformer.transform(test)["s_4"].to_list() == [33.0, 12.0]


def test_copies_keep_arguments_and_pickles_the_history() -> None:
    transformer = RollingFeatures(**SUM, prefix="p_").fit(TRAIN)
    copy = clone(transformer)
    assert copy.get_params()["prefix"] == "p_"
    assert not hasattr(copy, "history_")
    again = pickle.loads(pickle.dumps(transformer))
    assert again.transform(TEST)["p_s_4"].tolist() == [33.0, 12.0]
    assert again.feature_names_in_.tolist() == ["t", "k", "x"]
    assert again.n_features_in_ == 3
    again.set_params(windows=2).fit(TRAIN)
    assert again.transform(TEST)["p_s_2"].tolist() == [31.0, 2.0]


def test_before_fit_it_is_not_fitted() -> None:
    transformer = RollingFeatures(**SUM)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        transformer.transform(TEST)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        transformer.get_feature_names_out()


def test_fit_refuses_what_rolling_refuses() -> None:
    for changed, message in [
        ({"on": "at"}, "no column 'at'; it has t, k, x"),
        ({"row_id": "id"}, "no column 'id'; it has t, k, x"),
        ({"windows": "1x"}, "1x"),
        ({"aggs": {"s": sw.sum("k")}}, "'k'"),
        ({"at_by": ["k", "x"]}, "names other columns than one for each of by="),
        ({"on": None}, "a Spec, or on=, is missing"),
        ({"spec": sw.Spec(**SUM)}, "a Spec or keywords, not both"),
    ]:
        with pytest.raises(sw.SpecError, match=message):
            RollingFeatures(**SUM).set_params(**changed).fit(TRAIN)
    hops = sw.Spec(on="t", window=5, aggs={"n": sw.count()})
    with pytest.raises(sw.SpecError, match="not one per row: give it to hopping"):
        RollingFeatures(hops).fit(TRAIN)
    with pytest.raises(sw.SpecError, match="'t' has no time in row 1"):
        RollingFeatures(**SUM).fit(
            TRAIN.assign(t=pd.Series([1, None, 3], dtype="Int64"))
        )
    with pytest.raises(sw.SpecError, match="ndarray is not a table"):
        RollingFeatures(**SUM).fit(TRAIN.to_numpy())
    indexed = TRAIN.set_index(pd.to_datetime(TRAIN["t"], unit="h").rename("when"))
    with pytest.raises(sw.SpecError, match=r"on= is missing.*on='when'"):
        RollingFeatures(windows="1h", aggs={"n": sw.count()}).fit(indexed)


def test_transform_refuses_other_columns_and_types() -> None:
    transformer = RollingFeatures(**SUM).fit(TRAIN)
    for changed, message in [
        (TEST[["t", "x"]], "no column 'k'; it has t, x"),
        (TEST.assign(x=[1.5, 2.0]), "'x' is double in transform and int64 in fit"),
        (TEST.assign(x=["1", "2"]), "'x' is .*string in transform and int64 in fit"),
        (TEST.assign(t=pd.to_datetime(TEST["t"])), "'t' is timestamp.* int64 in fit"),
    ]:
        with pytest.raises(sw.SpecError, match=message):
            transformer.transform(changed)
    whole = TEST.assign(x=[1.0, 2.0], t=TEST["t"].astype("int8"))
    assert transformer.transform(whole)["s_4"].tolist() == [33.0, 12.0]
    missing = TEST.assign(x=[np.nan, 2.0])
    assert transformer.transform(missing)["s_4"].tolist() == [32.0, 12.0]


def test_categories_are_those_of_fit_if_they_have_an_order() -> None:
    def sized(values: list[str], names: list[str]) -> pd.DataFrame:
        sizes = pd.Categorical(values, names, ordered=True)
        return pd.DataFrame({"t": range(len(values)), "size": sizes})

    train = sized(["small", "large"], ["small", "large"])
    aggs = {"top": sw.max("size"), "n": sw.count()}
    transformer = RollingFeatures(on="t", windows=9, aggs=aggs).fit(train)
    test = sized(["large", "small"], ["small", "large"])
    assert transformer.transform(test)["top_9"].tolist() == ["large", "large"]
    with pytest.raises(sw.SpecError, match="'size' is dictionary"):
        transformer.transform(sized(["large"], ["large", "small"]))
    plain = RollingFeatures(**SUM).fit(TRAIN.astype({"k": "category"}))
    assert plain.transform(TEST)["s_4"].tolist() == [33.0, 12.0]
    assert plain.transform(TEST.astype({"k": "category"}))["s_4"].tolist() == [
        33.0,
        12.0,
    ]


# Those that need no matrix of numbers: X has named columns of times, keys and values.
# All other checks of scikit-learn give one, and the tag `two_d_array` leaves them out.
CHECKS = [
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_estimator_tags_renamed",
    "check_estimators_unfitted",
    "check_get_feature_names_out_error",
    "check_get_params_invariance",
    "check_mixin_order",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_set_params",
    "check_transformers_unfitted",
    "check_valid_tag_types",
]


@pytest.mark.parametrize("check", CHECKS)
def test_the_checks_of_scikit_learn_without_a_matrix(check: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        getattr(estimator_checks, check)("RollingFeatures", RollingFeatures(**SUM))


def test_it_works_within_pipelines_and_searches() -> None:
    rows = payments(120).sort_values("t", ignore_index=True)
    old = rows["t"] < 30
    target = rows["x"] * 2.0 + 1
    rolling = RollingFeatures(**REQUEST, fill=0)
    pipeline = make_pipeline(rolling, LinearRegression()).fit(rows[old], target[old])
    whole = sw.rolling(rows, **REQUEST, fill=0)[[*rolling.get_feature_names_out()]]
    model = LinearRegression().fit(whole[old], target[old])
    for part in (rows[~old], rows[old]):
        expected = model.predict(whole.loc[part.index])
        np.testing.assert_allclose(pipeline.predict(part), expected)
    search = GridSearchCV(
        pipeline, {"rollingfeatures__windows": [2, 9]}, cv=TimeSeriesSplit(2)
    )
    assert search.fit(rows, target).best_params_["rollingfeatures__windows"] in (2, 9)
    columns = make_column_transformer(
        (clone(rolling), ["t", "k", "x"]), ("passthrough", ["x"])
    )
    assert columns.fit_transform(rows).shape == (120, 7)
    assert columns.get_feature_names_out()[-1] == "passthrough__x"
