"""User-defined aggregations compiled by Numba.

`native` makes one from a combine over records of a fixed size. The core calls it by its
address, on every algorithm and without the GIL.
"""

import pickle
from collections.abc import Callable
from ctypes import cast
from dataclasses import dataclass
from types import FunctionType
from typing import Any
from weakref import WeakValueDictionary

import pyarrow as pa

from slidewise.aggregations.registry import UserDefinedAggregation, check_flag_and_name
from slidewise.aggregations.return_types import hinted_type
from slidewise.errors import SpecError
from slidewise.hints import readable

__all__ = ["Compiled", "NativeAggregation", "find_native", "native"]

_MAX_RECORD_BYTES = 128
_VALUES = ("float64", "int64")
# Fills results before a law is tested, so that unwritten bytes are detected.
_LEFTOVER = 0xA5


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Compiled:
    """The compiled functions of `native`. Compared by identity.

    Attributes:
        name: "module:name" for snapshots and pickles, or None.
        dtype: The numpy dtype of a record.
        value: The type of values: "float64" or "int64".
        words: The size of a record in 64-bit words.
        commutative: Whether combine may take its operands in either order.
        identity: The record of no entries, for `check_laws`, or None.
        lift_address: The type of the value and the address; None and 0 for the value
            itself.
        combine_address: The address of combine(earlier, later, out).
        lower_address: The type of the answer and the address, 0 for the record itself;
            None and 0 if `lowered` makes the answer.
        inverse_address: The address of inverse(whole, earliest, out), or None.
        lower: A Python function from a record to the answer, or None.
        functions: The compiled functions by name, kept alive for their addresses.
        given: The arguments of `native`, for pickles.
    """

    name: str | None
    dtype: Any
    value: str
    words: int
    commutative: bool
    identity: Any
    lift_address: tuple[str | None, int]
    combine_address: int
    lower_address: tuple[str | None, int]
    inverse_address: int | None
    lower: Callable[[Any], Any] | None
    functions: dict[str, Any]
    given: dict[str, Any]

    @property
    def returns(self) -> None:
        """No type is declared; the return hint of `lower` may give one."""

    @property
    def known_type(self) -> pa.DataType | None:
        """The type of its answers if known in advance: hinted or the record's."""
        if self.lower is not None:
            return hinted_type(self.lower)
        if self.dtype.names is None:
            return pa.from_numpy_dtype(self.dtype)
        parts = ((name, self.dtype[name]) for name in self.dtype.names)
        return pa.struct([(name, pa.from_numpy_dtype(kind)) for name, kind in parts])

    @property
    def label(self) -> str:
        """The name without its module, for messages."""
        if self.name is not None:
            return self.name.rpartition(":")[2]
        return f"native(combine={_name_of(self.given['combine'])})"

    @property
    def canonical(self) -> str:
        """The name in the hash of a Spec."""
        return self.name or f"{self.given['combine'].__module__}:{self.label}"

    @property
    def form(self) -> str:
        """The layout of a record, for snapshots."""
        return repr(self.dtype.descr)

    def lowered(self, record: bytes) -> Any:
        """The answer of a record's bytes; None for no bytes."""
        if not record:
            return None
        import numpy as np

        held = np.frombuffer(record[: self.dtype.itemsize], self.dtype).copy()[0]
        if self.lower is not None:
            return self.lower(held)
        if self.dtype.names is None:
            return held.item()
        return dict(zip(self.dtype.names, held.item(), strict=True))

    def call(self, name: str, *arguments: Any) -> Any:
        """Calls one of the compiled functions; for `check_laws`.

        Args:
            name: "lift", "combine" or "inverse".
            arguments: A value for lift, else records as tuples or numbers.
        """
        import numpy as np

        if name == "lift":
            if "lift" not in self.functions:
                return np.array([arguments[0]], self.dtype)[0].item()
            records, values = [], list(arguments)
        else:
            records = [np.array([argument], self.dtype) for argument in arguments]
            values = []
        function, out = self.functions[name].ctypes, np.empty(1, self.dtype)
        out.view(np.uint8)[:] = _LEFTOVER
        pointers = zip(function.argtypes[len(values) :], (*records, out), strict=True)
        values += [cast(record.ctypes.data, kind) for kind, record in pointers]
        function(*values)
        return out[0].item()


@dataclass(frozen=True, slots=True, repr=False)
class NativeAggregation(UserDefinedAggregation):
    """A user-defined aggregation that Numba compiled. Made by `native`."""

    functions: Compiled = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if not isinstance(self.functions, Compiled):
            raise SpecError("make native aggregations with sw.native(...)")
        self._check_names()

    @property
    def inverse(self) -> int | None:
        """The address of its inverse, if it has one."""
        return self.functions.inverse_address

    def _by_functions(self) -> tuple[Any, ...]:
        given = self.functions.given
        if any(_is_compiled(part) for part in given.values()):
            raise pickle.PicklingError(
                f"{self._called} consists of compiled functions, which cannot be "
                "pickled: give it name='module:name'"
            )
        return _remade, (self.of, self.where, self.windows, given)


# Living aggregations by name, for the headers of snapshots.
_KNOWN: WeakValueDictionary[str, Compiled] = WeakValueDictionary()


def find_native(name: str) -> NativeAggregation | None:
    """The native aggregation of a name, if this process has defined it."""
    compiled = _KNOWN.get(name)
    return None if compiled is None else NativeAggregation("native", functions=compiled)


def _remade(
    of: str | None, where: str | None, windows: Any, given: dict[str, Any]
) -> NativeAggregation:
    # As in `custom`: a copy does not take the name of the definition.
    defined = _KNOWN.get(given["name"])
    made = native(**given)
    if defined is not None:
        _KNOWN[given["name"]] = defined
    return made(of, where=where, windows=windows)


@readable
def native(
    combine: Any,
    dtype: Any,
    *,
    lift: Any = None,
    lower: Any = None,
    inverse: Any = None,
    identity: Any = None,
    commutative: bool = False,
    value: str | None = None,
    name: str | None = None,
) -> NativeAggregation:
    """Defines an aggregation by functions that Numba compiles.

    Needs Numba: `pip install 'slidewise[numba]'`.

    Args:
        combine: Combines the records of earlier and later values: a plain function
            `combine(a, b, out)`, which is compiled here, or a `@numba.cfunc` of the
            signature `void(p, p, p)`, where `p` is
            `numba.types.CPointer(numba.from_dtype(dtype))`.
        dtype: The record: a numpy dtype of numbers, up to 128 bytes. If it is a single
            number, plain functions return it: `combine(a, b)`.
        lift: Makes a record of a value: `lift(value, out)`, or a cfunc
            `void(float64, p)` or `void(int64, p)`. By default a float64 or int64 is the
            record itself.
        lower: Makes the answer of a record: a cfunc `float64(p)` or `int64(p)`, or any
            Python function of a numpy record, at about 1 µs per call. By default a dict
            of the record's fields, or the number.
        inverse: Removes the earliest part from a whole: as combine, of
            (whole, earliest, out).
        identity: The record of no entries, as a tuple or a number; used by
            `check_laws` alone.
        commutative: Whether `combine(a, b)` is `combine(b, a)`; late values then take
            fewer combines.
        value: The type of the argument of a plain `lift`: "float64" (default) or
            "int64".
        name: "module:name" by which snapshots find the aggregation, and pickles if it
            has cfuncs.

    Returns:
        An aggregation for `Window`; call it with the name of a column for tables and
        for values that are mappings.

    Raises:
        SpecError: If a function has another signature, or the dtype does not fit.
        ImportError: If Numba is not installed.

    Values are numbers; None is skipped. The functions run while the window is locked:
    they must not raise, call Python or write beyond their record, and they must write
    all of `out`, which is uninitialized. (In plain functions division by zero gives
    inf.)

    Cost: the combines of the algorithm, and about 3 ns per call; over tables at most 3
    combines per row and window.

    Example:
        >>> import slidewise as sw
        >>> def product(a, b):
        ...     return a * b
        >>> try:
        ...     w = sw.Window(sw.native(product, "float64"))
        ...     w.insert_many([1, 2, 3], [2.0, 3.0, 0.5])
        ...     answers = w.query(), w.query(lo=2)
        ... except ImportError:
        ...     answers = 3.0, 1.5
        >>> answers
        (3.0, 1.5)
    """
    given = {
        "combine": combine,
        "dtype": dtype,
        "lift": lift,
        "lower": lower,
        "inverse": inverse,
        "identity": identity,
        "commutative": commutative,
        "value": value,
        "name": name,
    }
    compiler = _Compiler(dtype, value)
    values, lifting = compiler.lift(lift)
    functions = {"lift": lifting, "combine": compiler.binary("combine", combine)}
    if inverse is not None:
        functions["inverse"] = compiler.binary("inverse", inverse)
    answers, functions["lower"] = compiler.lower(lower)
    functions = {name: made for name, made in functions.items() if made is not None}
    check_flag_and_name(commutative, name)
    addresses = {name: int(made.address) for name, made in functions.items()}
    compiled = Compiled(
        name=name,
        dtype=compiler.dtype,
        value=values,
        words=-(-compiler.dtype.itemsize // 8),
        commutative=commutative,
        identity=identity,
        lift_address=(values if lift is not None else None, addresses.get("lift", 0)),
        combine_address=addresses["combine"],
        lower_address=(answers, addresses.get("lower", 0)),
        inverse_address=addresses.get("inverse"),
        lower=lower if answers is None else None,
        functions=functions,
        given=given,
    )
    if name is not None:
        _KNOWN[name] = compiled
    return NativeAggregation("native", functions=compiled)


class _Compiler:
    """Compiles functions over one dtype, and checks compiled ones."""

    def __init__(self, dtype: Any, value: str | None) -> None:
        try:
            import numba
            import numpy as np
        except ImportError as error:
            raise ImportError(
                f"sw.native needs Numba ({error}): pip install 'slidewise[numba]'"
            ) from error
        self._numba = numba
        self._types = numba.types
        try:
            self.dtype = np.dtype(dtype)
        except TypeError as error:
            raise SpecError(f"dtype={dtype!r} is not a numpy dtype: {error}") from error
        self._check_dtype()
        try:
            self._record = numba.from_dtype(self.dtype)
        except numba.core.errors.NumbaError as error:
            raise SpecError(f"Numba has no type for {self.dtype}: {error}") from error
        self._pointer = self._types.CPointer(self._record)
        self._single = self.dtype.names is None
        if value is None:
            value = "int64" if self.dtype.kind in "iub" else "float64"
        if value not in _VALUES:
            raise SpecError(f"value= is 'float64' or 'int64', got {value!r}")
        self._value = value

    def _check_dtype(self) -> None:
        dtype = self.dtype
        plain = not dtype.hasobject and dtype.isnative and dtype.alignment <= 8
        if not plain or dtype.kind not in "biufcV" or dtype.subdtype is not None:
            raise SpecError(f"dtype= takes numbers in native byte order, got {dtype}")
        if not 0 < dtype.itemsize <= _MAX_RECORD_BYTES:
            raise SpecError(
                f"a record takes up to {_MAX_RECORD_BYTES} bytes, and {dtype} takes "
                f"{dtype.itemsize}"
            )

    def binary(self, name: str, function: Any) -> Any:
        """The cfunc of two records and an output record."""
        signature = self._types.void(self._pointer, self._pointer, self._pointer)
        if _is_compiled(function):
            self._check(name, function, [signature])
            return function
        inner = self._inner(name, function)
        carray = self._numba.carray
        if self._single:

            def outer(a, b, out):  # type: ignore[no-untyped-def]
                out[0] = inner(a[0], b[0])

        else:

            def outer(a, b, out):  # type: ignore[no-untyped-def]
                inner(carray(a, 1)[0], carray(b, 1)[0], carray(out, 1)[0])

        return self._compiled(name, signature, outer)

    def lift(self, function: Any) -> tuple[str, Any]:
        """The type of values, and the cfunc of a value and an output record."""
        types = self._types
        if function is None:
            if self.dtype.name not in _VALUES:
                raise SpecError(
                    f"lift= is missing: a function from a value to a record of "
                    f"{self.dtype}; it may be left out for float64 and int64"
                )
            return self.dtype.name, None
        known = {
            name: types.void(getattr(types, name), self._pointer) for name in _VALUES
        }
        if _is_compiled(function):
            self._check("lift", function, list(known.values()))
            found = next(name for name in _VALUES if known[name] == function._sig)
            return found, function
        inner, carray = self._inner("lift", function), self._numba.carray
        if self._single:

            def outer(value, out):  # type: ignore[no-untyped-def]
                out[0] = inner(value)

        else:

            def outer(value, out):  # type: ignore[no-untyped-def]
                inner(value, carray(out, 1)[0])

        return self._value, self._compiled("lift", known[self._value], outer)

    def lower(self, function: Any) -> tuple[str | None, Any]:
        """The type of answers, and the cfunc of a record; None for a Python lower."""
        if function is None:
            return (self.dtype.name if self.dtype.name in _VALUES else None), None
        if not _is_compiled(function):
            if not callable(function):
                raise SpecError(f"lower= takes a function, got {function!r}")
            return None, None
        types = self._types
        known = {name: getattr(types, name)(self._pointer) for name in _VALUES}
        self._check("lower", function, list(known.values()))
        found = next(name for name in _VALUES if known[name] == function._sig)
        return found, function

    def _inner(self, name: str, function: Any) -> Any:
        if not isinstance(function, FunctionType):
            raise SpecError(
                f"{name}= takes a plain function or a numba.cfunc, got {function!r}"
            )
        # Division by zero gives inf, so the function cannot raise.
        return self._numba.njit(error_model="numpy")(function)

    def _compiled(self, name: str, signature: Any, function: Any) -> Any:
        try:
            return self._numba.cfunc(signature)(function)
        except self._numba.core.errors.NumbaError as error:
            lines = str(error).strip().splitlines()
            raise SpecError(
                f"Numba cannot compile {name}= for {self.dtype}: "
                f"{' '.join(lines)[:500]}"
            ) from error

    def _check(self, name: str, function: Any, fitting: list[Any]) -> None:
        if function._sig not in fitting:
            wanted = " or ".join(map(str, fitting))
            raise SpecError(
                f"{name}= has the signature {function._sig}; for records of "
                f"{self.dtype} it has to be {wanted}"
            )
        if not function.address:
            raise SpecError(f"{name}= has no address")


def _is_compiled(function: Any) -> bool:
    kind = type(function)
    return kind.__name__ == "CFunc" and kind.__module__.startswith("numba.")


def _name_of(function: Any) -> str:
    inner = getattr(function, "__wrapped__", function)
    return str(getattr(inner, "__qualname__", type(function).__name__))
