"""The demo of both engines: small, on the session at hand."""

import re

import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="slidewise[spark]")

from slidewise.cli import demo_spark
from slidewise.errors import SlidewiseError


@pytest.mark.usefixtures("spark")
def test_the_engines_agree() -> None:
    said: list[str] = []
    demo_spark.run(rows=2_000, seed=3, bursts=3, say=said.append)
    text = "\n".join(said)
    lines = re.findall(r"^Spark, .*?(\d+|·) +(\d+) +(\S+) +0$", text, re.MULTILINE)
    assert len(lines) == 3
    assert re.search(r"stream, final +\d+ +[1-9]", text), "some rows are too late"
    assert text.endswith("0 cells differ.")


def test_what_differs_is_counted() -> None:
    """A value, a null, a row that is missing and one that is too much."""
    columns = {name: [1.0, 2.0, None] for name in demo_spark._RESULTS}
    table = pa.table({"trip": [1, 2, 3], **columns})
    assert demo_spark._differing(table.take([2, 0, 1]), table) == 0
    assert demo_spark._differing(table.slice(0, 2), table) == len(demo_spark._RESULTS)
    assert demo_spark._differing(table, table.slice(0, 2)) == len(demo_spark._RESULTS)
    other = table.set_column(1, demo_spark._RESULTS[0], pa.array([1.0, None, 2.0]))
    assert demo_spark._differing(other, table) == 2


@pytest.mark.usefixtures("spark")
def test_a_single_cell_fails_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        demo_spark._Comparison, "told", lambda self: [{"cells differ": 1}]
    )
    with pytest.raises(SlidewiseError, match="disagree in 1 cells"):
        demo_spark.run(rows=10, bursts=2, say=str)
