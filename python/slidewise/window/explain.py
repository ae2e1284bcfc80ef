"""Why a window runs what it runs, in words."""

import textwrap
from collections.abc import Sequence
from typing import Any

from slidewise.window.algorithms import card_of
from slidewise.window.auto_rules import KINDS, Rule, choose, choose_shared, kinds_of
from slidewise.window.planner import WindowPlan

__all__ = ["why_lines"]


def why_lines(
    plan: WindowPlan,
    dtypes: Sequence[str | None],
    migrated: tuple[str, Any, Any] | None,
) -> list[str]:
    """Why a window runs what it runs, in a line or several.

    Args:
        plan: What was asked for.
        dtypes: The types of its columns.
        migrated: What made it go over to fiba, if it has.
    """
    first = plan.first(dtypes)
    if plan.asked != "auto":
        card = card_of(first)
        return [f"{first}: asked for by name; order: {card.order}; query: {card.query}"]
    rule = _rule_of(first, plan, dtypes)
    chosen = f'{first}: chosen by "auto"'
    if rule is None:
        chosen += " of another version, whose reasons are not known here"
    else:
        hint = "" if rule.prefer is None else f"prefer={rule.prefer!r} and "
        chosen += f" for {hint}{KINDS[rule.of]}, because {rule.why}"
    if migrated is None:
        return _wrapped(chosen)
    return [
        *_wrapped(f"fiba: since {_event(*migrated)}; it takes any order of arrival"),
        *_wrapped(f"before that {chosen}"),
    ]


def _rule_of(first: str, plan: WindowPlan, dtypes: Sequence[str | None]) -> Rule | None:
    kinds, floats = kinds_of(plan.aggs, plan.requests), "float64" in dtypes
    if plan.range_count:
        rule = choose_shared(kinds, floats, len(plan.feeds))
    else:
        rule = choose(kinds, floats, plan.prefer)
    return rule if rule.take == first else None


def _event(what: str, first: Any, second: Any) -> str:
    if what == "late":
        return f"an entry at {first} came late, when the youngest was at {second}"
    if what == "inner":
        return f"the entry at {first} was evicted, when the oldest was at {second}"
    lo = "the oldest" if first is None else first
    hi = "the youngest" if second is None else second
    return f"a query asked about {lo} to {hi}, a part of the window"


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, 80, subsequent_indent="  ")
