"""Runs tests/helpers/on_version.py on each version of PySpark that serves.

    python tests/helpers/versions.py [VERSION ...] [--markdown FILE]

Each version has an environment of its own under .spark-versions, of this Python, with
slidewise as it is in this checkout. Needs a Java that all of them run on: 17.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".spark-versions"

# The newest of each, and what goes with it: their pandas is older than the newest one,
# and what runs on streams asks for a protobuf of its time.
VERSIONS = {
    "3.5.9": ["numpy", "pandas<3", "pyarrow"],
    "4.0.5": ["numpy", "pandas<3", "pyarrow"],
    "4.1.4": ["numpy", "pandas<3", "pyarrow", "protobuf>=6.33,<7"],
    "4.2.1": ["numpy", "pandas<3", "pyarrow", "protobuf>=6.33.5,<7"],
    "4.3.0": ["numpy", "pandas<3", "pyarrow", "protobuf>=6.33.5"],
}
COLUMNS = ("version", "python", "what ran", "cells compared", "differences")


def environment(version: str) -> Path:
    """The Python of a version's environment, which is made if it is not there."""
    folder = FOLDER / version
    python, done = folder / "bin" / "python", folder / ".done"
    packages = [f"pyspark=={version}", *VERSIONS[version], "pytest"]
    if not done.exists() or done.read_text() != " ".join(packages):
        print(f"Making {folder.relative_to(ROOT)}", flush=True)
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        install = [python, "-m", "pip", "install", "--quiet", "--no-compile", *packages]
        subprocess.run(install, check=True)
        done.write_text(" ".join(packages))
    return python


def run(version: str) -> dict[str, Any]:
    """What a version gives."""
    python = environment(version)
    paths = [ROOT / "python", ROOT / "tests", ROOT / "tests" / "spark"]
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
        "PYSPARK_PYTHON": str(python),
        "PATH": os.pathsep.join([str(python.parent), os.environ["PATH"]]),
        "VIRTUAL_ENV": str(FOLDER / version),
    }
    env.pop("SPARK_HOME", None)
    print(f"PySpark {version}", flush=True)
    command = [str(python), str(ROOT / "tests" / "spark" / "on_version.py")]
    child = subprocess.Popen(
        command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    out, err = child.communicate(timeout=1_200)
    lines = out.splitlines()
    print("\n".join(lines[:-1] if child.returncode == 0 else lines), flush=True)
    if child.returncode:
        print(err[-4_000:], file=sys.stderr)
        raise SystemExit(f"PySpark {version} failed")
    told: dict[str, Any] = json.loads(lines[-1])
    return told


def markdown(found: list[dict[str, Any]]) -> str:
    """The table."""
    lines = [f"| {' | '.join(COLUMNS)} |", f"|{'---|' * len(COLUMNS)}"]
    for told in found:
        cells = [
            told["version"],
            told["python"],
            told["ran"],
            f"{told['cells']:,}",
            str(len(told["differences"])),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """All versions, and the table of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("versions", nargs="*", metavar="VERSION")
    parser.add_argument("--markdown", metavar="FILE", type=Path)
    options = parser.parse_args()
    if unknown := set(options.versions) - set(VERSIONS):
        parser.error(f"{', '.join(unknown)}: known are {', '.join(VERSIONS)}")
    found = [run(version) for version in options.versions or VERSIONS]
    table = markdown(found)
    print(table, end="")
    if options.markdown is not None:
        options.markdown.write_text(table, encoding="utf-8")
    differing = [line for told in found for line in told["differences"]]
    if differing:
        raise SystemExit("\n".join(differing[:20]))


if __name__ == "__main__":
    main()
