"""What functions of slidewise are given: a `Spec`, `Features`, or their keywords."""

from collections.abc import Mapping
from typing import Any

from slidewise.errors import SpecError
from slidewise.spec.features import Features
from slidewise.spec.naming import refuse_group
from slidewise.spec.spec import Spec, from_keywords

__all__ = ["given_spec", "given_specs", "only_spec", "refuse_mixed"]


def given_spec(
    spec: Spec | None,
    request: Mapping[str, Any],
    caller: str,
    is_hopping: bool | None = None,
) -> Spec:
    """Gives the Spec of a call, from a Spec or from keywords.

    Args:
        spec: The Spec, or None.
        request: The keywords, as `given_keywords` gives them.
        caller: The function, for messages.
        is_hopping: Whether it takes windows of `hopping`, or of `rolling`; None for
            both.

    Raises:
        SpecError: If there are both, or one is wrong.
        TypeError: If a keyword is unknown.
    """
    if spec is None:
        return from_keywords(request, caller, is_hopping)
    if not isinstance(spec, Spec):
        raise SpecError(
            f"{caller} takes a Spec or the keywords of rolling and hopping, such as "
            f"on='t', windows='1h', aggs={{'n': sw.count()}}; got {spec!r:.200}"
            + f": give it by name, on={spec!r:.60}"
            * isinstance(spec, str)
        )
    if request:
        names = ", ".join(f"{name}=" for name in request)
        raise SpecError(
            f"{names} belong{'s' * (len(request) == 1)} in the Spec: give a Spec or "
            "keywords, not both"
        )
    refuse_group(spec.names)
    if is_hopping is not None and spec.is_hopping != is_hopping:
        kind, other = "one per row", "rolling"
        if spec.is_hopping:
            kind, other = "not one per row", "hopping"
        raise SpecError(f"the windows of the Spec are {kind}: give it to {other}")
    return spec


def given_specs(
    specs: Spec | Features | None,
    request: Mapping[str, Any],
    caller: str,
    is_hopping: bool | None = None,
) -> Spec | Features:
    """As `given_spec`, for a function that takes Features, too."""
    if not isinstance(specs, Features):
        return given_spec(specs, request, caller, is_hopping)
    if request:
        names = ", ".join(f"{name}=" for name in request)
        raise SpecError(
            f"{names} belong{'s' * (len(request) == 1)} in the Specs of the Features: "
            "give Features or keywords, not both"
        )
    return specs


def only_spec(specs: object, caller: str, way_out: str) -> Any:
    """What is given for a Spec, where Features are not taken.

    Example:
        >>> import slidewise as sw
        >>> spec = sw.Spec(on="t", windows="1h", aggs={"n": sw.count()})
        >>> only_spec(sw.Features(all=spec), "hopping", "give it to rolling")
        Traceback (most recent call last):
        ...
        slidewise.errors.SpecError: hopping does not take Features: give it to rolling
    """
    if isinstance(specs, Features):
        raise SpecError(f"{caller} does not take Features: {way_out}")
    return specs


def refuse_mixed(spec: Spec, where: str) -> None:
    """Refuses several hopping windows that a stream cannot have together."""
    several = spec.is_hopping and len(spec.windows) > 1
    if several and spec.empty:
        raise SpecError(
            f"{where} does not have empty=True for several windows: give each in a "
            "call of its own, or leave empty= out"
        )
    for window in spec.windows:
        if several and not window.on_grid:
            raise SpecError(
                f"{where} does not have {window.name!r} beside other windows, as its "
                "rows leave by themselves: give it in a call of its own"
            )
