"""Specs and Features as HTML, which notebooks show."""

from collections.abc import Mapping
from html import escape
from typing import Any

__all__ = ["as_html"]


def as_html(parts: Mapping[str, Mapping[str, Any]]) -> str:
    """The keywords of Specs as a table, a row for each and for each aggregation.

    Args:
        parts: The keywords by the name of their Spec; a name may be empty.

    Example:
        >>> as_html({"card": {"on": 1}})
        '<table><tr><th colspan=2>card</th></tr><tr><td>on</td><td>1</td></tr></table>'
    """
    lines = []
    for part, keywords in parts.items():
        if part:
            lines.append(f"<th colspan=2>{escape(part)}</th>")
        for name, value in keywords.items():
            shown = value.items() if name == "aggs" else ((name, value),)
            lines += (
                f"<td>{escape(key)}</td><td>{escape(repr(one))}</td>"
                for key, one in shown
            )
    rows = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table>{rows}</table>"
