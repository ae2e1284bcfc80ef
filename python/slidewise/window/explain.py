"""The explanation of a window: which algorithm runs, and why."""

from collections.abc import Sequence
from typing import Any

from slidewise.formatting import wrap_lines
from slidewise.window.algorithms import card_of
from slidewise.window.auto_rules import (
    KINDS,
    Rule,
    choose,
    choose_shared,
    request_kinds,
)
from slidewise.window.window_plan import WindowPlan

__all__ = ["why_lines"]


def why_lines(
    plan: WindowPlan,
    dtypes: Sequence[str | None],
    migrated: tuple[str, Any, Any] | None,
) -> list[str]:
    """Explains in a few lines which algorithm a window runs, and why.

    Args:
        plan: The plan of the window.
        dtypes: The types of its columns.
        migrated: The call that made it migrate to fiba: its kind and two times; None
            if it did not.
    """
    initial = plan.initial_algorithm(dtypes)
    if plan.algorithm != "auto":
        card = card_of(initial)
        return [f"{initial}: chosen by name; order: {card.order}; query: {card.query}"]
    rule = _rule_of(initial, plan, dtypes)
    chosen = f'{initial}: chosen by "auto"'
    if rule is None:
        chosen += " of another version, by rules that this one does not have"
    else:
        hint = "" if rule.prefer is None else f"prefer={rule.prefer!r} and "
        chosen += f" for {hint}{KINDS[rule.of]}, because {rule.why}"
    if migrated is None:
        return wrap_lines([chosen])
    since = f"fiba: since {_event(*migrated)}; it accepts entries in any order"
    return wrap_lines([since, f"before that {chosen}"])


def _rule_of(
    initial: str, plan: WindowPlan, dtypes: Sequence[str | None]
) -> Rule | None:
    kinds, floats = request_kinds(plan.aggs, plan.requests), "float64" in dtypes
    if plan.is_shared:
        rule = choose_shared(
            kinds, floats, len(plan.inputs), plan.shared_queries is not None
        )
    else:
        rule = choose(kinds, floats, plan.prefer)
    return rule if rule.take == initial else None


def _event(what: str, first: Any, second: Any) -> str:
    if what == "late":
        return f"an entry at {first} arrived late, after one at {second}"
    if what == "inner":
        return f"the entry at {first} was evicted before the earliest, at {second}"
    lo = "the earliest" if first is None else first
    hi = "the latest" if second is None else second
    return f"a query covered {lo} to {hi}, a part of the window"
