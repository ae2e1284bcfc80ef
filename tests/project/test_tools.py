"""The workshop: what a machine without the right tools is told."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"


def without_rust(tmp_path, **more):
    """An environment in which no Rust can be found, nor fetched."""
    (tmp_path / "bin").mkdir()
    return {
        "PATH": str(tmp_path / "bin"),
        "HOME": str(tmp_path),
        "PIP_NO_INDEX": "1",
        "RUSTUP_UPDATE_ROOT": "http://127.0.0.1:9",
        **more,
    }


def toolchain(environment, *command):
    return subprocess.run(
        [sys.executable, str(TOOLS / "toolchain.py"), *command],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_without_rust_one_message_says_what_to_install(tmp_path):
    done = toolchain(without_rust(tmp_path), "cargo", "--version")
    assert done.returncode == 1
    assert "Install Rust 1.88 or newer" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_rust_that_is_too_old_is_named(tmp_path):
    environment = without_rust(tmp_path)
    for name in ("rustc", "cargo"):
        stub = tmp_path / "bin" / name
        stub.write_text("#!/bin/sh\necho 'rustc 1.70.0 (old)'\n")
        stub.chmod(0o755)
    done = toolchain(environment, "cargo", "--version")
    assert done.returncode == 1
    assert "rustc is 1.70.0" in done.stderr


def test_a_toolchain_on_the_path_is_used(tmp_path):
    environment = without_rust(tmp_path)
    for name in ("rustc", "cargo"):
        stub = tmp_path / "bin" / name
        stub.write_text(f"#!/bin/sh\necho 'rustc 1.99.0 as {name}' $1\n")
        stub.chmod(0o755)
    done = toolchain(environment, "cargo", "build")
    assert done.stdout == "rustc 1.99.0 as cargo build\n"


@pytest.mark.parametrize(
    "python", ["no-such-python", None], ids=["one that is not there", "none at all"]
)
def test_without_python_one_message_says_what_to_install(tmp_path, python):
    environment = {"PATH": str(tmp_path)}
    if python is not None:
        environment["PYTHON"] = python
    done = subprocess.run(
        ["/bin/sh", str(TOOLS / "find-python")],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "Python >= 3.11" in done.stderr
    assert done.stdout == ""


def test_this_python_is_found():
    done = subprocess.run(
        [str(TOOLS / "find-python")],
        env={**os.environ, "PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == sys.executable


def test_every_recipe_is_there_and_named_once():
    text = (TOOLS.parent / "Makefile").read_text()
    joined = text.replace("\\\n", " ")
    declared = [line for line in joined.splitlines() if line.startswith(".PHONY")]
    names = declared[0].split()[1:]
    recipes = re.findall(r"^([a-z][a-z-]*):", text, flags=re.MULTILINE)
    assert len(declared) == 1
    assert sorted(names) == sorted(recipes)
