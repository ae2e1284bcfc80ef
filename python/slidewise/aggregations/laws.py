"""Tests the laws of user-defined aggregations on samples."""

import copy
import functools
import itertools
import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from slidewise.aggregations.compiled import Compiled, NativeAggregation
from slidewise.aggregations.custom import CustomAggregation, Functions
from slidewise.aggregations.registry import UserDefinedAggregation
from slidewise.errors import LawError, SpecError
from slidewise.hints import readable

__all__ = ["check_laws"]

# The most cases per law.
_TRIES = 2_000


@readable
def check_laws(aggregation: UserDefinedAggregation, samples: Iterable[Any]) -> None:
    """Tests the laws of a user-defined aggregation on samples of its values.

    - identity: `combine(identity, p) == p == combine(p, identity)`
    - associativity: `combine(combine(p, q), r) == combine(p, combine(q, r))`
    - inverse, if given: `inverse(combine(p, q), p) == q`
    - commutativity, if declared: `combine(p, q) == combine(q, p)`
    - no function changes its arguments, which are shared
    - codec, if given: `decode(encode(p)) == p`

    for partials p, q, r of up to three samples each. Partials are equal if `==` says
    so or `lower` gives equal answers; floats may differ by a relative 10⁻⁹.

    Args:
        aggregation: An aggregation made by `aggregation` or `native`.
        samples: Values of the kind that a window gets; a dozen different ones suffice.

    Raises:
        LawError: If a law is broken, with a counter-example. Exceptions of the
            functions pass through.
        SpecError: If there are no samples, or the aggregation is built in.

    Cost: up to 2,000 cases per law.

    Example:
        >>> import slidewise as sw
        >>> total = sw.aggregation(combine=lambda a, b: a + b, identity=0)
        >>> sw.check_laws(total, range(10))
        >>> wrong = sw.aggregation(combine=lambda a, b: a - b, identity=0)
        >>> sw.check_laws(wrong, [1, 2, 3])
        Traceback (most recent call last):
        ...
        slidewise.errors.LawError: aggregation(combine=<lambda>) has a wrong identity:
        combine(identity, p) is -1, where p is 1
    """
    if isinstance(aggregation, NativeAggregation):
        functions = _of_compiled(aggregation.functions)
    elif isinstance(aggregation, CustomAggregation):
        functions = aggregation.functions
    else:
        raise SpecError(
            "check_laws takes an aggregation made by sw.aggregation(...) or "
            f"sw.native(...), got {aggregation!r}"
        )
    laws = _Laws(functions, [v for v in samples if v is not None])
    if functions.identity is not None or isinstance(aggregation, CustomAggregation):
        laws.identity()
    laws.associativity()
    laws.inverse()
    laws.commutativity()
    laws.lower()
    laws.codec()


def _of_compiled(compiled: Compiled) -> Functions:
    """The compiled functions over records as tuples, callable from Python."""
    inverse = None
    if compiled.inverse_address is not None:
        inverse = functools.partial(compiled.call, "inverse")
    return Functions(
        name=compiled.name or compiled.label,
        lift=functools.partial(compiled.call, "lift"),
        combine=functools.partial(compiled.call, "combine"),
        lower=None,
        identity=compiled.identity,
        inverse=inverse,
        commutative=compiled.commutative,
        encode=None,
        decode=None,
        codec=None,
    )


class _Laws:
    def __init__(self, functions: Functions, samples: Sequence[Any]) -> None:
        if not samples:
            raise SpecError("check_laws needs samples that are not None")
        self._functions = functions
        self._random = random.Random(0)
        lift = functions.lift or (lambda value: value)
        lifted = [self._unchanged("lift", lift, sample) for sample in samples]
        pairs = [self._combine(p, q) for p, q in self._some(lifted, 2, len(lifted))]
        both = zip(pairs, itertools.cycle(lifted))
        self._partials = lifted + pairs + [self._combine(p, q) for p, q in both]

    def identity(self) -> None:
        """Combining with the identity gives the same partial."""
        for partial in self._partials[:_TRIES]:
            identity = copy.deepcopy(self._functions.identity)
            for text, whole in (
                ("combine(identity, p)", self._combine(identity, partial)),
                ("combine(p, identity)", self._combine(partial, identity)),
            ):
                if not self._equal(whole, partial):
                    self._fail("has a wrong identity", f"{text} is {whole!r}", partial)

    def associativity(self) -> None:
        """Groupings give equal partials."""
        for p, q, r in self._some(self._partials, 3, _TRIES):
            left = self._combine(self._combine(p, q), r)
            right = self._combine(p, self._combine(q, r))
            if not self._equal(left, right):
                detail = (
                    f"combine(combine(p, q), r) is {left!r}, "
                    f"combine(p, combine(q, r)) is {right!r}"
                )
                self._fail("is not associative", detail, p, q, r)

    def inverse(self) -> None:
        """Removing the earlier part leaves the later one."""
        inverse = self._functions.inverse
        if inverse is None:
            return
        for p, q in self._some(self._partials, 2, _TRIES):
            whole = self._combine(p, q)
            rest = self._unchanged("inverse", inverse, whole, p)
            if not self._equal(rest, q):
                detail = f"inverse(combine(p, q), p) is {rest!r}"
                self._fail("has a wrong inverse", detail, p, q)

    def commutativity(self) -> None:
        """Orders give equal partials, if declared commutative."""
        if not self._functions.commutative:
            return
        for p, q in self._some(self._partials, 2, _TRIES):
            one, other = self._combine(p, q), self._combine(q, p)
            if not self._equal(one, other):
                detail = f"combine(p, q) is {one!r}, combine(q, p) is {other!r}"
                self._fail("is not commutative, as it claims", detail, p, q)

    def lower(self) -> None:
        """Lower does not change its partial."""
        lower = self._functions.lower
        for partial in self._partials[:_TRIES] if lower is not None else ():
            self._unchanged("lower", lower, partial)

    def codec(self) -> None:
        """Decoding inverts encoding."""
        encode, decode = self._functions.encode, self._functions.decode
        if encode is None or decode is None:
            return
        for partial in self._partials[:_TRIES]:
            read = decode(encode(partial))
            if not self._equal(read, partial):
                detail = f"decode(encode(p)) is {read!r}"
                self._fail("has a wrong codec", detail, partial)

    def _some(self, values: Sequence[Any], size: int, most: int) -> Iterator[Any]:
        """Tuples of values: all of them, or many at random."""
        if len(values) ** size <= most:
            return itertools.product(values, repeat=size)
        return (tuple(self._random.choices(values, k=size)) for _ in range(most))

    def _combine(self, older: Any, younger: Any) -> Any:
        return self._unchanged("combine", self._functions.combine, older, younger)

    def _unchanged(self, name: str, function: Any, *arguments: Any) -> Any:
        before = _copies(*arguments)
        result = function(*arguments)
        for old, new in zip(before, arguments, strict=False):
            if not _same(old, new):
                detail = f"{name} made {new!r} of an argument that was {old!r}"
                self._fail("changes its arguments, which are shared", detail)
        return result

    def _equal(self, one: Any, other: Any) -> bool:
        if _same(one, other):
            return True
        lower = self._functions.lower
        return lower is not None and _same(lower(one), lower(other))

    def _fail(self, what: str, detail: str, *partials: Any) -> None:
        where = ", ".join(
            f"{name} is {partial!r}"
            for name, partial in zip("pqr", partials, strict=False)
        )
        text = f"{self._functions.label} {what}: {detail}"
        raise LawError(f"{text}, where {where}" if where else text)


_UNCOPIED = (TypeError, ValueError, AttributeError, NotImplementedError, copy.Error)


def _copies(*values: Any) -> tuple[Any, ...]:
    try:
        return copy.deepcopy(values)
    except _UNCOPIED:  # an uncopied argument cannot be compared
        return ()


def _same(one: Any, other: Any) -> bool:
    if one is other:
        return True
    if isinstance(one, float) and isinstance(other, float):
        if math.isnan(one) or math.isnan(other):
            return math.isnan(one) and math.isnan(other)
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-300)
    if isinstance(one, list | tuple) and type(one) is type(other):
        pairs = zip(one, other, strict=False)
        return len(one) == len(other) and all(_same(a, b) for a, b in pairs)
    if isinstance(one, Mapping) and type(one) is type(other):
        return one.keys() == other.keys() and all(_same(one[k], other[k]) for k in one)
    equal = one == other
    every = getattr(equal, "all", None)  # arrays compare item by item
    if callable(every):
        return bool(getattr(one, "shape", 0) == getattr(other, "shape", 0) and every())
    return bool(equal)
