"""The specification of windows and aggregations, validated once.

Tables, files, streams and the command line build a `Spec` from the user's arguments.
Columns and their types are checked where a `Spec` is bound to a table.
"""

import hashlib
import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from functools import cache, cached_property
from os import PathLike
from typing import Any

from slidewise.aggregations import Aggregation
from slidewise.errors import SpecError
from slidewise.hints import suggest_argument, with_hints
from slidewise.spec import files
from slidewise.spec.arguments import (
    check_column_name,
    check_columns,
    one_of,
    refuse_duplicates,
)
from slidewise.spec.attributes import (
    NOT_OF_HOPPING,
    NOT_OF_ROLLING,
    check_hopping,
    check_rolling,
    hopping_attributes,
    rolling_attributes,
)
from slidewise.spec.canonical import canonical_json
from slidewise.spec.document import document_of, keywords_of
from slidewise.spec.durations import WindowLike
from slidewise.spec.fill import Fill
from slidewise.spec.naming import check_names, refuse_group
from slidewise.spec.notebook import as_html
from slidewise.spec.outputs import outputs_of
from slidewise.spec.own_windows import all_have_windows
from slidewise.spec.query import Query
from slidewise.spec.windows.base import Window
from slidewise.spec.windows.parse import (
    EveryLike,
    HoppingLike,
    RollingLike,
    are_hopping,
    gives_windows,
    parse_lengths,
)

__all__ = [
    "EveryLike",
    "HoppingLike",
    "RollingLike",
    "Spec",
    "are_of_hopping",
    "check_column_name",
    "check_columns",
    "derive",
    "document_of_spec",
    "from_keywords",
    "given_keywords",
    "one_of",
    "parse_lengths",
    "refuse_duplicates",
    "spec_of_document",
]


@dataclass(frozen=True, init=False, repr=False)
class Spec:
    """The windows and aggregations of `rolling`, `hopping` and `KeyedWindows`.

    Functions of slidewise take it in place of their keywords. It takes those of
    `rolling`, or of `hopping` (with `window=`, `every=` or `empty=`, or with `windows=`
    if one is a `Query`, a session or `until`).

    Raises:
        SpecError: If an argument is wrong; the message names the value and the way out.

    Cost: O(windows + aggregations), also of its methods; those for files read or write
    the file. `rolling`, `hopping` and `KeyedWindows` name the cost of results.

    Attributes:
        on: The column of event times.
        by: The key columns; empty for one group of all rows.
        windows: The windows, in the order of the result columns.
        aggs: Names and aggregations, in the order of the result columns.
        ties: "peers" or "rows".
        nan: "propagate", "skip" or "raise".
        arrival: The column of arrival order, the columns if several, or None.
        min_rows: Windows with fewer values are null.
        exclude: "self" if the window of a row does not hold that row, else None.
        unique_by: The columns of ids: of rows with equal keys and ids, the first to
            arrive counts. Empty if all rows count.
        empty: Whether hopping windows without rows are included.
        several: Whether there may be several hopping windows, which a column names.
        names: The names of result columns, with the fields `{agg}` and `{window}`, and
            `{group}` if it is part of `Features`; None for the default.
        prefix: The text before the name of each result column.
        fill: The names of aggregations whose null results are replaced, and by what.
        own: The labels of the windows of each aggregation; empty if all have all.
        overflow: "raise" or "null". Not part of `canonical` and `hash`: a stream may
            change it.

    Example:
        >>> import slidewise as sw
        >>> spec = sw.Spec(on="t", windows=["1h", "1d"], aggs={"n": sw.count()})
        >>> spec.results, spec.columns, spec.times, spec.arrivals
        (('n_1h', 'n_1d'), ('t',), ('t',), ())
        >>> spec.is_hopping, spec.counts_ticks
        (False, False)
        >>> spec.keywords
        {'on': 't', 'windows': ['1h', '1d'], 'aggs': {'n': count()}}
        >>> spec.canonical() == sw.Spec.from_json(spec.to_json()).canonical()
        True
        >>> spec.hash == spec.replace(overflow="null").hash
        True
    """

    on: str
    by: tuple[str, ...]
    windows: tuple[Window, ...]
    aggs: tuple[tuple[str, Aggregation], ...]
    ties: str
    nan: str
    arrival: str | tuple[str, ...] | None
    min_rows: int
    exclude: str | None = None
    unique_by: tuple[str, ...] = ()
    empty: bool = False
    several: bool = False
    names: str | None = None
    prefix: str = ""
    fill: Fill = ()
    own: tuple[tuple[str, ...], ...] = ()
    overflow: str = field(default="raise", metadata={"canonical": False})
    _given: dict[str, Any] = field(
        default_factory=dict,
        repr=False,
        compare=False,
        metadata={"canonical": False},
    )

    @with_hints
    def __init__(
        self,
        *,
        on: str | None = None,
        windows: RollingLike
        | HoppingLike
        | Iterable[RollingLike | HoppingLike | Query]
        | None = None,
        aggs: Mapping[str, Aggregation] | None = None,
        by: str | Sequence[str] | None = None,
        window: HoppingLike | None = None,
        every: EveryLike | None = None,
        closed: str | None = None,
        ties: str = "peers",
        nan: str = "propagate",
        arrival: str | Sequence[str] | None = None,
        min_rows: int = 0,
        unique_by: str | Sequence[str] | None = None,
        offset: WindowLike | None = None,
        exclude: str | None = None,
        empty: bool = False,
        overflow: str = "raise",
        names: str | None = None,
        prefix: str = "",
        fill: Any = None,
    ) -> None:
        """Checks the arguments, which the class documents."""
        request = given_keywords(locals())
        made = from_keywords(request, "Spec")
        self._set(made.__getstate__())

    def _set(self, values: Mapping[str, Any]) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __getstate__(self) -> dict[str, Any]:
        """The fields alone, without what was computed of them."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @classmethod
    def _of(cls, **values: Any) -> "Spec":
        """A Spec of these attributes, which are valid."""
        spec = object.__new__(cls)
        spec._set(_DEFAULTS | {"_given": {}} | values)
        return spec

    @property
    def _given_aggs(self) -> dict[str, Aggregation]:
        """The aggregations as the author named them, their windows written alike."""
        known = dict(self.aggs)
        given = self._given.get("aggs", known)
        return {name: known.get(name, agg) for name, agg in given.items()}

    @property
    def keywords(self) -> dict[str, Any]:
        """The keywords that make it, as the author gave them.

        Raises:
            SpecError: If an engine derived it from another Spec.
        """
        if not self._given:
            raise SpecError("the arguments of this Spec are not known: it was derived")
        given = self._given | {"aggs": self._given_aggs}
        # Lengths alone would be those of rolling.
        if self.is_hopping and not are_of_hopping(given):
            given["empty"] = self.empty
        return given

    @property
    def _shown(self) -> dict[str, Any]:
        shown = (each.name for each in fields(self) if each.repr)
        given = self._given or {name: getattr(self, name) for name in shown}
        return given | {"aggs": self._given_aggs}

    def __repr__(self) -> str:
        parts = [f"{name}={value!r}" for name, value in self._shown.items()]
        return f"{type(self).__name__}({', '.join(parts)})"

    def _repr_html_(self) -> str:
        return as_html({"": self._shown})

    def replace(self, **changes: Any) -> "Spec":
        """The same with other arguments, which are validated as those of the class.

        `window` and `windows` replace each other; `every`, `closed` and `offset` stay.

        Raises:
            SpecError: If an argument is wrong.
            TypeError: If an argument is unknown.

        Example:
            >>> import slidewise as sw
            >>> spec = sw.Spec(on="t", windows="1h", aggs={"n": sw.count()})
            >>> spec.replace(by="k", arrival=["batch", "a"]).columns
            ('t', 'k', 'batch', 'a')
            >>> spec.replace(windows=["5m", "1d"]).results
            ('n_5m', 'n_1d')
        """
        given = self.keywords
        if not changes.keys().isdisjoint({"window", "windows"}):
            given.pop("window", given.pop("windows", None))
        parameters = _parameters()
        for name in changes:
            # None stands for an argument that is left out.
            if changes[name] is None and parameters[name].default is None:
                given.pop(name, None)
            else:
                given[name] = changes[name]
        return from_keywords(given, "Spec")

    @classmethod
    def make(cls, **keywords: Any) -> "Spec":
        """Validates the keywords of `slidewise.rolling`.

        Raises:
            SpecError: If one is missing or wrong; the message names the value and the
                way out.
            TypeError: If one is unknown.

        Example:
            >>> import slidewise as sw
            >>> spec = Spec.make(on="t", windows="1h", aggs={"n": sw.count()})
            >>> spec.columns, spec.results
            (('t',), ('n_1h',))
        """
        return from_keywords(keywords, "Spec", is_hopping=False)

    @classmethod
    def make_hopping(cls, **keywords: Any) -> "Spec":
        """Validates the keywords of `slidewise.hopping`.

        Raises:
            SpecError: If one is missing or wrong; the message names the value and the
                way out.
            TypeError: If one is unknown.

        Example:
            >>> import slidewise as sw
            >>> spec = Spec.make_hopping(on="t", window="1h", aggs={"n": sw.count()})
            >>> spec.results
            ('window_start', 'window_end', 'n')
        """
        return from_keywords(keywords, "Spec", is_hopping=True)

    @classmethod
    def _made(cls, request: Mapping[str, Any], *, is_hopping: bool) -> "Spec":
        given = given_keywords(request)
        full = {name: one.default for name, one in _parameters().items()} | given
        attributes = hopping_attributes if is_hopping else rolling_attributes
        spec = cls._of(**attributes(full), _given=given)
        if is_hopping:
            check_hopping(spec)
        else:
            check_rolling(spec, full)
        return spec

    @cached_property
    def is_hopping(self) -> bool:
        """Whether windows are hopping or session windows."""
        return not all(window.per_row for window in self.windows)

    @cached_property
    def counts_ticks(self) -> bool:
        """Whether lengths are in the units of integer times."""
        lengths = (window.timed for window in self.windows)
        return any(each is not None and each.kind == "integer" for each in lengths)

    @cached_property
    def asks_for_rows(self) -> bool:
        """Whether a result depends on which row its window is of.

        Example:
            >>> import slidewise as sw
            >>> spec = sw.Spec(on="t", windows=5, aggs={"n": sw.count()})
            >>> spec.asks_for_rows, spec.replace(exclude="self").asks_for_rows
            (False, True)
        """
        ranks = any(agg.record.needs_row for _, agg in self.aggs)
        return ranks or self.exclude is not None

    @cached_property
    def results(self) -> tuple[str, ...]:
        """The names of the result columns, window by window."""
        columns = tuple(output.column for output in outputs_of(self))
        if not self.is_hopping:
            return columns
        which = ("window",) if self.several else ()
        return (*which, "window_start", "window_end", *columns)

    @cached_property
    def arrivals(self) -> tuple[str, ...]:
        """The columns of arrival order, the first one first; empty without."""
        if self.arrival is None:
            return ()
        return (self.arrival,) if isinstance(self.arrival, str) else self.arrival

    @cached_property
    def times(self) -> tuple[str, ...]:
        """The columns of times: of events, then of arrival; each once."""
        return tuple(dict.fromkeys([self.on, *self.arrivals]))

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads, each once."""
        names = [self.on, *self.by, *self.arrivals, *self.unique_by]
        for _, agg in self.aggs:
            names += agg.columns
        for window in self.windows:
            names += window.columns
        return tuple(dict.fromkeys(names))

    def canonical(self) -> str:
        """The spec as JSON: equal specs have equal text in every release."""
        return canonical_json(self)

    @cached_property
    def hash(self) -> str:
        """The SHA-256 of `canonical` in hex, which checkpoints compare."""
        return hashlib.sha256(self.canonical().encode()).hexdigest()

    def to_json(self) -> str:
        """The spec as JSON for people to read and write, which `from_json` reads.

        Keys are the names of parameters; values at their defaults are left out.
        User-defined aggregations are named by import path, "package.module:Name".

        Raises:
            SpecError: If an aggregation cannot be named so: it is defined in
                `__main__`, in a function, or without `name=`.

        Example:
            >>> import slidewise as sw
            >>> spec = sw.Spec(on="t", windows=["1h", "1d"], aggs={"n": sw.count()})
            >>> print(spec.to_json(), end="")
            {
              "version": 1,
              "on": "t",
              "windows": ["1h", "1d"],
              "aggs": {
                "n": {"kind": "count"}
              }
            }
        """
        return files.to_json(document_of_spec(self))

    @classmethod
    def from_json(cls, text: str) -> "Spec":
        """Reads a spec that `to_json` or a person wrote.

        It imports the modules of user-defined aggregations, which runs their code: read
        only specs that you trust.

        Args:
            text: The JSON.

        Raises:
            SpecError: If the text is not such JSON; the message names the key and the
                value.

        Example:
            >>> import slidewise as sw
            >>> sw.Spec.from_json('{"on": "t", "windows": ["1h"], "agg": {}}')
            Traceback (most recent call last):
            ...
            slidewise.errors.SpecError: unknown key 'agg': did you mean aggs=?
        """
        return spec_of_document(files.from_json(text))

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the spec to a file, which `load` reads.

        Args:
            path: The file: JSON (.json), or YAML (.yaml or .yml), which needs PyYAML:
                `pip install 'slidewise[yaml]'`.

        Raises:
            SpecError: If the file has another ending, or as for `to_json`.
            OSError: If the file cannot be written.

        Example:
            >>> import slidewise as sw, tempfile
            >>> spec = sw.Spec(on="t", windows=["1h", "1d"], aggs={"n": sw.count()})
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     spec.save(f"{folder}/features.json")
            ...     sw.Spec.load(f"{folder}/features.json") == spec
            True
        """
        files.write_document(document_of_spec(self), path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> "Spec":
        """Reads a spec from a file that `save` or a person wrote.

        It imports the modules of user-defined aggregations, as `from_json` does.

        Args:
            path: The file: .json, .yaml or .yml.

        Raises:
            SpecError: If it is not the file of a Spec; the message names the file, the
                key and the value.
            OSError: If the file cannot be read.

        Example:
            >>> import slidewise as sw
            >>> sw.Spec.load("features.toml")
            Traceback (most recent call last):
            ...
            slidewise.errors.SpecError: features.toml: the file of a Spec is named ...
        """
        return files.read(path, spec_of_document)


_DEFAULTS = {
    each.name: each.default for each in fields(Spec) if each.default is not MISSING
}


def document_of_spec(spec: Spec) -> dict[str, Any]:
    """The document of a Spec, after checking that it loads to this Spec."""
    document = document_of(spec.keywords)
    if spec_of_document(document) != spec:
        raise SpecError(f"this Spec cannot be written to a file: {spec}")
    return document


def spec_of_document(document: object) -> Spec:
    """The Spec of a document.

    Example:
        >>> spec_of_document({"on": "t", "windows": 5, "aggs": {"n": {"kind": "sum"}}})
        Traceback (most recent call last):
        ...
        slidewise.errors.SpecError: aggs['n']: ...
    """
    try:
        return from_keywords(keywords_of(document, [*_parameters()]), "Spec")
    except RecursionError:
        raise SpecError("the document of a Spec is nested too deeply") from None
    except TypeError as error:  # a keyword of rolling beside those of hopping
        raise SpecError(str(error)) from error


def derive(spec: Spec, **attributes: Any) -> Spec:
    """A Spec with other attributes, unchecked: an engine computes them.

    Example:
        >>> import slidewise as sw
        >>> spec = Spec(on="t", windows=5, aggs={"n": sw.count()})
        >>> derive(spec, by=("bucket", "k")).columns
        ('t', 'bucket', 'k')
    """
    return spec._of(**(spec.__getstate__() | {"_given": {}} | attributes))


def from_keywords(
    request: Mapping[str, Any], caller: str, is_hopping: bool | None = None
) -> Spec:
    """Makes a Spec from keywords of `rolling` or `hopping`.

    Raises:
        SpecError: If some are missing or wrong.
        TypeError: If a keyword is unknown.
    """
    if is_hopping is None and "window" in request and "windows" in request:
        raise SpecError("give windows= for rolling, or window= for hopping, not both")
    window = "window" if "window" in request else "windows"
    needed = ["on", window, "aggs"]
    if (
        is_hopping
        or all_have_windows(request.get("aggs"))
        or gives_windows(request.get("every"))
    ):
        needed.remove(window)
    if is_hopping is None:
        is_hopping = are_of_hopping(request)
    missing = [name for name in needed if name not in request]
    if missing:
        names = ", ".join(f"{name}=" for name in missing)
        raise SpecError(
            f"{names} {'is' if len(missing) == 1 else 'are'} missing"
            if caller == "Spec"
            else f"a Spec, or {names}, is missing"
        )
    if caller != "Spec":  # which may be part of Features
        refuse_group(check_names(request.get("names")))
    others = NOT_OF_HOPPING if is_hopping else NOT_OF_ROLLING
    known = [name for name in _parameters() if name not in others]
    for name in request:
        if name not in known:
            raise TypeError(
                f"{caller}() with {window}= takes no keyword argument {name!r}"
                f"{suggest_argument(name, known)}"
            )
    return Spec._made(request, is_hopping=is_hopping)


def are_of_hopping(request: Mapping[str, Any]) -> bool:
    """Whether keywords are those of `hopping`, not of `rolling`.

    Example:
        >>> are_of_hopping({"windows": ["1h"]}), are_of_hopping({"window": "1h"})
        (False, True)
    """
    hops = set(NOT_OF_ROLLING).intersection(request)
    return bool(hops) or are_hopping(request.get("windows"))


@cache
def _parameters() -> Mapping[str, inspect.Parameter]:
    """The keywords of a Spec. To read them takes as long as a small table."""
    return inspect.signature(Spec).parameters


def given_keywords(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The keywords of a `Spec` that differ from their defaults.

    Args:
        arguments: All arguments of a call, as `locals()` at its beginning has them.

    Example:
        >>> given_keywords({"df": 1, "on": "t", "closed": None, "ties": "rows"})
        {'on': 't', 'ties': 'rows'}
    """
    return {
        name: _copied(arguments[name])
        for name, parameter in _parameters().items()
        if name in arguments
        and (
            type(arguments[name]) is not type(parameter.default)
            or arguments[name] != parameter.default
        )
    }


def _copied(given: Any) -> Any:
    """An argument, copied if its owner may change it."""
    if isinstance(given, Mapping):
        return {**given}
    return [*given] if isinstance(given, Iterator | list) else given
