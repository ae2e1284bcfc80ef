"""Run a command with a Rust toolchain on its PATH.

    python tools/toolchain.py cargo test -p slidewise-core

Takes the first of these that has the version this workspace needs:

1. the ``cargo`` on PATH,
2. the one where rustup puts it (``$CARGO_HOME/bin``, else ``~/.cargo/bin``),
3. one installed through the Python package puccinialin, the way maturin's own build
   hook does it: into the user's cache directory, nothing else on the machine changes.

If all of them fail, one message says what to install.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements-rust.lock"


def required_version() -> tuple[int, ...]:
    """The workspace's minimum Rust version, from the root Cargo.toml."""
    text = (ROOT / "Cargo.toml").read_text(encoding="utf-8")
    found = re.search(r'^rust-version = "([\d.]+)"', text, re.MULTILINE)
    if found is None:
        raise SystemExit("Cargo.toml names no rust-version.")
    return tuple(int(part) for part in found[1].split("."))


def version_of(rustc: str, environment: dict[str, str]) -> tuple[int, ...] | None:
    """The version a ``rustc`` reports, or None if it cannot run.

    A rustup proxy without a default toolchain exists but fails when called.
    """
    try:
        done = subprocess.run(
            [rustc, "--version"],
            env=environment,
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError:
        return None
    found = re.match(r"rustc (\d+)\.(\d+)\.(\d+)", done.stdout)
    return tuple(int(part) for part in found.groups()) if found else None


def with_path(directory: Path) -> dict[str, str]:
    """The environment with a directory put first on PATH."""
    path = os.environ.get("PATH", "")
    return {**os.environ, "PATH": os.pathsep.join([str(directory), path])}


def candidates() -> list[dict[str, str]]:
    """Environments that may hold a toolchain, the user's choice first."""
    home = Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo")
    found = [dict(os.environ), with_path(home / "bin")]
    if (ours := installed_earlier()) is not None:
        found.append(ours)
    return found


def installed_earlier() -> dict[str, str] | None:
    """The environment of a toolchain that `install` has put into the user's cache."""
    try:
        from platformdirs import user_cache_dir
    except ImportError:
        return None  # it comes with puccinialin, so that has not been here
    place = Path(user_cache_dir("puccinialin"))
    return {
        **with_path(place / "cargo" / "bin"),
        "CARGO_HOME": str(place / "cargo"),
        "RUSTUP_HOME": str(place / "rustup"),
    }


def find() -> tuple[dict[str, str] | None, list[str]]:
    """The first environment with a usable toolchain, and what was seen on the way."""
    needed = required_version()
    seen: list[str] = []
    for environment in candidates():
        rustc = shutil.which("rustc", path=environment["PATH"])
        if rustc is None or shutil.which("cargo", path=environment["PATH"]) is None:
            continue
        version = version_of(rustc, environment)
        if version is not None and version >= needed:
            return environment, seen
        what = ".".join(map(str, version)) if version else "one that does not run"
        if (line := f"{rustc} is {what}") not in seen:
            seen.append(line)
    return None, seen


def install() -> dict[str, str]:
    """Install a toolchain through puccinialin; raises when that cannot be done."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet"]
    command = [*pip, "--requirement", str(LOCK)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise RuntimeError(f"pip could not install puccinialin ({last})")
    from puccinialin import setup_rust

    environment = {**os.environ, **setup_rust(file=sys.stderr)}
    # The minimal profile lacks what `make lint` runs.
    rustup = shutil.which("rustup", path=environment["PATH"])
    if rustup is not None:
        add = [rustup, "component", "add", "clippy", "rustfmt"]
        subprocess.run(add, env=environment, check=False, stdout=subprocess.DEVNULL)
    return environment


def toolchain() -> dict[str, str]:
    """An environment in which cargo works, or exit with one clear message."""
    environment, seen = find()
    if environment is not None:
        return environment
    needed = ".".join(map(str, required_version()))
    seen_text = f" ({'; '.join(seen)})" if seen else ""
    print(
        f"No Rust toolchain >= {needed} found{seen_text}; "
        "installing one into your cache directory (Python package puccinialin).",
        file=sys.stderr,
    )
    try:
        return install()
    except Exception as problem:  # noqa: BLE001 (whatever it was, the way out is one)
        raise SystemExit(
            f"\nThe Rust toolchain could not be installed: {problem}\n"
            f"Install Rust {needed} or newer (cargo and rustc on PATH), for example "
            "with rustup or your system's packages, then run make again."
        ) from None


def main(command: list[str]) -> None:
    """Replace this process by the command, run with the toolchain."""
    environment = toolchain()
    if not command:
        subprocess.run(["rustc", "--version"], env=environment, check=True)
        return
    program = shutil.which(command[0], path=environment["PATH"])
    if program is None:
        raise SystemExit(f"{command[0]} is not on PATH.")
    os.execve(program, command, environment)


if __name__ == "__main__":
    main(sys.argv[1:])
