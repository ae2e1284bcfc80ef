"""Check an installed slidewise as users have it: the README, pickling, the command.

    /path/to/fresh/bin/python tools/smoke.py

Needs only what `pip install slidewise` installs. Runs the Python examples of the README
except those for Spark, with the values they promise, and the command, which without
`slidewise[cli]` must name this extra.
"""

import ast
import importlib.util
import pickle
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CSV = "starttime,station\n2026-06-06T09:00:00,519\n2026-06-06T09:30:00,519\n"


def examples(page: str) -> Iterator[str]:
    """The Python blocks of a page, with the promised values as assertions."""
    for block in re.findall(r"^```python\n(.*?)^```", page, re.S | re.M):
        lines = []
        for line in block.splitlines():
            code, _, comment = line.partition("  # ")
            value = re.match(r"(\[.*?\]|[\d.]+)(:|$)", comment)
            if value is not None:
                line = f"assert ({code}) == {ast.literal_eval(value[1])!r}, {line!r}"
            lines.append(line)
        yield "\n".join(lines)


def main() -> None:
    """Run the checks; any failure is a traceback."""
    import slidewise as sw

    installed = Path(sw.__file__).resolve()
    assert ROOT / "python" not in installed.parents, f"{installed} is the source tree"
    names: dict[str, object] = {}
    for block in examples((ROOT / "README.md").read_text(encoding="utf-8")):
        exec(compile(block, "README.md", "exec"), names)
    assert "features" in names
    window = sw.Window(sw.sum())
    window.insert_many([1, 3, 2], [1.5, 2.5, 4.0])
    assert sw.Window.from_bytes(window.to_bytes()).query(2, 3) == 6.5
    assert pickle.loads(pickle.dumps(window)).query() == 8.0
    command(sw.__version__)
    print(f"slidewise {sw.__version__} works: {installed.parent}")


def command(version: str) -> None:
    """Run the command line on a file."""
    with tempfile.TemporaryDirectory() as folder:
        table, out = Path(folder, "trips.csv"), Path(folder, "out.csv")
        table.write_text(CSV, encoding="utf-8")
        run = [sys.executable, "-m", "slidewise"]
        if importlib.util.find_spec("rich") is None:
            refused = subprocess.run(
                [*run, "--version"], capture_output=True, text=True, cwd=folder
            )
            assert refused.returncode == 2, refused
            assert "pip install 'slidewise[cli]'" in refused.stderr, refused
            return
        shown = subprocess.run(
            [*run, "--version"], check=True, capture_output=True, text=True, cwd=folder
        )
        assert version in shown.stdout
        options = ["--on", "starttime", "--by", "station", "--window", "1h"]
        subprocess.run(
            [*run, "rolling", table, *options, "--agg", "n=count", "-o", out],
            check=True,
            capture_output=True,
            cwd=folder,
        )
        header, *rows = out.read_text(encoding="utf-8").splitlines()
        assert header.replace('"', "").endswith(",n_1h"), header
        assert [row.rpartition(",")[2] for row in rows] == ["1", "2"], rows


if __name__ == "__main__":
    main()
