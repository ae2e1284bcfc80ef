"""User-defined aggregations in Python: a lift, an associative combine, a lower.

`aggregation` makes one from functions or a class; it is used like a built-in one.
`check_laws` tests the laws that its functions must obey.
"""

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, overload
from weakref import WeakValueDictionary

import pyarrow as pa

from slidewise.aggregations.registry import UserDefinedAggregation, check_flag_and_name
from slidewise.aggregations.return_types import hinted_type, read_type
from slidewise.aggregations.seen import Seen, seen_by
from slidewise.errors import SpecError

__all__ = ["CustomAggregation", "Functions", "aggregation", "find_custom"]

Function = Callable[..., Any]


class _Missing:
    def __repr__(self) -> str:
        return "<missing>"


_MISSING: Any = _Missing()


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Functions:
    """The functions given to `aggregation`. Compared by identity.

    Attributes:
        name: "module:qualified name" for snapshots and pickles, or None.
        lift: Makes a partial of a value; None for the value itself.
        combine: Combines an earlier and a later partial.
        lower: Makes the answer of a partial; None for the partial itself.
        identity: The partial of no entries.
        inverse: Removes the earliest part from a whole, or None.
        commutative: Whether combine may take its operands in either order.
        encode: Makes bytes of a partial, or None.
        decode: Makes a partial of bytes, or None.
        codec: The argument `codec`.
        returns: The type of its answers, or None if not given.
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
        """The type of its answers if known in advance: given or hinted."""
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
        """The name in the hash of a Spec."""
        if self.name is not None:
            return self.name
        module = getattr(self.combine, "__module__", "?")
        return f"{module}:{self.label}"


@dataclass(frozen=True, slots=True, repr=False)
class CustomAggregation(UserDefinedAggregation):
    """A user-defined aggregation in Python. Made by `aggregation`."""

    functions: Functions = _MISSING

    def __post_init__(self) -> None:
        if not isinstance(self.functions, Functions):
            raise SpecError("make user-defined aggregations with sw.aggregation(...)")
        self._check_names()

    def _by_functions(self) -> tuple[Any, ...]:
        options = ((self.of, *self.others), self.where, self.windows)
        return _remade, (*options, *_parts(self.functions))

    @property
    def seen(self) -> Seen:
        """What its functions see."""
        return seen_by(self.functions.lift, self.functions.lower)

    @property
    def lift(self) -> Function | None:
        """Makes a partial of a value; None for the value itself."""
        return self.functions.lift

    @property
    def combine(self) -> Function:
        """Combines an earlier and a later partial."""
        return self.functions.combine

    @property
    def lower(self) -> Function | None:
        """Makes the answer of a partial; None for the partial itself."""
        return self.functions.lower

    @property
    def inverse(self) -> Function | None:
        """Removes the earliest part from a whole, or None."""
        return self.functions.inverse

    @property
    def identity(self) -> Any:
        """The partial of no entries."""
        return self.functions.identity


# Living aggregations by name, for the headers of snapshots.
_KNOWN: WeakValueDictionary[str, Functions] = WeakValueDictionary()


def find_custom(name: str) -> CustomAggregation | None:
    """The aggregation of a name, if this process has defined it."""
    functions = _KNOWN.get(name)
    return None if functions is None else CustomAggregation("udaf", functions=functions)


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


def _remade(
    of: tuple[Any, ...], where: str | None, windows: Any, *parts: Any
) -> CustomAggregation:
    # A copy does not take the name of the definition: it may be freed before.
    defined = _KNOWN.get(parts[0])
    made = _make(*parts)
    if defined is not None:
        _KNOWN[parts[0]] = defined
    return made(*of, where=where, windows=windows)


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
    """Defines an aggregation by any associative combine over any Python objects.

    A *partial* is any object that summarizes a run of entries. An answer is
    `lower(combine(combine(lift(v1), lift(v2)), ...))` over the values in time order, in
    any grouping. So `combine` must be associative, and must not change its arguments,
    which are shared: answers would be wrong without an error. `check_laws` finds both.

    As a decorator of a class it takes `lift`, `combine`, `lower` and `inverse` from its
    methods (static, or with `self`: then one instance is made, without arguments), and
    `identity`, `commutative`, `codec` and `returns` from its attributes.

    Args:
        lift: Makes a partial of a value; by default the value itself. Missing values
            are skipped. Over tables and in streams it may have a parameter per column,
            as in `lift(price, size)`, and before them `time`: rows without one of the
            values are skipped.
        combine: Combines an earlier and a later partial.
        lower: Makes the answer of a partial; by default the partial itself. There it
            may also have the parameters `start` and `end`, the ends of the window as
            times of the table; `start` is None for windows that have none.
        identity: The partial of no entries: `combine(identity, p) == p`. Required, for
            `check_laws` alone: over an empty window the answer is None.
        inverse: `inverse(whole, earliest)` removes the earliest part from a whole;
            algorithms that subtract evicted entries need it.
        commutative: Whether `combine(a, b) == combine(b, a)`; late entries then take
            fewer combines.
        codec: How snapshots write partials: an object with `encode(partial) -> bytes`
            and `decode(bytes) -> partial`, or "pickle". Not needed for None, bool, int,
            float, str, bytes, dates, and tuples, lists and dicts of these. Restoring
            pickled partials runs their code: restore only snapshots that you trust.
        name: "module:name" by which pickles and snapshots find the aggregation. By
            default the qualified name of the class.
        returns: The type of the answers: a Python type such as `float`, or an Arrow
            type. Spark and LazyFrames need it before there are answers; Spark also
            takes the return hint of `lower`.

    Returns:
        An aggregation for `Window`; call it with the name of a column for tables and
        for values that are mappings.

    Raises:
        SpecError: If an argument is missing or is not a function.

    If a function raises, the exception passes through with a note that names the
    function, and the window is unchanged. `insert` calls `lift`; `query`, `items`,
    `copy` and `to_bytes` call `lower`. Calls of `combine` and `inverse` are *deferred*:
    each runs once, when the first answer needs its result, or in batches of at most
    1,024 after an answer or in an `insert` or `evict` that finds as many; an exception
    in one is raised by the first answer that needs it. A window that its own functions
    use raises `WindowBusyError`.

    Cost: the combines of the algorithm, and about 0.3 µs per call. The combines of
    inserts and evictions are deferred, and skipped if their entries are evicted first.

    Example:
        >>> import slidewise as sw
        >>> @sw.aggregation
        ... class Longest:
        ...     "The longest text; of several, the earliest."
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

        From functions, over a table:

        >>> import pyarrow as pa
        >>> product = sw.aggregation(combine=lambda a, b: a * b, identity=1)
        >>> table = pa.table({"t": [1, 2, 3], "x": [4, 5, None]})
        >>> out = sw.rolling(table, on="t", windows=2, aggs={"p": product("x")})
        >>> out["p_2"].to_pylist()
        [4, 20, 5]

        Of two columns and the end of the window:

        >>> paid = sw.aggregation(
        ...     lambda price, size: price * size,
        ...     combine=lambda a, b: a + b,
        ...     lower=lambda partial, end: (end, partial), identity=0)
        >>> table = pa.table({"t": [1, 2], "price": [4, 5], "size": [2, 1]})
        >>> aggs = {"p": paid("price", "size")}
        >>> sw.rolling(table, on="t", windows=9, aggs=aggs)["p_9"].to_pylist()
        [[1, 8], [2, 13]]
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
        raise SpecError("combine= is missing: a function of two partials")
    if identity is _MISSING:
        raise SpecError(
            "identity= is missing: the partial of no entries, such as 0 for a sum or "
            "() for a concatenation of tuples"
        )
    parts = {"lift": lift, "combine": combine, "lower": lower, "inverse": inverse}
    for part, function in parts.items():
        if function is not None and not callable(function):
            raise SpecError(f"{part}= takes a function, got {function!r}")
    check_flag_and_name(commutative, name)
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
    return CustomAggregation("udaf", functions=functions)


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
