"""The recipes that say so give the same in `KeyedWindows`."""

from pathlib import Path

import pyarrow as pa
import pytest
import recipes

import slidewise as sw

FAR = 10 * 366 * 86_400


@pytest.mark.parametrize("page", recipes.PAGES, ids=lambda page: page.stem)
def test_recipes_give_the_same_in_a_stream(
    page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = recipes.calls(page, monkeypatch)
    assert made, "no section names another place"
    for call in made:
        rows, expected = call.table, call.result
        if "a stream" in call.places:
            got = streamed(call, rows)
        else:
            assert "a service (`query_many`)" in call.places, call.section
            got = asked(call, rows)
        columns = [name for name in got.column_names if name in expected.column_names]
        assert set(expected.column_names) - set(rows.column_names) <= set(columns)
        assert recipes.comparable(got.to_pylist(), columns) == recipes.comparable(
            expected.to_pylist(), columns
        ), call.section


def streamed(call: recipes.Call, rows: pa.Table) -> pa.Table:
    """What is emitted when the watermark is far behind all windows."""
    stream = sw.KeyedWindows(*call.positional, **call.options)
    stream.ingest(rows)
    on = call.options.get("on") or call.positional[0].on
    latest = max(rows[on].to_pylist())
    stream.advance(
        latest + FAR if isinstance(latest, int) else latest.replace(year=2040)
    )
    return stream.collect()


def asked(call: recipes.Call, rows: pa.Table) -> pa.Table:
    """The answers at the labels."""
    options = dict(call.options)
    labels = recipes.arrow(options.pop("at"))
    stream = sw.KeyedWindows(*call.positional, **options, emit="none")
    stream.ingest(rows)
    return stream.query_many(labels, at=options["on"])
