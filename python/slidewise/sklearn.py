"""`RollingFeatures`: rolling aggregates as a transformer of scikit-learn."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from slidewise.aggregations import Aggregation
from slidewise.errors import SpecError
from slidewise.frames.adapt import frame, refuse_without_on
from slidewise.frames.arrow import arrow_frame
from slidewise.frames.base import Frame, Result, require
from slidewise.frames.lazy import collected
from slidewise.spec.arguments import check_columns
from slidewise.spec.durations import WindowLike
from slidewise.spec.features import Features, parts_of
from slidewise.spec.given import given_specs
from slidewise.spec.spec import RollingLike, Spec, given_keywords
from slidewise.table.arrays import (
    cast_lossless,
    decode_dictionary,
    is_same,
    one_column,
    take,
)
from slidewise.table.asof import columns_of_points
from slidewise.table.group_codes import group_codes
from slidewise.table.key_types import cast_key
from slidewise.table.rolling import compute_rolling
from slidewise.table.time_columns import read_times

try:
    import numpy as np
    from sklearn.base import BaseEstimator, TransformerMixin
    from sklearn.utils.validation import check_is_fitted
except ImportError as error:
    raise ImportError(
        f"RollingFeatures needs scikit-learn ({error}): "
        "pip install 'slidewise[sklearn]'"
    ) from error

__all__ = ["RollingFeatures"]


class RollingFeatures(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Rolling aggregates over the rows of `fit` and of `transform`, as of each row.

    `fit` keeps the columns that the Spec reads: the history. `transform` gives each of
    its rows what `slidewise.rolling` gives it over the history and the rows of
    `transform` together. So no window holds a row later than its own, a row of test
    data sees the history as of its time, and the same row has the same features in
    training and in service.

    The rows of `transform` are new ones, unless they are, all and in order, those of
    `fit`: these count once, so that `fit(X).transform(X)` equals `fit_transform(X)`.
    For a part of them, or old and new rows together, `row_id=` names what tells a row:
    a row with an id of the history is that row.

    With `at_on=` or `at_by=` the rows of `transform` are labels, as those of `at=` in
    `slidewise.rolling`: they have times and keys alone, and count in no window.

    Args:
        spec: A `Spec` or `Features`, in place of the arguments that make one: all but
            `at_on`, `at_by`, `row_id` and `threads`.
        on: As for `slidewise.rolling`, as are the arguments up to `fill`.
        windows: One window or several.
        aggs: Names and aggregations.
        by: The key column, or several.
        closed: The ends that belong to a window.
        ties: Whether rows of equal time see one another.
        nan: "propagate", "skip" or "raise".
        arrival: The column of arrival order, or several.
        min_rows: A window with fewer values gives a missing value.
        unique_by: The column of ids, or several, of rows that count once.
        offset: How much earlier windows end.
        exclude: "self" if windows leave their row out.
        overflow: "raise" or "null".
        names: The names of the features.
        prefix: A text before each name.
        fill: A value in place of missing results.
        at_on: The column of times of the rows of `transform`, which are labels.
        at_by: Their key columns, as for `slidewise.rolling`.
        row_id: The column that tells a row, or several, such as a payment's number. Of
            n rows of the history with one id, the first n of `transform` are these.
        threads: The number of threads.

    Attributes:
        spec_: The Spec or Features.
        history_: The rows of `fit`, as a pyarrow Table of the columns that are needed.
        n_features_in_: The number of columns of `fit`.
        feature_names_in_: Their names, if these are texts.

    Raises:
        SpecError: As for `slidewise.rolling`, in `fit` and `transform`; a ValueError.
        ResultOverflowError: As for `slidewise.rolling`, in `transform`.
        NotFittedError: Of scikit-learn, in `transform` before `fit`.

    Cost: `fit` O(n); `transform` that of `slidewise.rolling` over the history and its
    rows. A service that answers single rows uses `KeyedWindows`.

    Example:
        >>> import pandas as pd, slidewise as sw
        >>> from slidewise.sklearn import RollingFeatures
        >>> train = pd.DataFrame({"t": [1, 2], "card": ["A", "B"], "paid": [5.0, 7.0]})
        >>> test = pd.DataFrame({"t": [4, 5], "card": ["A", "A"], "paid": [1.0, 2.0]})
        >>> rolling = RollingFeatures(on="t", by="card", windows=4,
        ...                           aggs={"n": sw.count(), "paid": sw.sum("paid")})
        >>> rolling.fit_transform(train)["paid_4"].tolist()
        [5.0, 7.0]
        >>> rolling.transform(test)["paid_4"].tolist()
        [6.0, 3.0]
        >>> rolling.get_feature_names_out().tolist()
        ['n_4', 'paid_4']
    """

    def __init__(
        self,
        spec: Spec | Features | None = None,
        *,
        on: str | None = None,
        windows: RollingLike | Iterable[RollingLike] | None = None,
        aggs: Mapping[str, Aggregation] | None = None,
        by: str | Sequence[str] | None = None,
        closed: str | None = None,
        ties: str = "peers",
        nan: str = "propagate",
        arrival: str | Sequence[str] | None = None,
        min_rows: int = 0,
        unique_by: str | Sequence[str] | None = None,
        offset: WindowLike | None = None,
        exclude: str | None = None,
        overflow: str = "raise",
        names: str | None = None,
        prefix: str = "",
        fill: Any = None,
        at_on: str | None = None,
        at_by: str | Sequence[str] | Mapping[str, str] | None = None,
        row_id: str | Sequence[str] | None = None,
        threads: int | None = None,
    ) -> None:
        self.spec = spec
        self.on = on
        self.windows = windows
        self.aggs = aggs
        self.by = by
        self.closed = closed
        self.ties = ties
        self.nan = nan
        self.arrival = arrival
        self.min_rows = min_rows
        self.unique_by = unique_by
        self.offset = offset
        self.exclude = exclude
        self.overflow = overflow
        self.names = names
        self.prefix = prefix
        self.fill = fill
        self.at_on = at_on
        self.at_by = at_by
        self.row_id = row_id
        self.threads = threads

    def fit(self, X: Any, y: Any = None) -> "RollingFeatures":  # noqa: ARG002, N803
        """Keeps the rows, which windows of later rows hold.

        Args:
            X: A table that `slidewise.rolling` takes.
            y: Ignored.

        Returns:
            The transformer.
        """
        if self.spec is None and self.on is None:
            refuse_without_on(X)
        request = given_keywords(self.get_params(deep=False))
        spec = given_specs(self.spec, request, "RollingFeatures", is_hopping=False)
        columns_of_points(spec, X, self.at_on, self.at_by)
        source = frame(collected(X))
        ids = check_columns(self.row_id, "row_id")
        names = [*dict.fromkeys([*spec.columns, *ids])]
        require(source, names)
        history = pa.table({name: _values(source, name) for name in names})
        # Refuses types of columns, and rows without a time.
        compute_rolling(arrow_frame(history.slice(0, 0)), parts_of(spec), None)
        for name in spec.times:
            read_times(history.column(name).combine_chunks(), name)
        self.spec_, self.history_ = spec, history
        self.n_features_in_ = len(source.names)
        if all(isinstance(name, str) for name in source.names):
            self.feature_names_in_ = np.array(source.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return self

    def transform(self, X: Any) -> Any:  # noqa: N803
        """The features of rows, as of their times.

        Args:
            X: A table with the columns that the Spec reads; with `at_on=` or `at_by=`
                those of times and keys. Times and keys have the types of `fit`.

        Returns:
            The features alone, in the order of the rows: as a frame where `X` is one of
            pandas (with its index), polars or narwhals, else as an array. Numbers and
            booleans that may be missing are float64, as models take them.
        """
        check_is_fitted(self)
        return self._answer(X, frame(collected(X)))

    def fit_transform(self, X: Any, y: Any = None) -> Any:  # noqa: N803
        """The features of the rows of `fit`: those of `fit(X).transform(X)`."""
        X = collected(X)  # noqa: N806 - its rows are computed once
        return self.fit(X, y)._answer(X, frame(X), fitted=True)

    def get_feature_names_out(self, input_features: Any = None) -> Any:  # noqa: ARG002
        """The names of the features, as an array of texts."""
        check_is_fitted(self)
        return np.array(self.spec_.results, dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Named columns of times, keys and values: no matrix of numbers.
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "history_")

    def _answer(self, given: Any, target: Frame, fitted: bool = False) -> Any:
        specs = parts_of(self.spec_)
        if self.at_on is not None or self.at_by is not None:
            names = columns_of_points(self.spec_, target, self.at_on, self.at_by)
            source = arrow_frame(self.history_)
            results = compute_rolling(source, specs, target, names, self.threads)
        elif fitted:
            source = arrow_frame(self.history_)
            results = compute_rolling(source, specs, None, None, self.threads)
        else:
            ids = check_columns(self.row_id, "row_id")
            rows, places = _joined(self.history_, target, ids)
            whole = compute_rolling(arrow_frame(rows), specs, None, None, self.threads)
            results = {
                name: result._replace(array=take(result.array, places))
                for name, result in whole.items()
            }
        columns = {name: _for_models(each) for name, each in results.items()}
        answer = target.make(columns)
        pandas = sys.modules.get("pandas")
        if pandas is not None and isinstance(given, pandas.DataFrame):
            answer.index = given.index
        return answer if hasattr(answer, "to_numpy") else _matrix(columns)


def _for_models(result: Result) -> Result:
    """Numbers and booleans as NumPy's; those that may be missing as float64."""
    kind = result.array.type
    number = pa.types.is_integer(kind) or pa.types.is_boolean(kind)
    array = result.array
    if result.nullable and number:
        array = array.cast(pa.float64(), safe=False)
    return Result(array, None, same_type=False, nullable=result.nullable)


def _matrix(columns: Mapping[str, Result]) -> Any:
    """Features as an array of a column each; of objects, if some are no numbers."""
    arrays = [each.array.to_numpy(zero_copy_only=False) for each in columns.values()]
    if any(array.dtype.kind not in "bif" for array in arrays):
        arrays = [array.astype(object) for array in arrays]
    return np.column_stack(arrays)


def _joined(
    history: pa.Table, target: Frame, ids: Sequence[str]
) -> tuple[pa.Table, pa.Array]:
    """The history and the rows that are new to it, and the place of each row there."""
    require(target, history.column_names)
    pairs = {
        name: _alike(name, history.column(name).combine_chunks(), _values(target, name))
        for name in history.column_names
    }
    known, number = history.num_rows, target.length
    is_new, places = np.ones(number, dtype=bool), known + np.arange(number)
    if ids:
        codes = group_codes([(name, one_column(pairs[name])) for name in ids])
        assert codes is not None, "there is a column"
        is_new, places = _match(*np.split(codes.to_numpy(), [known]))
    elif number == known and all(is_same(*pair) for pair in pairs.values()):
        is_new, places = ~is_new, places - known
    added = pa.array(is_new)
    rows = {
        name: one_column([old, new.filter(added)]) for name, (old, new) in pairs.items()
    }
    return pa.table(rows), pa.array(places)


def _match(known: Any, given: Any) -> tuple[Any, Any]:
    """Finds given codes among the known ones, each of these once.

    Returns:
        Whether each given code is new, and its place in the known codes followed by the
        new ones.

    Example:
        >>> is_new, places = _match(np.array([7, 5, 7]), np.array([7, 7, 7, 6]))
        >>> is_new.tolist(), places.tolist()
        ([False, False, True, True], [0, 2, 3, 4])
    """
    largest = int(max(known.max(initial=0), given.max(initial=0)))
    counts = np.bincount(known, minlength=largest + 1)
    starts = np.cumsum(counts) - counts
    number = _occurrences(given)
    is_new = number >= counts[given]
    places = np.empty(len(given), dtype=np.int64)
    places[is_new] = len(known) + np.arange(np.count_nonzero(is_new))
    old = ~is_new
    order = np.argsort(known, kind="stable")
    places[old] = order[starts[given[old]] + number[old]]
    return is_new, places


def _occurrences(codes: Any) -> Any:
    """How often the code of each place has occurred before it."""
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    begins = np.r_[True, ordered[1:] != ordered[:-1]][: len(codes)]
    first = np.maximum.accumulate(np.where(begins, np.arange(len(codes)), 0))
    number = np.empty(len(codes), dtype=np.int64)
    number[order] = np.arange(len(codes)) - first
    return number


def _values(source: Frame, name: str) -> pa.Array:
    """A column, as its values where categories have no order."""
    column = source.column(name)
    if pa.types.is_dictionary(column.type) and column.type.ordered:
        return column
    return decode_dictionary(column)


def _alike(name: str, old: pa.Array, new: pa.Array) -> tuple[pa.Array, pa.Array]:
    """A column of the history and of other rows in one type.

    Raises:
        SpecError: If that of the other rows does not convert without loss.
    """
    held, given = old.type, new.type
    if pa.types.is_null(held):
        return old.cast(given), new
    try:
        if pa.types.is_dictionary(held):
            if given != held or not old.dictionary.equals(new.dictionary):
                raise pa.ArrowInvalid("other categories, or in another order")
            return old, new
        new = decode_dictionary(new)
        numbers = _is_number(held) and _is_number(given)
        return old, (cast_lossless if numbers else cast_key)(new, held)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise SpecError(
            f"column {name!r} is {given} in transform and {held} in fit, and does "
            "not convert without loss: cast one of them"
        ) from error


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))
