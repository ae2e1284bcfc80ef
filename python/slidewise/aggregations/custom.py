"""Aggregations of your own: a lift, an associative combine, a lower.

`aggregation` makes one, of functions or of a class; it then stands wherever a built-in
one does. What the functions must obey, `slidewise.check_laws` tests.
"""

import pickle
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, overload
from weakref import WeakValueDictionary

import pyarrow as pa

from slidewise.aggregations import Aggregation
from slidewise.aggregations.registry import by_reference, check_column_names, resolve
from slidewise.aggregations.return_types import hinted_type, read_type
from slidewise.errors import SpecError

__all__ = ["CustomAggregation", "Functions", "aggregation", "find_custom"]

Function = Callable[..., Any]


class _Missing:
    def __repr__(self) -> str:
        return "<missing>"


_MISSING: Any = _Missing()


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Functions:
    """What a user gave to `aggregation`. Compared by identity.

    Attributes:
        name: "module:qualified name", or None where none was given: what snapshots and
            pickles call it.
        lift: From a value to a partial; None for the value itself.
        combine: From an earlier and a later partial to that of both.
        lower: From a partial to the answer; None for the partial itself.
        identity: The partial of nothing.
        inverse: From a whole and its oldest part to the rest, or None.
        commutative: Whether combine may take its operands in either order.
        encode: From a partial to bytes, or None.
        decode: And back.
        codec: As it was given.
        returns: The type of its answers, or None where that was not said.
    """

    name: str | None
    lift: Function | None
    combine: Function
    lower: Function | None
    identity: Any
    inverse: Function | None
    commutative: bool
    encode: Function | None
    decode: Function | None
    codec: Any
    returns: pa.DataType | None = None

    @property
    def known_type(self) -> pa.DataType | None:
        """The type of its answers, as far as anything tells it before there are any."""
        if self.returns is not None:
            return self.returns
        return hinted_type(self.combine if self.lower is None else self.lower)

    @property
    def label(self) -> str:
        """The name without its module, for messages."""
        if self.name is not None:
            return self.name.rpartition(":")[2]
        inner = getattr(self.combine, "__qualname__", type(self.combine).__name__)
        return f"aggregation(combine={inner})"

    @property
    def canonical(self) -> str:
        """What a spec's hash knows it by."""
        if self.name is not None:
            return self.name
        module = getattr(self.combine, "__module__", "?")
        return f"{module}:{self.label}"


@dataclass(frozen=True, slots=True, repr=False)
class CustomAggregation(Aggregation):
    """An aggregation of the user's own. Made by `aggregation`.

    Call it with the name of a column to use it over a table, or over values that are
    mappings.

    Attributes:
        functions: What it was made of.
    """

    functions: Functions = _MISSING

    def __post_init__(self) -> None:
        if not isinstance(self.functions, Functions):
            raise SpecError("make aggregations of your own with sw.aggregation(...)")
        check_column_names(self._called, self.of, self.where)

    def __call__(
        self, column: str | None = None, *, where: str | None = None
    ) -> "CustomAggregation":
        """The same aggregation of a column."""
        return replace(self, of=column, where=where)

    @property
    def _called(self) -> str:
        return self.functions.label

    def __reduce__(self) -> str | tuple[Any, ...]:
        """By reference where its name leads to it, else by its functions."""
        name = self.functions.name
        base = resolve(name)
        # Another process has a main module of its own.
        elsewhere = name is not None and name.startswith("__main__:")
        if elsewhere or getattr(base, "functions", None) is not self.functions:
            return _remade, (self.of, self.where, *_parts(self.functions))
        return by_reference, (name, self.of, self.where)

    @property
    def lift(self) -> Function | None:
        """From a value to a partial; None for the value itself."""
        return self.functions.lift

    @property
    def combine(self) -> Function:
        """From an older and a younger partial to that of both."""
        return self.functions.combine

    @property
    def lower(self) -> Function | None:
        """From a partial to the answer; None for the partial itself."""
        return self.functions.lower

    @property
    def inverse(self) -> Function | None:
        """From a whole and its oldest part to the rest, or None."""
        return self.functions.inverse

    @property
    def identity(self) -> Any:
        """The partial of nothing."""
        return self.functions.identity


# Those alive, by name: what a snapshot's header may refer to.
_KNOWN: WeakValueDictionary[str, Functions] = WeakValueDictionary()


def find_custom(name: str) -> CustomAggregation | None:
    """The aggregation of that name, if it has been defined in this process."""
    functions = _KNOWN.get(name)
    return None if functions is None else CustomAggregation("own", functions=functions)


def _parts(functions: Functions) -> tuple[Any, ...]:
    return (
        functions.name,
        functions.lift,
        functions.combine,
        functions.lower,
        functions.identity,
        functions.inverse,
        functions.commutative,
        functions.codec,
        functions.returns,
    )


def _remade(of: str | None, where: str | None, *parts: Any) -> CustomAggregation:
    return _make(*parts)(of, where=where)


@overload
def aggregation(lift: type, /) -> CustomAggregation: ...
@overload
def aggregation(
    *,
    commutative: bool = False,
    codec: Any = None,
    name: str | None = None,
    returns: Any = None,
) -> Callable[[type], CustomAggregation]: ...
@overload
def aggregation(
    lift: Function | None = None,
    combine: Function = ...,
    lower: Function | None = None,
    identity: Any = ...,
    inverse: Function | None = None,
    commutative: bool = False,
    codec: Any = None,
    name: str | None = None,
    returns: Any = None,
) -> CustomAggregation: ...


def aggregation(
    lift: Any = None,
    combine: Any = None,
    lower: Function | None = None,
    identity: Any = _MISSING,
    inverse: Function | None = None,
    commutative: bool = False,
    codec: Any = None,
    name: str | None = None,
    returns: Any = None,
) -> Any:
    """An aggregation of your own, of any associative combine, on any Python objects.

    A *partial* is what it knows about a run of entries, any object at all. An answer is
    `lower(combine(combine(lift(v1), lift(v2)), ...))` over the values in order of time,
    however the combines are grouped. So combine must be associative; nothing else is
    asked of it. It must not change its arguments: partials are shared.

    As a decorator it takes these from a class: `lift`, `combine`, `lower` and `inverse`
    as methods (static, or with self: the class is then made once, without arguments),
    `identity`, `commutative`, `codec` and `returns` as attributes.

    Args:
        lift: From a value to its partial. Default: the value itself. Never called for
            missing values, which are skipped.
        combine: From an older and a younger partial to that of both.
        lower: From a partial to the answer. Default: the partial itself.
        identity: The partial of nothing: `combine(identity, p) == p`. It is a value
            (never called) and must be given, for `check_laws` alone: no window combines
            anything with it, and over nothing the answer is None, as everywhere.
        inverse: `inverse(whole, oldest)` gives the rest, where there is such a thing:
            algorithms that subtract what leaves need it.
        commutative: Whether `combine(a, b) == combine(b, a)`; late entries may then be
            combined out of order, which saves combines.
        codec: How snapshots write partials: an object with `encode(partial) -> bytes`
            and `decode(bytes) -> partial`, or "pickle". Needed only for partials that
            are not None, bool, int, float, str, bytes, dates, or tuples, lists and
            dicts of these. A snapshot with pickled partials runs their code when it is
            restored: restore only those that you trust.
        name: "module:name" under which the aggregation is to be found, for pickles and
            snapshots. A class has one by itself.
        returns: The type of the answers: a Python type such as `float`, or an Arrow
            type. Spark and LazyFrames must know it before there are answers; a type
            hint on lower tells Spark as well.

    Returns:
        An aggregation for `Window`; call it with the name of a column for tables and
        for values that are mappings.

    Raises:
        SpecError: If something is missing or is no function.

    If a function raises, you get the exception, unchanged but for a note that names the
    function, and the window is as before. `insert` calls lift; only answers (`query`,
    `items`, `copy`, `to_bytes`) call lower. Calls of combine and inverse are
    *deferred*: each is made once, when the first answer needs its result. After an
    answer, and in an `insert` or `evict` that finds 1,024 of them, other deferred calls
    run in batches of at most 1,024; an error in one surfaces in the first answer that
    needs it. Using a window from within its own functions raises `WindowBusyError`.

    Cost: as many combines as the algorithm takes, and about 0.3 us beside each. The
    combines that a card counts for an insert or an eviction are deferred, and not made
    at all if their entries have left before an answer needs them.

    Example:
        >>> import slidewise as sw
        >>> @sw.aggregation
        ... class Longest:
        ...     "The longest text, the oldest of those."
        ...     identity = ""
        ...     def combine(a, b):
        ...         return a if len(a) >= len(b) else b
        ...     def lower(text):
        ...         return text.upper()
        >>> w = sw.Window({"longest": Longest, "n": sw.count()})
        >>> w.insert_many([3, 1, 2], ["to", "be", "or"])
        >>> w.insert(4, "not")
        >>> w.query(), w.query(2, 3)
        ({'longest': 'NOT', 'n': 4}, {'longest': 'OR', 'n': 2})

        Of functions, and over a table:

        >>> import pyarrow as pa
        >>> product = sw.aggregation(combine=lambda a, b: a * b, identity=1)
        >>> table = pa.table({"t": [1, 2, 3], "x": [4, 5, None]})
        >>> out = sw.rolling(table, on="t", windows=2, aggs={"p": product("x")})
        >>> out["p_2"].to_pylist()
        [4, 20, 5]
    """
    if isinstance(lift, type) and combine is None:
        return _of_class(lift, commutative, codec, name, returns)
    given = (lift, combine, lower, inverse)
    if all(part is None for part in given) and identity is _MISSING:
        return lambda cls: _of_class(cls, commutative, codec, name, returns)
    parts = (lift, combine, lower, identity, inverse, commutative, codec, returns)
    return _make(name, *parts)


def _of_class(
    cls: Any, commutative: bool, codec: Any, name: str | None, returns: Any
) -> Any:
    if not isinstance(cls, type):
        raise SpecError(f"@sw.aggregation decorates a class, got {cls!r}")
    made: list[Any] = []

    def method(name: str) -> Any:
        found = getattr(cls, name, None)
        code = getattr(found, "__code__", None)
        static = isinstance(_raw(cls, name), staticmethod | classmethod)
        if code is None or static or code.co_varnames[:1] != ("self",):
            return found
        if not made:
            made.append(cls())
        return getattr(made[0], name)

    return _make(
        name or f"{cls.__module__}:{cls.__qualname__}",
        method("lift"),
        method("combine"),
        method("lower"),
        getattr(cls, "identity", _MISSING),
        method("inverse"),
        getattr(cls, "commutative", commutative),
        getattr(cls, "codec", codec),
        getattr(cls, "returns", returns),
    )


def _raw(cls: type, name: str) -> Any:
    return next((c.__dict__[name] for c in cls.__mro__ if name in c.__dict__), None)


def _make(
    name: Any,
    lift: Any,
    combine: Any,
    lower: Any,
    identity: Any,
    inverse: Any,
    commutative: Any,
    codec: Any,
    returns: Any = None,
) -> CustomAggregation:
    if combine is None:
        raise SpecError("combine= is missing: how two partials make that of both")
    if identity is _MISSING:
        raise SpecError(
            "identity= is missing: the partial p0 of nothing, for which combine(p0, p) "
            "== p, such as 0 for a sum or () for a concatenation of tuples"
        )
    parts = {"lift": lift, "combine": combine, "lower": lower, "inverse": inverse}
    for part, function in parts.items():
        if function is not None and not callable(function):
            raise SpecError(f"{part}= takes a function, got {function!r}")
    if not isinstance(commutative, bool):
        raise SpecError(f"commutative= is True or False, got {commutative!r}")
    if name is not None and not (isinstance(name, str) and name.partition(":")[2]):
        raise SpecError(f"name= is 'module:name', got {name!r}")
    encode, decode = _codec(codec)
    functions = Functions(
        name,
        lift,
        combine,
        lower,
        identity,
        inverse,
        commutative,
        encode,
        decode,
        codec,
        None if returns is None else read_type(returns),
    )
    if name is not None:
        _KNOWN[name] = functions
    return CustomAggregation("own", functions=functions)


def _codec(codec: Any) -> tuple[Function | None, Function | None]:
    if codec is None:
        return None, None
    if codec == "pickle":
        return pickle.dumps, pickle.loads
    encode, decode = (getattr(codec, part, None) for part in ("encode", "decode"))
    if callable(encode) and callable(decode) and not isinstance(codec, str):
        return encode, decode
    raise SpecError(
        "codec= is 'pickle', or an object with encode(partial) -> bytes and "
        f"decode(bytes) -> partial; got {codec!r}"
    )
