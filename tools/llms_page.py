"""Writes docs/llms.txt, the list of pages for programs that read the site.

    python tools/llms_page.py

The pages and their descriptions are those of docs/index.md.
"""

import re
import sys
from pathlib import Path

import slidewise as sw

DOCS = Path(__file__).resolve().parent.parent / "docs"


def page() -> str:
    """The file as it should be."""
    index = (DOCS / "index.md").read_text("utf-8")
    title, _, rest = index.partition("\n\n")
    about = " ".join(rest.partition("\n\n")[0].split())
    lines = [
        f"- [{name}]({path.removesuffix('.md')}.html): {text}"
        for name, path, text in re.findall(
            r"^\| \[(.*?)\]\((.*?)\) \| (.*) \|$", index, re.M
        )
    ]
    return "\n".join([title, "", f"> {about}", "", "## Pages", "", *lines, ""])


def main() -> int:
    """Writes the file."""
    (DOCS / "llms.txt").write_text(page(), encoding="utf-8")
    print(f"slidewise {sw.__version__}: wrote llms.txt")
    return 0


if __name__ == "__main__":
    sys.exit(main())
