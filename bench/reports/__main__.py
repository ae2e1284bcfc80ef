"""Asks every library every question, prints the answers, and writes the page.

python -m bench.reports [--out docs/reports.md]
"""

import argparse
import datetime as dt
import sys
import warnings
from collections import Counter
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from bench.reports import aggregations, features, hops, numeric, streams, windows
from bench.reports.report import LIBRARIES, Outcome, Report, reports, shown

SECTIONS = {
    "Numbers": numeric,
    "Aggregations": aggregations,
    "Windows": windows,
    "Hops and sessions": hops,
    "Features": features,
    "Streams": streams,
}

HEAD = """\
# Public bug reports

Each row is a question of a public bug report or request of another project, on an input
of ours. The right answer follows from the definition; those of numbers are computed in
rational arithmetic. A cell is ✓ where the library answers right today; otherwise it
shows its answer, in bold, or the exception that it raises. Floats are right within a
relative 1e-6. A cell is empty where the library was not asked, mostly because it has no
such call. A report may be of an older version, or of another project than these.

The reports were chosen because slidewise answers them, so the numbers of right answers
compare no libraries. They say which of these mistakes are still made today.

Made by `make reports` on {today}, with {versions}.
"""

LOSSES = """

## Where slidewise loses

The others answer what slidewise cannot be asked: windows with a weight per position
(`win_type=` of pandas, `weights=` of polars), `GROUPS` frames and `EXCLUDE TIES`
(DuckDB), any expression or function over the rows of a window without an associative
combine (all three; slidewise gives lists of the rows by `collect`), and a step between
answers by rows of the whole table (`step=` of pandas). Some answers are slower than
theirs: [Speed](speed.md).
"""


def asked() -> dict[Report, dict[str, Outcome]]:
    """The outcomes of all libraries."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {one: {name: one.ask(name) for name in LIBRARIES} for one in reports()}


def page(outcomes: dict[Report, dict[str, Outcome]]) -> str:
    """The page."""
    versions = ", ".join(
        f"{name} {version(module)}"
        for name, module in LIBRARIES.items()
        if find_spec(module)
    )
    lines = [
        HEAD.format(today=dt.datetime.now(dt.UTC).date(), versions=versions),
        *totals(outcomes),
    ]
    for title, module in SECTIONS.items():
        lines += [f"\n## {title}\n", *table(outcomes, module.__name__)]
    return "\n".join(lines) + LOSSES


def totals(outcomes: dict[Report, dict[str, Outcome]]) -> list[str]:
    """How often each library is right."""
    kinds = ("right", "wrong", "error", "not asked")
    lines = [f"| of {len(outcomes)} questions | {' | '.join(kinds)} |"]
    lines.append("|---|" + "---:|" * len(kinds))
    for name in LIBRARIES:
        counts = Counter(found[name].kind for found in outcomes.values())
        lines.append(f"| {name} | {' | '.join(str(counts[kind]) for kind in kinds)} |")
    return lines


def table(outcomes: dict[Report, dict[str, Outcome]], module: str) -> list[str]:
    """The rows of the reports of a module."""
    lines = [f"| report | question | right | {' | '.join(LIBRARIES)} |"]
    lines.append("|---|---|---|" + "---|" * len(LIBRARIES))
    for one, found in outcomes.items():
        if one.module == module:
            cells = [", ".join(one.links()), one.question, shown(one.right)]
            cells += [cell(found[name]) for name in LIBRARIES]
            lines.append("| " + " | ".join(x.replace("|", "\\|") for x in cells) + " |")
    return lines


def cell(outcome: Outcome) -> str:
    """An outcome in the table."""
    texts = {"right": "✓", "not asked": "", "error": f"`{outcome.shown}`"}
    return texts.get(outcome.kind, f"**{outcome.shown}**")


def main() -> None:
    """Prints the outcomes, and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="the page, such as docs/reports.md")
    options = parser.parse_args()
    outcomes = asked()
    for one, found in outcomes.items():
        off = [name for name in LIBRARIES if _is_off(found[name])]
        rest = "; ".join(f"{name} {found[name].shown}" for name in off)
        print(f"{one.name:45} {', '.join(one.threads):30} {rest or 'all right'}")
    print("\n".join(totals(outcomes)))
    if options.out:
        options.out.write_text(page(outcomes), "utf-8")
    failed = [
        one.name for one, found in outcomes.items() if _is_off(found["slidewise"])
    ]
    if failed:
        sys.exit(f"slidewise is not right: {', '.join(failed)}")


def _is_off(outcome: Outcome) -> bool:
    return outcome.kind in ("wrong", "error")


if __name__ == "__main__":
    main()
