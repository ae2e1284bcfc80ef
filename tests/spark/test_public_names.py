"""`slidewise.spark` shows only its public names, and imports PySpark on first use."""

import subprocess
import sys

SCRIPT = """
import importlib, inspect, pkgutil, sys
import slidewise.spark as spark

assert "pyspark" not in sys.modules
assert dir(spark) == sorted(spark.__all__)
assert not hasattr(spark, "windows")
before = {name: getattr(spark, name) for name in spark.__all__}
assert "pyspark" in sys.modules
modules = [module.name for module in pkgutil.iter_modules(spark.__path__)]
assert len(modules) > 20, modules
for name in modules:
    importlib.import_module(f"slidewise.spark.{name}")
    assert name not in spark.__all__, f"{name} is a module, too"
for name, item in before.items():
    assert getattr(spark, name) is item
    assert inspect.isfunction(item) or inspect.isclass(item), name
"""


def test_public_names() -> None:
    """The test runs in a process that has not imported PySpark."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
