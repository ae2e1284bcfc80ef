"""A call of `KeyedWindows` that raises changes nothing."""

import copy
import random

import pyarrow as pa
import pytest

import slidewise as sw

NAN = float("nan")


SUMS = {"on": "t", "by": "k", "windows": 5, "aggs": {"s": sw.sum("x")}}


def rows(times, keys="a", values=1.0):
    """A batch with one key and one value throughout, or those given."""
    keys = [keys] * len(times) if isinstance(keys, str) else keys
    values = values if isinstance(values, list) else [values] * len(times)
    return pa.table({"t": times, "k": keys, "x": values})


@pytest.mark.parametrize("emit", ["final", "arrival", "update"])
@pytest.mark.parametrize("late_rows", ["drop", "correct"])
def test_nan_is_refused_where_it_arrives(emit, late_rows):
    keyed = sw.KeyedWindows(**SUMS, nan="raise", emit=emit, late_rows=late_rows)
    keyed.ingest(rows([1]))
    with pytest.raises(sw.SpecError, match="column 'x' is NaN in row 1 "):
        keyed.ingest(rows([20, 3, 4], values=[1.0, NAN, 3.0]))
    keyed.ingest(rows([2, 40]))
    keyed.advance()
    expected = [1.0, 1.0] if emit == "update" else [1.0, 2.0, 1.0]
    assert keyed.collect()["s_5"].to_pylist() == expected
    assert keyed.watermark == 40


def test_nan_in_a_late_row_or_a_deletion_is_ignored():
    keyed = sw.KeyedWindows(**SUMS, nan="raise", deletes="gone")
    gone = pa.array([False, False])
    keyed.ingest(rows([1, 9]).append_column("gone", gone))
    keyed.advance(5)
    batch = rows([3, 9, 9, 8], values=[NAN, NAN, 1.0, NAN])
    gone = pa.array([False, True, False, False])
    with pytest.raises(sw.SpecError, match="NaN in row 3 "):
        keyed.ingest(batch.append_column("gone", gone))
    keyed.ingest(batch.slice(0, 3).append_column("gone", gone.slice(0, 3)))
    keyed.advance(10)
    assert keyed.collect()["t"].to_pylist() == [1, 9]
    assert keyed.late_count == 1


def test_nan_in_history_is_refused_on_load():
    """A shard holds some rows of a batch, so it names them by key and time."""
    keyed = sw.KeyedWindows(**SUMS, nan="raise", emit="arrival")
    keyed.ingest(rows([1]))
    with pytest.raises(sw.SpecError, match="'x' is NaN in the row of k='a', t=2, "):
        keyed._state.processor.load(rows([1, 2], values=[1.0, NAN]))


def test_deletions_in_history_delete_its_rows():
    """The rows may be in the same batch, or in one that was loaded before."""
    spec = {"on": "t", "windows": 5, "aggs": {"s": sw.sum("x")}, "deletes": "gone"}
    schema = pa.schema([("t", "int64"), ("x", "int64"), ("gone", "bool")])
    keyed = sw.KeyedWindows(**spec, emit="arrival", schema=schema)
    columns = [[1, 1, 2], [10, 100, 1000], [False, True, None]]
    keyed._state.processor.load(pa.table(columns, schema=schema))
    assert keyed.query(at=3) == {"s_5": 1000}
    keyed._state.processor.load(pa.table([[2], [7], [True]], schema=schema))
    assert keyed.query(at=3) == {"s_5": None}


def interrupted(keyed, monkeypatch, call):
    """Interrupts a failing call twice: while it works, and while it is undone."""
    shard, open_shard = keyed._state.processor, keyed._state.open

    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        # After the rows were held, and the index took them.
        patch.setattr(shard, "evict", interrupt)
        patch.setattr(shard, "check_pages", interrupt)
        patch.setattr(keyed._state, "open", interrupt)
        with pytest.raises(KeyboardInterrupt):
            call()
    assert keyed._state.open == open_shard


@pytest.mark.parametrize("then", ["query", "ingest", "to_bytes", "copy"])
def test_a_batch_that_was_interrupted_twice_leaves_no_trace(monkeypatch, then):
    """Any call may follow."""
    keyed, expected = (sw.KeyedWindows(**SUMS, emit="update") for _ in range(2))
    for one in (keyed, expected):
        one.ingest(rows([1, 2], values=[1, 2]))
        one.collect()
        one.to_bytes()
    batch = rows([3, 4], values=[100, 1000])
    interrupted(keyed, monkeypatch, lambda: keyed.ingest(batch))
    if then == "query":
        assert keyed.query("a", at=4) == expected.query("a", at=4) == {"s_5": 3}
    elif then == "copy":
        keyed = copy.copy(keyed)
    if then in ("ingest", "query"):
        for one in (keyed, expected):
            one.ingest(rows([4], values=[10]))
            assert one.collect()["s_5"].to_pylist() == [13]
    assert keyed.to_bytes() == expected.to_bytes()
    assert keyed.changes() == expected.changes()
    keyed.check()


def test_a_first_batch_that_was_interrupted_twice_fixes_no_columns(monkeypatch):
    keyed = sw.KeyedWindows(**SUMS, emit="update")
    begin = keyed._windows.stream.begin

    def ingest():
        keyed.ingest(rows([1]))

    def begun(schema):
        query = begin(schema)
        monkeypatch.setattr(keyed._state.processor, "evict", interrupt)
        monkeypatch.setattr(keyed._state, "open", interrupt)
        return query

    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(keyed._windows.stream, "begin", begun)
    with pytest.raises(KeyboardInterrupt):
        ingest()
    monkeypatch.undo()
    keyed.ingest(rows([1, 2], keys=[7, 7], values=[1, 2]))
    assert keyed.collect()["s_5"].to_pylist() == [3]
    assert keyed.query(7) == {"s_5": 3}


def test_changes_that_were_interrupted_twice_apply_again(monkeypatch):
    leader = sw.KeyedWindows(**SUMS, emit="update")
    leader.ingest(rows([1]))
    leader.collect()
    keyed = sw.KeyedWindows.from_bytes(leader.to_bytes(), **SUMS)
    before = keyed.to_bytes()
    leader.ingest(rows([2]))
    leader.collect()
    changes = leader.changes()
    interrupted(keyed, monkeypatch, lambda: keyed.apply(changes))
    assert keyed.to_bytes() == before
    keyed.apply(changes)
    assert keyed.to_bytes() == leader.to_bytes()


def test_a_follower_that_refused_a_batch_follows():
    leader = sw.KeyedWindows(**SUMS, emit="update")
    leader.ingest(rows([1], values=[2**63 - 1]))
    leader.collect()
    keyed = sw.KeyedWindows.from_bytes(leader.to_bytes(), **SUMS)
    with pytest.raises(sw.ResultOverflowError):
        keyed.ingest(rows([2], values=[1]))
    leader.ingest(rows([9], values=[5]))
    leader.collect()
    keyed.apply(leader.changes())
    assert keyed.query("a") == {"s_5": 5}


def test_a_batch_that_failed_leaves_no_memory():
    """The state is opened again, and keeps no decoded rows beside its pages."""
    keyed = sw.KeyedWindows(**SUMS, emit="update")
    keys = [str(at) for at in range(2000)]
    for at in range(10):
        keyed.ingest(rows([at] * 2000, keys=keys, values=[1] * 2000))
        keyed.collect()
    with pytest.raises(sw.ResultOverflowError):
        keyed.ingest(rows([9, 9], values=[2**62, 2**62]))
    restored = sw.KeyedWindows.from_bytes(keyed.to_bytes(), **SUMS)
    assert keyed.nbytes < 1.1 * restored.nbytes


def test_a_first_batch_that_failed_fixes_no_columns():
    keyed = sw.KeyedWindows(**SUMS, emit="arrival")
    with pytest.raises(sw.ResultOverflowError, match="of the row of k='a', t=2:"):
        keyed.ingest(rows([1, 2], values=[2**63 - 1, 5]))
    keyed.ingest(rows([1, 2], keys=[7, 7]))
    assert keyed.collect()["s_5"].to_pylist() == [1.0, 2.0]


@pytest.mark.parametrize("window", [{"window": 10}, {"window": sw.session(5)}])
def test_windows_that_overflow_are_named(window):
    end = 60 if window["window"] == 10 else 51
    request = {"on": "t", "by": "k", "aggs": {"s": sw.sum("x")}, **window}
    keyed = sw.KeyedWindows(**request)
    table = rows([0, 50, 51], keys=["a", "b", "b"], values=[1, 2**62, 2**62])
    keyed.ingest(table)
    message = f"of k='b', window_end={end}: "
    with pytest.raises(sw.ResultOverflowError, match=message):
        keyed.advance(100)
    with pytest.raises(sw.ResultOverflowError, match=message):
        sw.hopping(table, **request)


def interrupted_at(keyed, nth):
    """Makes the n-th page of the next commit raise KeyboardInterrupt."""
    put, left = keyed._state.store.put, [nth]

    def stops(page, blob):
        left[0] -= 1
        if left[0] == 0:
            keyed._state.store.put = put
            raise KeyboardInterrupt
        put(page, blob)

    keyed._state.store.put = stops


@pytest.mark.parametrize("emit", ["final", "arrival", "update"])
@pytest.mark.parametrize("nth", [1, 2, 7])
def test_an_interrupted_commit_changes_nothing(emit, nth):
    """Rows, answers, late rows and the watermark are unchanged."""
    chance = random.Random(nth)
    keyed, whole = (
        sw.KeyedWindows(**SUMS, emit=emit, late=3, then_by="x") for _ in range(2)
    )
    for step in range(4):
        times = [chance.randrange(10 * step, 10 * step + 20) for _ in range(3_000)]
        batch = rows(times, [str(time % 700) for time in times])
        interrupted_at(keyed, nth)
        try:
            keyed.ingest(batch)
        except KeyboardInterrupt:
            if step:
                assert keyed.collect().num_rows == 0
            keyed.ingest(batch)
        interrupted_at(keyed, nth)
        try:
            keyed.advance()
        except KeyboardInterrupt:
            assert keyed.watermark == whole.watermark
            keyed.advance()
        vars(keyed._state.store).pop("put", None)
        whole.ingest(batch)
        whole.advance()
        keyed.check()
        assert keyed.collect().equals(whole.collect())
        assert keyed.late_count == whole.late_count
    restored = sw.KeyedWindows.from_bytes(keyed.to_bytes(), **SUMS)
    assert restored.keys().num_rows == whole.keys().num_rows


def many_or_number(total):
    return total if total < 10 else "many"


def test_answers_that_change_their_type_lose_nothing():
    own = sw.aggregation(combine=lambda a, b: a + b, identity=0, lower=many_or_number)
    keyed = sw.KeyedWindows(on="t", windows=5, aggs={"o": own("x")}, emit="arrival")
    keyed.ingest(pa.table({"t": [1], "x": [1]}))
    with pytest.raises(sw.SpecError, match="returns="):
        keyed.ingest(pa.table({"t": [2], "x": [50]}))
    keyed.ingest(pa.table({"t": [3], "x": [2]}))
    assert keyed.collect()["o_5"].to_pylist() == [1, 3]
