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
    way_out: str,
    is_hopping: bool | None = None,
) -> Spec:
    """As `given_specs`, for a function that does not take Features: see `only_spec`."""
    made = given_specs(only_spec(spec, caller, way_out), request, caller, is_hopping)
    assert isinstance(made, Spec), "Features are refused"
    return made


def given_specs(
    specs: Spec | Features | None,
    request: Mapping[str, Any],
    caller: str,
    is_hopping: bool | None = None,
) -> Spec | Features:
    """Gives the Spec or Features of a call, from these or from keywords.

    Args:
        specs: The Spec, the Features, or None.
        request: The keywords, as `given_keywords` gives them.
        caller: The function, for messages.
        is_hopping: Whether it takes windows of `hopping`, or of `rolling`; None for
            both.

    Raises:
        SpecError: If there are both, or one is wrong.
        TypeError: If a keyword is unknown.
    """
    if specs is None:
        return from_keywords(request, caller, is_hopping)
    if not isinstance(specs, Spec | Features):
        raise SpecError(
            f"{caller} takes a Spec or the keywords of rolling and hopping, such as "
            f"on='t', windows='1h', aggs={{'n': sw.count()}}; got {specs!r:.200}"
            + f": give it by name, on={specs!r:.60}"
            * isinstance(specs, str)
        )
    if request:
        names = ", ".join(f"{name}=" for name in request)
        whose, either = "Spec", "a Spec"
        if isinstance(specs, Features):
            whose, either = "Specs of the Features", "Features"
        raise SpecError(
            f"{names} belong{'s' * (len(request) == 1)} in the {whose}: give {either} "
            "or keywords, not both"
        )
    if isinstance(specs, Features):
        return specs
    refuse_group(specs.names)
    if is_hopping is not None and specs.is_hopping != is_hopping:
        kind, other = "one per row", "rolling"
        if specs.is_hopping:
            kind, other = "not one per row", "hopping"
        raise SpecError(f"the windows of the Spec are {kind}: give it to {other}")
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
