"""The laws that an aggregation of one's own must obey, tried on samples."""

import copy
import functools
import itertools
import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from slidewise.aggregations.compiled import Compiled, NativeAggregation
from slidewise.aggregations.custom import CustomAggregation, Functions
from slidewise.errors import LawError, SpecError

__all__ = ["check_laws"]

# So many counter-examples are looked for at most, per law.
_TRIES = 2_000


def check_laws(
    aggregation: CustomAggregation | NativeAggregation, samples: Iterable[Any]
) -> None:
    """Tries the laws of an aggregation of your own on samples of its values.

    - identity: `combine(identity, p) == p == combine(p, identity)`
    - associativity: `combine(combine(p, q), r) == combine(p, combine(q, r))`
    - inverse, if there is one: `inverse(combine(p, q), p) == q`
    - commutativity, if it is claimed: `combine(p, q) == combine(q, p)`
    - that no function changes its arguments, which are shared
    - codec, if there is one: `decode(encode(p)) == p`

    for partials p, q, r of up to three samples each. Two partials count as equal if
    they are, or if `lower` gives equal answers; floats may differ by 10⁻⁹ of their
    size.

    Args:
        aggregation: Made by `slidewise.aggregation` or `slidewise.native`.
        samples: Values such as a window would get; a dozen different ones do.

    Raises:
        LawError: If a law is broken, with the counter-example.
        SpecError: If there are no samples, or the aggregation is built in.

    What the functions raise passes through. Cost: up to 2,000 tries per law.

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
            f"check_laws takes what sw.aggregation(...) made, got {aggregation!r}; the "
            "laws of what is built in are tested with slidewise itself"
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
    """The same functions over records as tuples, to be called from Python."""
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
        lift = functions.lift or _itself
        lifted = [self._unchanged("lift", lift, sample) for sample in samples]
        pairs = [self._combine(p, q) for p, q in self._some(lifted, 2, len(lifted))]
        both = zip(pairs, itertools.cycle(lifted))
        self._partials = lifted + pairs + [self._combine(p, q) for p, q in both]

    def identity(self) -> None:
        """Nothing combined with a partial is that partial."""
        for partial in self._partials[:_TRIES]:
            nothing = copy.deepcopy(self._functions.identity)
            for text, whole in (
                ("combine(identity, p)", self._combine(nothing, partial)),
                ("combine(p, identity)", self._combine(partial, nothing)),
            ):
                if not self._equal(whole, partial):
                    self._fail("has a wrong identity", f"{text} is {whole!r}", partial)

    def associativity(self) -> None:
        """The grouping does not matter."""
        for p, q, r in self._some(self._partials, 3, _TRIES):
            left = self._combine(self._combine(p, q), r)
            right = self._combine(p, self._combine(q, r))
            if not self._equal(left, right):
                told = (
                    f"combine(combine(p, q), r) is {left!r}, "
                    f"combine(p, combine(q, r)) is {right!r}"
                )
                self._fail("is not associative", told, p, q, r)

    def inverse(self) -> None:
        """Taking out the older part leaves the younger one."""
        inverse = self._functions.inverse
        if inverse is None:
            return
        for p, q in self._some(self._partials, 2, _TRIES):
            whole = self._combine(p, q)
            rest = self._unchanged("inverse", inverse, whole, p)
            if not self._equal(rest, q):
                told = f"inverse(combine(p, q), p) is {rest!r}"
                self._fail("has a wrong inverse", told, p, q)

    def commutativity(self) -> None:
        """The order does not matter, if that is claimed."""
        if not self._functions.commutative:
            return
        for p, q in self._some(self._partials, 2, _TRIES):
            one, other = self._combine(p, q), self._combine(q, p)
            if not self._equal(one, other):
                told = f"combine(p, q) is {one!r}, combine(q, p) is {other!r}"
                self._fail("is not commutative, as it claims", told, p, q)

    def lower(self) -> None:
        """An answer leaves the partial as it was."""
        lower = self._functions.lower
        for partial in self._partials[:_TRIES] if lower is not None else ():
            self._unchanged("lower", lower, partial)

    def codec(self) -> None:
        """What is written can be read."""
        encode, decode = self._functions.encode, self._functions.decode
        if encode is None or decode is None:
            return
        for partial in self._partials[:_TRIES]:
            read = decode(encode(partial))
            if not self._equal(read, partial):
                told = f"decode(encode(p)) is {read!r}"
                self._fail("has a wrong codec", told, partial)

    def _some(self, values: Sequence[Any], size: int, most: int) -> Iterator[Any]:
        """Tuples of values: all there are, or many at random."""
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
                told = f"{name} made {new!r} of an argument that was {old!r}"
                self._fail("changes its arguments, which are shared", told)
        return result

    def _equal(self, one: Any, other: Any) -> bool:
        if _same(one, other):
            return True
        lower = self._functions.lower
        return lower is not None and _same(lower(one), lower(other))

    def _fail(self, what: str, told: str, *partials: Any) -> None:
        where = ", ".join(
            f"{name} is {partial!r}"
            for name, partial in zip("pqr", partials, strict=False)
        )
        text = f"{self._functions.label} {what}: {told}"
        raise LawError(f"{text}, where {where}" if where else text)


_UNCOPIED = (TypeError, ValueError, AttributeError, NotImplementedError, copy.Error)


def _itself(value: Any) -> Any:
    return value


def _copies(*values: Any) -> tuple[Any, ...]:
    try:
        return copy.deepcopy(values)
    except _UNCOPIED:  # what cannot be copied cannot be compared
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
