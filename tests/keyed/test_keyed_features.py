"""`KeyedWindows` of `Features`: each row once, with the results of all Specs."""

import copy
import pickle
import random
import re
import threading
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from seeds import SEED

import slidewise as sw
from slidewise.keyed import transaction

AMOUNTS: dict[str, Any] = {"n": sw.count(), "spent": sw.sum("amount")}
CARD = sw.Spec(on="t", by="card", windows=[20, 90], aggs=AMOUNTS, closed="left")
SHOP = sw.Spec(
    on="t", by="shop", windows=30, aggs={"cards": sw.count_distinct("card")}, fill=0
)
PAIR = sw.Spec(
    on="t",
    by=["card", "shop"],
    windows=[sw.rows(3), 50],
    aggs={"avg": sw.mean("amount"), "top": sw.max("amount")},
)
ALL = sw.Spec(on="t", windows=10, aggs=AMOUNTS, names="{group}: {agg} {window}")
FEATURES = sw.Features(card=CARD, shop=SHOP, pair=PAIR, all=ALL)
KINDS = pa.schema(
    {
        "row": "int64",
        "t": "int64",
        "card": "string",
        "shop": "string",
        "amount": "int64",
    }
)


def payments(rng: random.Random, rows: int, start: int = 0) -> pa.Table:
    columns = {
        "row": range(1000 * start, 1000 * start + rows),
        "t": [start + rng.randrange(40) for _ in range(rows)],
        "card": [rng.choice([*"ABC", None]) for _ in range(rows)],
        "shop": [rng.choice("xy") for _ in range(rows)],
        "amount": [rng.randrange(90) for _ in range(rows)],
    }
    return pa.table(
        {name: pa.array(columns[name], KINDS.field(name).type) for name in columns}
    )


def renamed(name: str, column: str) -> str:
    """The result column of a Spec alone, as the Features name it."""
    agg, _, window = column.rpartition("_")
    return f"all: {agg} {window}" if name == "all" else f"{name}_{column}"


def alone(**options: Any) -> dict[str, sw.KeyedWindows]:
    """The windows of each Spec by itself."""
    return {
        name: sw.KeyedWindows(spec.replace(names=None), **options)
        for name, spec in FEATURES.given
    }


def side_by_side(tables: dict[str, pa.Table]) -> list[dict[str, Any]]:
    """The rows of separate windows, joined by their number."""
    rows: dict[int, dict[str, Any]] = {}
    for name, table in tables.items():
        for row in table.to_pylist():
            known = rows.setdefault(row["row"], {})
            for column, value in row.items():
                own = column in KINDS.names or column == "_late"
                known[column if own else renamed(name, column)] = value
    return sorted(rows.values(), key=lambda row: row["row"])


@pytest.mark.parametrize("emit", ["final", "arrival"])
@pytest.mark.parametrize("late_rows", ["drop", "flag"])
@pytest.mark.parametrize("run", range(3))
def test_rows_have_the_results_of_separate_windows(
    emit: str, late_rows: str, run: int
) -> None:
    rng = random.Random(SEED + run)
    options: dict[str, Any] = {"emit": emit, "late_rows": late_rows, "late": 15}
    windows, ones = sw.KeyedWindows(FEATURES, **options), alone(**options)
    for step in range(12):
        batch = payments(rng, rng.randrange(1, 20), start=12 * step)
        for each in (windows, *ones.values()):
            each.ingest(batch)
            if step % 3:
                each.advance()
        if step == 5:
            got = windows.collect()
            assert got.column_names[:5] == KINDS.names
            expected = side_by_side({x: one.collect() for x, one in ones.items()})
            assert sorted(got.to_pylist(), key=lambda row: row["row"]) == expected
            windows = restored(windows, rng)
        windows.check()
        assert windows.watermark == ones["card"].watermark
        assert windows.late_count == ones["card"].late_count
    for each in (windows, *ones.values()):
        each.advance(10**6)
    got = windows.collect()
    expected = side_by_side({x: one.collect() for x, one in ones.items()})
    assert sorted(got.to_pylist(), key=lambda row: row["row"]) == expected
    assert windows.late_count > 0
    if emit == "final" and late_rows == "drop":
        assert got["t"].to_pylist() == sorted(got["t"].to_pylist())


def restored(windows: sw.KeyedWindows, rng: random.Random) -> sw.KeyedWindows:
    """The windows after a restart, in one of the ways."""
    way = rng.randrange(4)
    if way == 0:
        return sw.KeyedWindows.from_bytes(windows.to_bytes())
    if way == 1:
        return sw.KeyedWindows.from_bytes(windows.to_bytes(), FEATURES)
    return copy.copy(windows) if way == 2 else pickle.loads(pickle.dumps(windows))


def test_final_rows_are_those_of_the_table() -> None:
    rng = random.Random(SEED)
    table = payments(rng, 150)
    windows = sw.KeyedWindows(FEATURES, late=100)
    for start in range(0, 150, 40):
        windows.ingest(table.slice(start, 40).to_pandas())
    windows.advance(1000)
    got = windows.collect().sort_by("row")
    assert got.equals(sw.rolling(table, FEATURES).cast(got.schema))
    assert windows.collect().num_rows == 0


def test_queries_have_the_results_of_all_specs() -> None:
    rng = random.Random(SEED)
    windows, ones = (
        sw.KeyedWindows(FEATURES, emit="none", late=9),
        alone(emit="none", late=9),
    )
    for step in range(4):
        batch = payments(rng, 30, start=10 * step)
        for each in (windows, *ones.values()):
            each.ingest(batch)
            each.advance()
    assert windows.watermark == ones["card"].watermark
    keys = {"card": [*"ABCZ", None], "shop": [*"xyxyz"], "amount": [1, 2, 3, 4, 5]}
    labels = pa.table(keys)
    for at, asked, plus, until in [
        ("latest", None, False, False),
        (70, None, True, False),
        (80, [7, 15], True, False),
        (90, None, False, True),
    ]:
        more: dict[str, Any] = {"at": at, "windows": asked, "valid_until": until}
        expected: dict[str, Any] = {}
        for name, spec in FEATURES.given:
            own = {"amount": "amount", "card": "card", "shop": "shop"}
            read = {x: own[x] for x in own if x in spec.columns and x not in spec.by}
            # Only the windows of all columns know `shop`.
            found = ones[name].query_many(labels, plus=read if plus else None, **more)
            for column in found.column_names[3:]:
                expected[renamed(name, column)] = found[column].to_pylist()
        got = windows.query_many(labels, plus=["amount"] if plus else None, **more)
        assert got.select(labels.column_names).equals(labels)
        assert got.drop_columns(labels.column_names).to_pydict() == expected
        lists = windows.query_many(
            keys, plus={"amount": "amount"} if plus else None, **more
        )
        assert lists == keys | expected
        lazy = windows.query_many(
            pl.DataFrame(keys).lazy(), plus=["amount"] if plus else None, **more
        )
        assert lazy.collect().to_dict(as_series=False) == keys | expected
        for row in range(len(labels)):
            key = {name: keys[name][row] for name in ("card", "shop")}
            extra = {"amount": keys["amount"][row]} if plus else None
            one = windows.query(key, plus=extra, **more)
            assert one == {name: values[row] for name, values in expected.items()}
            assert windows.query((*key.values(),), plus=extra, **more) == one


def test_an_extra_row_has_the_keys_of_other_specs() -> None:
    windows = sw.KeyedWindows(FEATURES, emit="none", schema=KINDS)
    windows.ingest({"row": 0, "t": 5, "card": "A", "shop": "x", "amount": 7})
    key = {"card": "B", "shop": "x"}
    assert windows.query(key, at=9)["shop_cards_30"] == 1
    assert windows.query(key, at=9, plus={})["shop_cards_30"] == 2
    assert windows.query(key, at=9, plus={"amount": 3})["all: spent 10"] == 10
    many = windows.query_many({"card": ["B"], "shop": ["x"]}, at=9, plus=[])
    assert many["shop_cards_30"] == [2]


def test_one_key_column_takes_the_bare_value() -> None:
    windows = sw.KeyedWindows(sw.Features(a=CARD, b=ALL), emit="none")
    windows.ingest({"t": [1, 2], "card": ["A", "B"], "amount": [3, 4]})
    assert windows.query("A", at=5)["a_spent_20"] == 3
    assert ("A" in windows, "Z" in windows) == (True, True)  # without keys, all rows
    assert ("Z" in sw.KeyedWindows(sw.Features(a=CARD), schema=KINDS)) is False


def test_a_batch_that_one_spec_refuses_changes_nothing() -> None:
    large: dict[str, Any] = {
        "row": [9],
        "t": [6],
        "card": ["A"],
        "shop": ["y"],
        "amount": [2**62],
    }
    features = sw.Features(
        n=sw.Spec(on="t", by="card", windows=9, aggs={"n": sw.count()}),
        sum=sw.Spec(on="t", by="card", windows=9, aggs={"s": sw.sum("amount")}),
    )
    windows = sw.KeyedWindows(features, emit="arrival")
    with pytest.raises(sw.ResultOverflowError):
        windows.ingest({name: values * 2 for name, values in large.items()})
    with pytest.raises(sw.SpecError, match="there are no rows yet: ingest some before"):
        windows.collect()
    windows.ingest(
        {"t": [5], "card": ["A"], "amount": [2.5]}
    )  # other columns and types
    assert windows.collect().to_pylist() == [
        {"t": 5, "card": "A", "amount": 2.5, "n_n_9": 1, "sum_s_9": 2.5}
    ]
    windows = sw.KeyedWindows(features, emit="arrival", schema=KINDS)
    windows.ingest(large)
    before = windows.to_bytes() if windows.collect().num_rows == 1 else b""
    for wrong in ({**large, "t": [None]}, large, {**large, "amount": ["x"]}):
        with pytest.raises((sw.SpecError, sw.ResultOverflowError)):
            windows.ingest(wrong)
        windows.check()
        assert windows.to_bytes() == before
    windows.ingest({**large, "t": [99]})
    assert windows.collect()["n_n_9"].to_pylist() == [1]


@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_batch_that_is_interrupted_is_in_all_specs_or_in_none(
    monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    """Also where the transaction of one of them had ended."""
    windows = sw.KeyedWindows(FEATURES, schema=KINDS, late=50)
    windows.ingest(payments(random.Random(1), 9))
    before, left = windows.to_bytes(), [at]
    state: Any = transaction.State
    end = state._end

    def stops(self: Any, kind: Any) -> None:
        left[0] -= 1
        if left[0] == -1:
            raise KeyboardInterrupt
        end(self, kind)

    def ingest(each: sw.KeyedWindows) -> bytes:
        each.ingest(payments(random.Random(2), 9, start=7))
        return each.to_bytes()

    expected = ingest(sw.KeyedWindows.from_bytes(before))
    with monkeypatch.context() as patch:
        patch.setattr(state, "_end", stops)
        with pytest.raises(KeyboardInterrupt):
            ingest(windows)
    windows.check()
    assert windows.to_bytes() == expected
    windows.advance(10**6)
    again = sw.KeyedWindows.from_bytes(expected)
    again.advance(10**6)
    assert windows.collect().equals(again.collect())


def test_a_follower_has_the_rows_of_its_leader() -> None:
    rng = random.Random(SEED)
    leader = sw.KeyedWindows(FEATURES, late=5)
    leader.ingest(payments(rng, 20))
    first, key, later = leader.to_bytes(), {"card": "A", "shop": "x"}, []
    follower = sw.KeyedWindows.from_bytes(first)
    for step in range(1, 5):
        leader.ingest(payments(rng, 20, start=10 * step))
        leader.advance()
        leader.collect()
        later.append(leader.changes())
        follower.apply(later[-1])
        assert follower.query(key) == leader.query(key)
        assert follower.to_bytes() == leader.to_bytes()
    with pytest.raises(sw.SnapshotError, match="do not follow those restored or appl"):
        follower.apply(later[0])
    assert follower.to_bytes() == leader.to_bytes()
    again = sw.KeyedWindows.from_bytes(first, FEATURES, changes=later)
    for windows in (leader, follower, again):
        windows.ingest(payments(random.Random(3), 20, start=60))
        windows.advance(1000)
    expected = leader.collect()
    assert follower.collect().equals(expected)
    assert again.collect().equals(expected)


def test_restored_specs_may_have_grown() -> None:
    windows = sw.KeyedWindows(sw.Features(card=CARD, shop=SHOP))
    windows.ingest(payments(random.Random(SEED), 30))
    grown = sw.Features(card=CARD.replace(windows=[20, 40, 90]), shop=SHOP)
    again = sw.KeyedWindows.from_bytes(windows.to_bytes(), grown)
    key = {"card": "A", "shop": "x"}
    alone = sw.KeyedWindows.from_bytes(
        again.to_bytes(), sw.Features(card=grown["card"], shop=SHOP)
    )
    assert again.query(key) == alone.query(key)
    other = sw.Features(card=CARD.replace(by="shop"), shop=SHOP)
    with pytest.raises(sw.SnapshotError):
        sw.KeyedWindows.from_bytes(windows.to_bytes(), other)


def test_bytes_of_something_else_are_refused() -> None:
    windows = sw.KeyedWindows(FEATURES, schema=KINDS)
    blob, single = windows.to_bytes(), sw.KeyedWindows(CARD, schema=KINDS).to_bytes()
    restore: Any = sw.KeyedWindows.from_bytes
    with pytest.raises(
        sw.SnapshotError, match="not a snapshot of KeyedWindows of Feat"
    ):
        restore(single, FEATURES)
    with pytest.raises(sw.SnapshotError, match="is of Features, and a Spec is given"):
        restore(blob, CARD)
    with pytest.raises(
        sw.SnapshotError, match="the snapshot has the Specs card, shop, "
    ):
        restore(blob, sw.Features(card=CARD))
    with pytest.raises(sw.SnapshotError, match="its checksum differs"):
        restore(blob[:-1])
    with pytest.raises(
        sw.SnapshotError, match=r"what changes\(\) returned: pass the b"
    ):
        restore(windows.changes())
    with pytest.raises(sw.SnapshotError, match=r"bytes are what to_bytes\(\) returned"):
        windows.apply(blob)
    with pytest.raises(
        sw.SpecError, match="emit= is in the snapshot, and cannot change"
    ):
        restore(blob, FEATURES, emit="final")


def test_what_windows_of_features_hold() -> None:
    windows = sw.KeyedWindows(FEATURES, late=3, emit="arrival")
    assert re.fullmatch(r"<KeyedWindows card: rolling 20, 90 .*: empty>", repr(windows))
    assert (len(windows), windows.watermark, windows.late_count) == (0, None, 0)
    windows.ingest(payments(random.Random(4), 40))
    windows.advance()
    ones = alone(late=3, emit="arrival")
    for one in ones.values():
        one.ingest(payments(random.Random(4), 40))
        one.advance()
    keys = windows.keys()
    assert {name: keys[name] for name in ones} == {x: o.keys() for x, o in ones.items()}
    assert len(windows) == sum(map(len, ones.values()))
    assert windows.nbytes > max(one.nbytes for one in ones.values())
    assert f": latest {windows.watermark + 3}, watermark " in repr(windows)
    lines = windows.explain().split("\n")
    assert [line for line in lines if line[0] != " "] == [
        "card:",
        "shop:",
        "pair:",
        "all:",
    ]
    assert {"card": "A", "shop": "q"} in windows
    evicted = sum(one.evict_idle(one.watermark) for one in ones.values())
    assert windows.evict_idle(windows.watermark) == evicted


def test_deletes_go_with_specs_of_equal_keys() -> None:
    features = sw.Features(a=CARD, b=CARD.replace(closed="right"))
    windows = sw.KeyedWindows(features, deletes="gone", late=9)
    rows = {"t": [1, 2, 1], "card": [*"AAA"], "amount": [1, 2, 1], "gone": [0, 0, 1]}
    windows.ingest(pa.table(rows).set_column(3, "gone", pa.array([False, False, True])))
    windows.advance(99)
    got = windows.collect()
    assert (got["t"].to_pylist(), got["b_n_20"].to_pylist()) == ([2], [1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"emit": "update"},
            "emit='update' does not go with Features, whose results are",
        ),
        ({"emit": "slide"}, "it is one of 'final', 'arrival', 'none'"),
        ({"late_rows": "correct"}, "late_rows='correct' does not go with Features"),
        (
            {"late_rows": "flag", "emit": "none"},
            "card: late_rows='flag' gives rows back",
        ),
        (
            {"deletes": "gone"},
            "deletes='gone' deletes a row by its key, and the Specs ha",
        ),
        ({"late": -1}, "card: late=-1 is negative"),
        ({"closed": "left"}, "closed= belongs in the Specs of the Features"),
        ({"schema": {"t": "int64"}}, "the stream has no column 'card'"),
        ({"schema": [*KINDS, ("__row", pa.int64())]}, "'__row' is reserved"),
        (
            {"schema": [*KINDS, ("card_n_20", pa.int64())]},
            "a column 'card_n_20' already",
        ),
        ({"schema": {"x": "int64"}}, "schema= has no column 't'"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    if isinstance(options.get("schema"), list):
        options = {"schema": pa.schema(options["schema"])}
    with pytest.raises(sw.SpecError, match=re.escape(message)):
        sw.KeyedWindows(FEATURES, **options)


def test_wrong_queries_are_refused() -> None:
    windows = sw.KeyedWindows(FEATURES, emit="none", schema=KINDS)
    key = {"card": "A", "shop": "x"}
    ask: Any = windows.query
    for wrong, message in [
        (({"card": "A"},), "the key has no column 'shop'"),
        (({**key, "x": 1},), "the key has a column 'x'"),
        (("A",), "'A' is not a key: the key is in columns 'card', 'shop'; give a"),
        ((key, 5, None, {"card": "B"}), "names 'card', which is given already"),
        (
            (key, 5, None, {"x": 1}),
            "names the unknown column 'x': the stream has 'row'",
        ),
        ((key, 5, None, 3), "plus=3 is not a row"),
        ((key, 5, 40), "shop: windows=40 is beyond the horizon of 30"),
        ((key,), "there are no rows yet, and no latest time"),
    ]:
        with pytest.raises(sw.SpecError, match=message):
            ask(*wrong)
    with pytest.raises(sw.SpecError, match="emit='none' gives no results to collect"):
        windows.collect()
    with pytest.raises(sw.SpecError, match="keys= has no column 'shop'"):
        windows.query_many({"card": ["A"]}, at=5)
    with pytest.raises(sw.SpecError, match="ingest some before query"):
        sw.KeyedWindows(FEATURES).query(key)


def test_a_query_sees_whole_batches_in_all_specs() -> None:
    n = {"n": sw.count()}
    spec = sw.Spec(on="t", by="card", windows=10**6, aggs=n)
    windows = sw.KeyedWindows(
        sw.Features(a=spec, b=spec.replace(closed="left")), emit="none"
    )
    windows.ingest({"t": [0], "card": ["A"]})
    wrong: list[Any] = []
    done = threading.Event()

    def ask() -> None:
        while not done.is_set():
            counts = {*windows.query("A", at=10**5).values()}
            wrong.extend([counts] if len(counts) > 1 else [])

    thread = threading.Thread(target=ask)
    thread.start()
    for step in range(60):
        windows.ingest({"t": [step] * 50, "card": ["A"] * 50})
    done.set()
    thread.join()
    assert wrong == []
    assert windows.query("A", at=10**5) == {"a_n_1000000": 3001, "b_n_1000000": 3001}
