"""Follows all links between the pages of a built site, anchors included.

`python tools/follow_links.py site` prints the links without a target, and fails if
there are any. Links to other hosts are not followed.
"""

import re
import sys
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote


class _Page(HTMLParser):
    """The links of a page, and the anchors to which links lead."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, _: str, attrs: list[tuple[str, str | None]]) -> None:
        """Notes the links and anchors of an element."""
        given = {name: value for name, value in attrs if value is not None}
        self.links += [given[name] for name in ("href", "src") if name in given]
        self.anchors |= {given[name] for name in ("id", "name") if name in given}


@cache
def _page(file: Path) -> _Page:
    page = _Page()
    page.feed(file.read_text("utf-8"))
    return page


def dead_links(site: Path) -> Iterator[tuple[str, str]]:
    """The links without a target: the page that has it, and the link."""
    for file in sorted(site.rglob("*.html")):
        for link in _page(file).links:
            if not re.match(r"[a-z][a-z0-9+.-]*:|//", link) and not _leads(
                site, file, link
            ):
                yield str(file.relative_to(site)), link


def _leads(site: Path, file: Path, link: str) -> bool:
    """Whether a link of a page leads to a file of the site, and to an anchor of it."""
    address, _, anchor = link.partition("#")
    path = unquote(address.partition("?")[0])
    target = file
    if path:
        target = (site / path[1:] if path[0] == "/" else file.parent / path).resolve()
    if target.is_dir():
        target = target / "index.html"
    if site.resolve() not in target.resolve().parents or not target.is_file():
        return False
    is_page = target.suffix == ".html"
    return not anchor or not is_page or unquote(anchor) in _page(target).anchors


if __name__ == "__main__":
    found = list(dead_links(Path(sys.argv[1])))
    for page, link in found:
        print(f"{page}: {link} leads nowhere")
    sys.exit(bool(found))
