"""The demo of both engines, small, on the session of the tests."""

import re

import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="slidewise[spark]")

import demo_spark


def test_the_engines_agree(spark, capsys: pytest.CaptureFixture[str]) -> None:
    demo_spark.run(spark, rows=2_000, seed=3, count=3)
    text = capsys.readouterr().out.rstrip()
    lines = re.findall(r"^Spark, .*?(\d+|·) +(\d+) +(\S+) +0$", text, re.MULTILINE)
    assert len(lines) == 3
    assert re.search(r"stream, final +\d+ +[1-9]", text), "some rows are too late"
    assert text.endswith("0 cells differ.")


def test_differences_are_counted() -> None:
    """Cells differ by a value, a null, a missing row or an extra row."""
    columns = {name: [1.0, 2.0, None] for name in demo_spark.RESULTS}
    table = pa.table({"trip": [1, 2, 3], **columns})
    assert demo_spark.differing(table.take([2, 0, 1]), table) == 0
    assert demo_spark.differing(table.slice(0, 2), table) == len(demo_spark.RESULTS)
    assert demo_spark.differing(table, table.slice(0, 2)) == len(demo_spark.RESULTS)
    other = table.set_column(1, demo_spark.RESULTS[0], pa.array([1.0, None, 2.0]))
    assert demo_spark.differing(other, table) == 2


def test_a_single_cell_fails_the_demo(spark, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_spark, "compare", lambda *_: [{"cells differ": 1}])
    with pytest.raises(SystemExit, match="disagree in 1 cells"):
        demo_spark.run(spark, rows=10, count=2)
