"""Build the source distribution and the Linux wheels into dist/, and check them.

    python tools/wheels.py                    # everything
    python tools/wheels.py x86_64-musl        # some of the targets, no sdist
    python tools/wheels.py --check dist       # only check existing wheels

zig (a Python package) is the C compiler and linker, so that one Linux machine builds
for both libcs and both architectures. Needs rustup, which brings the targets.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
TOOLS = ROOT / "target" / "wheel-tools"
PACKAGES = [
    "maturin>=1.16,<2",
    "ziglang>=0.15",
    "auditwheel>=6.4",
    "abi3audit>=0.0.24",
]
# The largest extension that a wheel may hold, in bytes.
LIMIT = 14_000_000

# Name on the command line: Rust's target, and the platform tag of the wheel.
TARGETS = {
    "x86_64-gnu": ("x86_64-unknown-linux-gnu", "manylinux2014"),
    "aarch64-gnu": ("aarch64-unknown-linux-gnu", "manylinux2014"),
    "x86_64-musl": ("x86_64-unknown-linux-musl", "musllinux_1_2"),
    "aarch64-musl": ("aarch64-unknown-linux-musl", "musllinux_1_2"),
}

# Fails if the extension of a wheel needs a library other than libc. elftools is a
# dependency of auditwheel.
NEEDS_ONLY_LIBC = """
import io, sys, zipfile
from elftools.elf.elffile import ELFFile
wheel = zipfile.ZipFile(sys.argv[1])
[name] = [name for name in wheel.namelist() if name.endswith(".so")]
dynamic = ELFFile(io.BytesIO(wheel.read(name))).get_section_by_name(".dynamic")
needed = [tag.needed for tag in dynamic.iter_tags("DT_NEEDED")]
print(sys.argv[1], "needs", needed)
sys.exit(needed != ["libc.so"])
"""


def tool(name: str) -> str:
    """A program of the environment that builds wheels."""
    return str(TOOLS / "bin" / name)


def run(*command: str | Path) -> None:
    """Run a command in the root of the repository; exit if it fails."""
    path = os.pathsep.join([str(TOOLS / "bin"), os.environ["PATH"]])
    # Processes that cargo starts cannot use make's job server.
    environment = {**os.environ, "PATH": path, "MAKEFLAGS": ""}
    done = subprocess.run(list(command), cwd=ROOT, env=environment, check=False)
    if done.returncode:
        raise SystemExit(f"failed: {' '.join(map(str, command))}")


def prepare(targets: list[str]) -> None:
    """Make the environment of tools and add Rust's targets."""
    if not Path(tool("pip")).exists():
        venv.create(TOOLS, with_pip=True)
    run(tool("python"), "-m", "pip", "install", "--quiet", *PACKAGES)
    if shutil.which("rustup") is None:
        raise SystemExit(
            "make wheels needs rustup, which brings Rust's libraries for other systems"
        )
    run("rustup", "target", "add", *(TARGETS[name][0] for name in targets))


def build(name: str) -> None:
    """Build the wheel of one target."""
    triple, platform = TARGETS[name]
    print(f"== {name}: {platform}", flush=True)
    run(
        *(tool("maturin"), "build", "--profile", "dist", "--locked", "--zig"),
        *("--target", triple, "--compatibility", platform, "--out", DIST),
    )


def check(wheels: list[Path]) -> None:
    """Compare each extension with the limit, and print its sizes.

    Raises:
        SystemExit: If there is no wheel, or an extension is too large.
    """
    large = []
    for wheel in wheels:
        for entry in zipfile.ZipFile(wheel).infolist():
            if entry.filename.endswith((".so", ".pyd")):
                print(
                    f"{wheel.name}: extension {entry.file_size / 1e6:.2f} MB, "
                    f"compressed {entry.compress_size / 1e6:.2f} MB"
                )
                if entry.file_size > LIMIT:
                    large.append(wheel.name)
    if not wheels or large:
        raise SystemExit(f"larger than {LIMIT / 1e6:.0f} MB: {large or 'no wheels'}")


def inspect(wheels: list[Path]) -> None:
    """Audit symbols: of Python's stable ABI, and of the libc that the tag promises."""
    run(tool("abi3audit"), "--strict", "--summary", *wheels)
    for wheel in wheels:
        # musl has no symbol versions, and auditwheel would inspect the libc of this
        # machine.
        if "musllinux" in wheel.name:
            run(tool("python"), "-c", NEEDS_ONLY_LIBC, wheel)
        else:
            run(tool("auditwheel"), "show", wheel)


def install(wheel: Path) -> None:
    """Run the smoke test in a fresh environment, then with the extra of the command."""
    fresh = ROOT / "target" / "wheel-smoke"
    venv.create(fresh, with_pip=True, clear=True)
    python = fresh / "bin" / "python"
    for wanted in (str(wheel), f"{wheel}[cli]"):
        run(python, "-m", "pip", "install", "--quiet", wanted)
        run(python, ROOT / "tools" / "smoke.py")


def main(arguments: list[str]) -> None:
    """Build and check, or only check."""
    if arguments[:1] == ["--check"]:
        return check(sorted(Path(arguments[1]).glob("*.whl")))
    if unknown := set(arguments) - set(TARGETS):
        raise SystemExit(f"no targets: {sorted(unknown)}; there are {list(TARGETS)}")
    names = arguments or list(TARGETS)
    prepare(names)
    if not arguments:
        shutil.rmtree(DIST, ignore_errors=True)
        run(tool("maturin"), "sdist", "--out", DIST)
    for name in names:
        build(name)
    wheels = sorted(DIST.glob("*.whl"))
    check(wheels)
    inspect(wheels)
    for wheel in wheels:
        if "manylinux" in wheel.name and wheel.stem.endswith(os.uname().machine):
            install(wheel)
    return None


if __name__ == "__main__":
    main(sys.argv[1:])
