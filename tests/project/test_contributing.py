"""The pages for contributors: examples run, and the named files exist and match."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "contributing" / "add-an-aggregation.md"
TEXT = PAGE.read_text("utf-8")


def section(heading: str) -> str:
    """The text below a heading."""
    return TEXT.split(f"\n## {heading}\n")[1].split("\n## ")[0]


def files(text: str) -> list[str]:
    """The paths in the first cells of tables."""
    lines = [line for line in text.splitlines() if line.startswith("| `")]
    cells = [re.split(r" *\| *", line)[1] for line in lines]
    return [path for cell in cells for path in re.findall(r"`([^`]+/[^`]+)`", cell)]


# The files for every built-in aggregation, and those for some.
EVERY, SOME = map(files, section("What changes").split("Only some need these"))
HOLISTIC = files(section("Holistic ones"))

# Aggregations as code names them, in Rust and in Python.
NAMES = {
    "range": r'(Kind|Self)::Range\b|"range( [a-z]+)?"|sw\.range\b',
    "geometric_mean": r"::GeometricMean\b|\bgeometric_mean\b",
    "max_count": r"::MaxCount\b|\bmax_count\b",
}

# These files name the range of a query, which is a length.
RANGES_OF_QUERIES = {
    f"python/slidewise/{path}.py"
    for path in (
        "spec/document",
        "spec/durations",
        "spec/query",
        "window/queries",
        "window/time_codec",
    )
}


def naming(name: str, *folders: str) -> set[str]:
    """The files of the repository that name an aggregation."""
    call = ["git", "grep", "-lP", NAMES[name], "--", *folders]
    done = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode > 1:
        pytest.skip(f"no repository of git: {done.stderr.strip()}")
    return set(done.stdout.split())


def test_the_example_gives_what_it_says():
    (block,) = re.findall(r"^```python\n(.*?)^```", TEXT, re.S | re.M)
    code, _, promised = block.rpartition("\n")[0].rpartition("\n")[2].partition("  # ")
    names: dict[str, object] = {}
    exec(compile(block, PAGE.name, "exec"), names)
    assert eval(code, names) == pytest.approx(eval(promised))


def test_the_example_fits_on_a_screen():
    blocks = re.findall(r"^```(?:rust|text)\n(.*?)^```", TEXT, re.S | re.M)
    lines = [line for line in "".join(blocks).splitlines() if line.strip()]
    assert 20 < len(lines) < 60


@pytest.mark.parametrize("path", [*EVERY, *SOME, *HOLISTIC])
def test_files_are_there(path):
    assert (ROOT / path).is_file(), (
        f"{path} is gone: {PAGE.name} must name what it became"
    )


def test_the_model_is_named_where_the_guide_says():
    """In all sources, and in all tests that name most aggregations, not only a few."""
    found = naming("range", "crates/core/src", "python/slidewise")
    rest = ("crates/tests", "crates/papers", "tests", "bench", "tools")
    found |= set.intersection(*(naming(name, *rest) for name in NAMES))
    found -= {str(Path(__file__).relative_to(ROOT)), *RANGES_OF_QUERIES}
    assert found <= {*EVERY, *SOME}, f"add them to {PAGE.name}"
    assert set(EVERY) - found == {"docs/aggregations.md"}, f"see {PAGE.name}"


def test_contributing_names_recipes_and_pages_that_are_there():
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    recipes = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M)
    assert set(re.findall(r"\bmake ([a-z-]+)`", text)) <= set(recipes)
    links = [link for link in re.findall(r"\]\(([^)#]+)", text) if "://" not in link]
    assert len(links) >= 5
    assert [link for link in links if not (ROOT / link).exists()] == []
    tests = re.findall(r"`(tests/[\w/]+\.py)`", text)
    assert [path for path in tests if not (ROOT / path).exists()] == []


RELEASE = (ROOT / "docs" / "contributing" / "release.md").read_text("utf-8")


def test_files_that_the_page_of_releases_names_are_there():
    quoted = re.findall(r"`([\w./-]+)`", RELEASE)
    paths = [word for word in quoted if "/" in word or re.search(r"\.(md|toml)$", word)]
    paths += re.findall(r"(?<!/)\b(\w+\.md)\b", RELEASE)  # links are in test_links.py
    assert {"python/slidewise/spec/canonical.py", "tools/smoke.py"} <= set(paths)
    assert [path for path in paths if not (ROOT / path).exists()] == []
    (benches,) = re.findall(r"`python -m (bench\.\w+)` and\s+`(bench\.\w+)`", RELEASE)
    for module in benches:
        assert (ROOT / f"{module.replace('.', '/')}.py").is_file()


def test_formats_are_where_the_page_of_releases_says():
    """Each `NAME` stands in the file, or a file of the folder, named after it."""
    (formats,) = re.findall(r"Formats are at\s+(.*?)\n\n", RELEASE, re.S)
    named = re.findall(r"`([A-Z_]+)`|`([\w/]+/[\w.]*)`", formats)
    names, seen = [], 0
    for name, path in named:
        if name:
            names.append(name)
            continue
        target = ROOT / path
        files = target.rglob("*.py") if target.is_dir() else [target]
        text = "\n".join(file.read_text("utf-8") for file in files)
        for one in names:
            assert re.search(rf"^(pub )?(const )?{one}\b.* = ", text, re.M), (one, path)
            seen += 1
        names = []
    assert seen == 7
