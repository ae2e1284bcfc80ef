"""The recipes, and the tools that they install on a machine without them."""

import json
import os
import re
import runpy
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml
from versions import VERSIONS

ROOT = Path(__file__).resolve().parents[2]
SHELL = ("awk", "date", "make", "sed", "sh")


def lines_of(recipe, tmp_path, *tools):
    """The commands that `make` would run on a machine with only some tools."""
    for name in (*SHELL, *tools):
        (tmp_path / name).symlink_to(shutil.which(name) or "/bin/true")
    done = subprocess.run(
        ["make", "--dry-run", recipe],
        cwd=ROOT,
        env={"PATH": str(tmp_path), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_a_bare_machine_is_brought_uv_and_rust(tmp_path):
    lines = lines_of("demo", tmp_path)
    if not (ROOT / ".venv/bin/uv").exists() and not (ROOT / ".uv").exists():
        assert "-m venv .uv" in lines
    assert "puccinialin" in lines
    assert lines.index("puccinialin") < lines.index("tools/sync")


def test_tools_on_the_path_are_used(tmp_path):
    lines = lines_of("demo", tmp_path, "cargo", "uv")
    assert "-m venv .uv" not in lines
    assert "puccinialin" not in lines


@pytest.fixture
def fake_uv(tmp_path):
    """A uv that prints its arguments, and an environment for tools/sync.

    It runs in a folder that has been built.
    """
    for built in (".venv/pyvenv.cfg", "python/slidewise/_core.abi3.so"):
        (tmp_path / built).parent.mkdir(parents=True)
        (tmp_path / built).touch()
    uv = tmp_path / "uv"
    uv.write_text('#!/bin/sh\necho "uv $*"\necho "$UV_DEFAULT_INDEX" >&2\n')
    uv.chmod(0o755)
    none = {"PIP_CONFIG_FILE": os.devnull, "HOME": str(tmp_path)}
    return {"PATH": os.environ["PATH"], "UV": str(uv), **none}


def sync(environment):
    done = subprocess.run(
        [ROOT / "tools/sync", "--all-extras"],
        cwd=environment["HOME"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout, done.stderr


def test_the_lock_is_installed_as_it_is(fake_uv):
    message, _ = sync(fake_uv)
    assert message == "uv sync --frozen --inexact --all-extras\n"


def test_the_extension_of_the_tests_is_replaced(fake_uv):
    """The optimised build replaces the tests' build and removes its stamp."""
    stamp = Path(fake_uv["HOME"], ".venv/.build-dev")
    stamp.touch()
    message, _ = sync(fake_uv)
    assert "--reinstall-package slidewise" in message
    assert not stamp.exists()


@pytest.mark.parametrize("name", ["UV_DEFAULT_INDEX", "PIP_INDEX_URL"])
def test_from_a_mirror_the_same_files_are_installed(fake_uv, name):
    mirror = "https://mirror.example/simple"
    message, index = sync({**fake_uv, name: mirror})
    assert "pip install --require-hashes" in message
    assert "sync" not in message
    assert set(index.split()) == {mirror}


def test_the_lock_names_pypi_alone():
    hosts = re.findall(r"https?://([^/\"]+)/", (ROOT / "uv.lock").read_text())
    assert set(hosts) == {"pypi.org", "files.pythonhosted.org"}


def test_the_rust_of_developers_is_new_enough():
    cargo = tomllib.loads((ROOT / "Cargo.toml").read_text())
    rust = tomllib.loads((ROOT / "rust-toolchain.toml").read_text())
    needed = cargo["workspace"]["package"]["rust-version"]
    pinned = rust["toolchain"]["channel"]

    def numbers(version):
        return [int(part) for part in version.split(".")]

    assert numbers(needed) <= numbers(pinned)


def test_every_recipe_is_there_and_named_once():
    text = (ROOT / "Makefile").read_text()
    joined = text.replace("\\\n", " ")
    declared = [line for line in joined.splitlines() if line.startswith(".PHONY")]
    names = declared[0].split()[1:]
    recipes = re.findall(r"^([a-z][a-z-]*):", text, flags=re.MULTILINE)
    assert len(declared) == 1
    assert sorted(names) == sorted(recipes)


def test_every_program_of_core_tests_is_run():
    """`make test-core` runs all programs of one package."""
    command = ["cargo", "metadata", "--no-deps", "--offline", "--format-version=1"]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=50
    )
    programs = {
        (package["name"], target["src_path"])
        for package in json.loads(done.stdout)["packages"]
        for target in package["targets"]
        if target["kind"] == ["test"]
    }
    files = (ROOT / "crates").glob("*/tests/**/main.rs")
    assert programs == {("slidewise-tests", str(path)) for path in files}
    assert len(programs) > 5


def test_the_oldest_versions_are_installed(tmp_path, fake_uv):
    """The override of pyproject.toml would replace that of pandas."""
    (tmp_path / ".python-versions/3.11-oldest").mkdir(parents=True)
    done = subprocess.run(
        [ROOT / "tools/test-python", "--oldest", "3.11"],
        cwd=tmp_path,
        env=fake_uv,
        capture_output=True,
        text=True,
        check=False,
    )
    wanted = ".python-versions/3.11-oldest/requirements.txt"
    assert f"install --quiet --requirement {wanted} --override {wanted}" in done.stdout


def test_every_nightly_recipe_is_run_and_described():
    text = (ROOT / "Makefile").read_text().replace("\\\n", " ")
    recipes = re.search(r"^NIGHTLY := (.*)$", text, flags=re.MULTILINE)[1].split()
    workflow = (ROOT / ".github/workflows/nightly.yml").read_text()
    page = (ROOT / "docs/contributing/tests.md").read_text()
    assert (
        re.findall(r"^ +- ((?:test-|fuzz|soak|reports)[a-z-]*)$", workflow, re.M)
        == recipes
    )
    assert (
        re.findall(r"^\| `((?:test-|fuzz|soak|reports)[a-z-]*)`", page, re.M) == recipes
    )


def test_the_workflow_builds_the_wheels_of_make():
    targets = runpy.run_path(str(ROOT / "tools" / "wheels.py"))["TARGETS"]
    workflow = yaml.safe_load((ROOT / ".github/workflows/wheels.yml").read_text())
    matrix = workflow["jobs"]["linux"]["strategy"]["matrix"]
    built = {(target, libc) for target in matrix["target"] for libc in matrix["libc"]}
    made = {
        (triple.partition("-")[0], tag.removeprefix("manylinux"))
        for triple, tag in targets.values()
    }
    assert built == made
    page = (ROOT / "docs/contributing/release.md").read_text()
    for _, tag in targets.values():
        assert f"`{tag}`" in page
    published = workflow["jobs"]["publish"]
    assert published["if"] == "startsWith(github.ref, 'refs/tags/v')"


def test_pages_name_the_versions_of_pyspark_that_are_tested():
    lock = tomllib.loads((ROOT / "uv.lock").read_text())["package"]
    (installed,) = (one["version"] for one in lock if one["name"] == "pyspark")
    minors = [version.rpartition(".")[0] for version in VERSIONS]
    streams = [one for one in minors if tuple(map(int, one.split("."))) >= (4, 1)]
    page = {
        name: " ".join((ROOT / f"docs/{name}.md").read_text().split())
        for name in ("one-number", "spark", "questions", "contributing/release")
    }
    assert f"on PySpark {installed}, and" in page["one-number"]
    listed = f"{', '.join(minors[:-1])} and {minors[-1]}"
    assert f"Batch runs on PySpark {listed}, streams on {streams[0]}" in page["spark"]
    batch = f"PySpark {minors[0]} to {minors[-1]} in batch"
    ranges = f"{batch}, {streams[0]} to {streams[-1]} for streams"
    assert ranges in page["questions"]
    assert ranges in page["contributing/release"]
