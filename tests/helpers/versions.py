"""Runs tests/helpers/on_version.py on each supported version of PySpark.

    python tests/helpers/versions.py [VERSION ...] [--markdown FILE]

Each version runs in an environment under .spark-versions, of this Python, with the
slidewise of this checkout. Needs Java 17, on which all of them run.
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

# The latest patch of each minor version, with its requirements: older pandas, and for
# streams a protobuf of its time.
VERSIONS = {
    "3.5.9": ["numpy", "pandas<3", "pyarrow"],
    "4.0.5": ["numpy", "pandas<3", "pyarrow"],
    "4.1.4": ["numpy", "pandas<3", "pyarrow", "protobuf>=6.33,<7"],
    "4.2.1": ["numpy", "pandas<3", "pyarrow", "protobuf>=6.33.5,<7"],
    "4.3.0": ["numpy", "pandas<3", "pyarrow", "protobuf>=6.33.5"],
}
COLUMNS = ("version", "python", "what ran", "cells compared", "differences")


def environment(version: str) -> Path:
    """Returns the Python of a version's environment, which is made if missing."""
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
    """Runs the checks on a version; returns their report."""
    python = environment(version)
    paths = [ROOT / "python", ROOT / "tests" / "helpers"]
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
        "PYSPARK_PYTHON": str(python),
        "PATH": os.pathsep.join([str(python.parent), os.environ["PATH"]]),
        "VIRTUAL_ENV": str(FOLDER / version),
    }
    env.pop("SPARK_HOME", None)
    print(f"PySpark {version}", flush=True)
    command = [str(python), str(ROOT / "tests" / "helpers" / "on_version.py")]
    child = subprocess.Popen(
        command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    out, err = child.communicate(timeout=1_200)
    lines = out.splitlines()
    print("\n".join(lines[:-1] if child.returncode == 0 else lines), flush=True)
    if child.returncode:
        print(err[-4_000:], file=sys.stderr)
        raise SystemExit(f"PySpark {version} failed")
    report: dict[str, Any] = json.loads(lines[-1])
    return report


def markdown(found: list[dict[str, Any]]) -> str:
    """Formats reports as a Markdown table."""
    lines = [f"| {' | '.join(COLUMNS)} |", f"|{'---|' * len(COLUMNS)}"]
    for report in found:
        cells = [
            report["version"],
            report["python"],
            report["ran"],
            f"{report['cells']:,}",
            str(len(report["differences"])),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Runs all versions, and prints a table of their reports."""
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
    differing = [line for report in found for line in report["differences"]]
    if differing:
        raise SystemExit("\n".join(differing[:20]))


if __name__ == "__main__":
    main()
