"""`Features` over tables: the columns of separate calls, side by side."""

import inspect
import random
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from seeds import SEED

import slidewise as sw
from slidewise.table import binding

AMOUNTS: dict[str, Any] = {"n": sw.count(), "spent": sw.sum("amount")}
FRAUD = sw.Features(
    card=sw.Spec(on="t", by="card", windows=[60, 600], aggs=AMOUNTS, closed="left"),
    shops=sw.Spec(
        on="t", by="card", windows=600, aggs={"d": sw.count_distinct("shop")}, fill=0
    ),
    shop=sw.Spec(on="t", by="shop", windows=60, aggs=AMOUNTS, exclude="self"),
    pair=sw.Spec(
        on="t",
        by=["card", "shop"],
        windows=[sw.rows(3), sw.landmark("flag"), 600],
        aggs={"avg": sw.mean("amount"), "last": sw.last("amount")},
    ),
    all=sw.Spec(on="t", windows=60, aggs=AMOUNTS, names="{window} {group} {agg}"),
    seen=sw.Spec(on="t", by="card", windows=60, aggs=AMOUNTS, arrival="came"),
)


TEXT = pa.string()


def payments(rng: random.Random, rows: int) -> pa.Table:
    return pa.table(
        {
            "t": pa.array([rng.randrange(900) for _ in range(rows)], pa.int64()),
            "card": pa.array([rng.choice([*"ABC", None]) for _ in range(rows)], TEXT),
            "shop": pa.array([rng.choice("xy") for _ in range(rows)], TEXT),
            "amount": pa.array([rng.randrange(90) for _ in range(rows)], pa.int64()),
            "flag": pa.array([rng.random() < 0.1 for _ in range(rows)], pa.bool_()),
            "came": pa.array([rng.randrange(20) for _ in range(rows)], pa.int64()),
        }
    )


def one_by_one(table: Any, features: sw.Features, **more: Any) -> pa.Table:
    """The results of separate calls, renamed by hand."""
    at = more.get("at")
    out = table if at is None else at
    for name, spec in features.given:
        alone = spec.replace(names=None)
        given = sw.rolling(table, alone, **more).select(alone.results)
        if spec.names:
            names = [
                f"{window} {name} {agg}"
                for agg, _, window in (x.partition("_") for x in alone.results)
            ]
        else:
            names = [f"{name}_{column}" for column in alone.results]
        for column, values in zip(names, given.columns, strict=True):
            out = out.append_column(column, values)
    return out


@pytest.mark.parametrize("run", range(4))
def test_features_are_the_results_of_separate_calls(run: int) -> None:
    rng = random.Random(SEED + run)
    table = payments(rng, rng.choice([0, 1, 40, 200]))
    labels = payments(rng, 30).select(["card", "shop", "t", "came"])
    assert sw.rolling(table, FRAUD).equals(one_by_one(table, FRAUD))
    at = sw.rolling(table, FRAUD, at=labels, threads=2)
    assert at.equals(one_by_one(table, FRAUD, at=labels))


def test_features_of_every_library_are_those_of_arrow() -> None:
    table = payments(random.Random(5), 50)
    features = sw.Features(card=FRAUD["card"], pair=FRAUD["pair"])
    expected = sw.rolling(table, features)
    frame = sw.rolling(table.to_pandas(), features)
    assert isinstance(frame, pd.DataFrame)
    assert [*frame.columns] == expected.column_names
    assert frame["card_n_60"].tolist() == expected["card_n_60"].to_pylist()
    rows = pl.DataFrame(table.to_pydict())
    eager, lazy = sw.rolling(rows, features), sw.rolling(rows.lazy(), features)
    labels = rows.lazy()
    at = sw.rolling(table, features, at=labels)
    assert lazy.collect().equals(eager)
    assert at.collect().equals(eager.select(at.collect_schema().names()))
    assert eager["pair_avg_600"].to_list() == expected["pair_avg_600"].to_pylist()
    plain = {"t": np.array([3, 1]), "k": np.array([1, 1])}
    spec = sw.Spec(on="t", windows=5, aggs={"n": sw.count()})
    both = sw.Features(all=spec, k=spec.replace(by="k"))
    assert sw.rolling(plain, both)["k_n_5"].tolist() == [2, 1]


def test_keys_of_labels_are_named_by_a_mapping() -> None:
    table = payments(random.Random(6), 50)
    labels = payments(random.Random(7), 9).select(["card", "shop", "t"])
    features = sw.Features(**{x: FRAUD[x] for x in ("card", "shop", "pair")})
    renamed = labels.rename_columns(["whose", "shop", "when"])
    got = sw.rolling(table, features, at=renamed, at_on="when", at_by={"card": "whose"})
    expected = sw.rolling(table, features, at=labels)
    assert got.select(features.results).equals(expected.select(features.results))
    with pytest.raises(sw.SpecError, match=r"give a mapping .* at_by=\{'card': 'their"):
        sw.rolling(table, features, at=labels, at_by=["card", "shop"])
    with pytest.raises(sw.SpecError, match="names 'amount', which is not a key of"):
        sw.rolling(table, features, at=labels, at_by={"amount": "x"})


def test_rows_are_sorted_once_for_equal_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = binding
    sorts, sort = [], module._core.sort_rows
    coded, code = [], module.group_codes
    read: list[str] = []

    def sorting(*given: Any) -> Any:
        sorts.append(given)
        return sort(*given)

    def coding(*given: Any, **more: Any) -> Any:
        coded.append(given)
        return code(*given, **more)

    monkeypatch.setattr(module._core, "sort_rows", sorting)
    monkeypatch.setattr(module, "group_codes", coding)
    column = module.Source.column

    def reading(self: Any, name: str) -> Any:
        if name not in self._columns:
            read.append(name)
        return column(self, name)

    monkeypatch.setattr(module.Source, "column", reading)
    spec = sw.Spec(on="t", by="card", windows=60, aggs=AMOUNTS)
    features = sw.Features(a=spec, b=spec.replace(windows=600, nan="skip"), c=spec)
    table = payments(random.Random(8), 99)
    got = sw.rolling(table, features)
    assert (len(sorts), len(coded), sorted(read)) == (1, 1, ["amount", "card", "t"])
    assert got["b_n_600"].equals(sw.rolling(table, features["b"])["n_600"])


def test_an_error_names_what_is_wrong() -> None:
    table = payments(random.Random(9), 9)
    with pytest.raises(sw.SpecError, match="already: give the aggregation another"):
        sw.rolling(table.append_column("card_n_60", table["t"]), FRAUD)
    with pytest.raises(sw.SpecError, match="the table has no column 'shop'"):
        sw.rolling(table.drop_columns("shop"), FRAUD)
    with pytest.raises(sw.SpecError, match=r"closed= belongs in the Specs of the Feat"):
        sw.rolling(table, FRAUD, closed="left")
    with pytest.raises(sw.SpecError, match="hopping does not take Features: they have"):
        sw.hopping(table, FRAUD)  # type: ignore[arg-type]
    large = table.set_column(3, "amount", pa.array([2**62] * 9))
    features = sw.Features(all=FRAUD["all"])
    with pytest.raises(sw.ResultOverflowError, match=r"sum\('amount'\) over the win"):
        sw.rolling(large, features)


def test_explain_has_the_lines_of_each_spec() -> None:
    table = payments(random.Random(10), 9)
    features = sw.Features(card=FRAUD["card"], pair=FRAUD["pair"])
    lines: list[str] = []
    for name, spec in features.given:
        own = sw.explain(table, spec).split("\n")
        lines += [f"{name}:", *(f"  {line}" for line in own)]
    assert sw.explain(table, features) == "\n".join(lines)


def test_audit_takes_features() -> None:
    table = payments(random.Random(11), 60)
    features = sw.Features(card=FRAUD["card"], shop=FRAUD["shop"])
    labels = table.select(["card", "shop", "t", "came"]).slice(0, 12)
    served = sw.rolling(table, features, at=labels)
    out = sw.audit(served, table, features, at="t", served_at="came", arrival="came")
    for name, spec in features.parts.items():
        alone = sw.audit(served, table, spec, at="t", served_at="came", arrival="came")
        added = [x for x in alone.column_names if x not in served.column_names]
        assert len(added) == 3 * len(spec.results), name
        assert out.select(added).equals(alone.select(added))
    assert set(out["card_n_60_reason"].to_pylist()) == {"equal"}


def of_payments() -> sw.Features:
    """Fraud features of cards, shops and pairs."""
    spent = {
        "n": sw.count(),
        "spent": sw.sum("amount"),
        "avg": sw.mean("amount"),
        "top": sw.max("amount"),
        "sd": sw.stddev("amount"),
    }
    shops = {"shops": sw.count_distinct("shop", windows="24h"), "last": sw.last("t")}
    common: Any = {"on": "t", "exclude": "self", "fill": {"spent": 0}}
    days = ["1h", "24h", "7d", "30d"]
    return sw.Features(
        card=sw.Spec(by="card", windows=days, aggs=spent | shops, **common),
        shop=sw.Spec(by="shop", windows=days, aggs=spent, **common),
        pair=sw.Spec(by=["card", "shop"], windows=days, aggs=spent, **common),
    )


def test_features_of_payments_are_equal_in_training_and_service() -> None:
    assert len(inspect.getsource(of_payments).splitlines()) <= 20
    rng, features = random.Random(SEED), of_payments()
    table = payments(rng, 300).drop_columns(["flag", "came"])
    hours = sorted(3600 * rng.randrange(900) + row for row in range(300))
    table = table.set_column(0, "t", pa.array(hours, pa.timestamp("s")))
    training = sw.rolling(table, features)
    # The results for each payment, by a label of its time and by a service.
    service = sw.KeyedWindows(features, emit="none", schema=table.schema)
    for row in range(0, 300, 7):
        before, one = table.slice(0, row), table.slice(row, 1)
        label = sw.rolling(before, features, at=one.drop_columns("amount"))
        (expected,) = training.slice(row, 1).select(features.results).to_pylist()
        (asked,) = label.select(features.results).to_pylist()
        assert asked == near(expected)
        key = {name: one[name][0].as_py() for name in ("card", "shop")}
        assert service.query(key, at=one["t"][0]) == near(expected)
        service.ingest(table.slice(row, 7))


def near(row: dict[str, Any]) -> dict[str, Any]:
    """The values; floats about."""
    return {
        name: pytest.approx(value, rel=1e-9, abs=1e-9)
        if isinstance(value, float)
        else value
        for name, value in row.items()
    }
