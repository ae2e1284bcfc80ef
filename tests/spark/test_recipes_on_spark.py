"""The recipes that say so give the same on Spark, in batch."""

import re
from typing import Any

import pyarrow as pa
import pytest
import recipes

import slidewise.spark


@pytest.mark.parametrize("page", recipes.PAGES, ids=lambda page: page.stem)
def test_recipes_give_the_same_on_spark(
    page: Any, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = recipes.calls(page, monkeypatch)
    assert made, "no section names another place"
    for call in made:
        place = next((one for one in call.places if one.startswith("Spark")), None)
        if place is None:
            continue
        order = re.findall(r'then_by="(\w+)"', place)
        options = call.options | ({"then_by": order} if order else {})
        rows = spark.createDataFrame(call.table)
        frame = getattr(slidewise.spark, call.name)(rows, *call.positional, **options)
        got = pa.Table.from_batches(frame.toArrow().to_batches())
        expected = call.result
        assert set(got.column_names) == set(expected.column_names), call.section
        columns = expected.column_names
        assert recipes.comparable(got.to_pylist(), columns) == recipes.comparable(
            expected.to_pylist(), columns
        ), call.section
