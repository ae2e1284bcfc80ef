"""Custom aggregations: their answers on all surfaces, and how they are made."""

import math
import pickle
import random
import subprocess
import sys
import textwrap
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tables_oracle import SIDES

import slidewise as sw
from slidewise.aggregations.custom import find_custom
from slidewise.spec.spec import Spec


@sw.aggregation
class Longest:
    """The longest text; of several, the earliest."""

    identity = ""

    @staticmethod
    def combine(older, younger):
        return older if len(older) >= len(younger) else younger


@sw.aggregation(codec="pickle", commutative=True)
class Exact:
    """The exact sum of floats."""

    identity = Fraction(0)

    def lift(self, value):
        return Fraction(value)

    def combine(self, older, younger):
        return older + younger

    def inverse(self, whole, earliest):
        return whole - earliest

    def lower(self, whole):
        return float(whole)


def joined(older, younger):
    return older + younger


def one(value):
    return (value,)


texts = sw.aggregation(one, joined, list, (), name=f"{__name__}:texts")
unnamed = sw.aggregation(one, joined, list, ())


def test_in_any_order_of_arrival():
    w = sw.Window(texts)
    w.insert_many([3, 1, 2], "cab")
    w.insert(2, "B")
    assert w.query() == ["a", "b", "B", "c"] or w.query() == ["a", "B", "b", "c"]
    assert w.query(2, 2) == ["a", "B"] or w.query(2, 2) == ["b", "B"]


def test_over_nothing_it_is_none():
    w = sw.Window({"own": texts, "n": sw.count()})
    assert w.query() == {"own": None, "n": 0}
    w.insert(1, None)
    assert w.query() == {"own": None, "n": 1}
    w.insert(2, "x")
    assert w.query() == {"own": ["x"], "n": 2}
    assert w.query(5) == {"own": None, "n": 0}


def test_default_lift_and_lower_keep_the_value():
    w = sw.Window(sw.aggregation(combine=max, identity=None))
    w.insert_many([1, 2, 3], [5, 9, 7])
    assert w.query() == 9


def test_a_class_with_self_and_one_without():
    w = sw.Window({"long": Longest("text"), "sum": Exact("x")})
    w.insert(1, {"text": "ab", "x": 0.1})
    w.insert(2, {"text": "cd", "x": 0.2})
    w.insert(3, {"text": "e", "x": None})
    assert w.query() == {"long": "ab", "sum": 0.1 + 0.2}


def test_beside_built_in_ones_and_twice():
    aggs = {
        "n": sw.count(),
        "all": sw.collect("x"),
        "own": texts("x"),
        "again": texts("x"),
        "other": Exact("y"),
        "mean": sw.mean("y"),
    }
    w = sw.Window(aggs)
    for time, x, y in [(2, "b", 0.5), (1, "a", 1.5), (3, None, 4.0)]:
        w.insert(time, {"x": x, "y": y})
    assert w.query() == {
        "n": 3,
        "all": ["a", "b"],
        "own": ["a", "b"],
        "again": ["a", "b"],
        "other": 6.0,
        "mean": 2.0,
    }
    w.check()


@pytest.mark.parametrize(
    "values",
    [
        [1, 2, None, 4],
        np.array([1, 2, 3, 4]),
        np.array([1.5, 2.5, 3.5, math.inf]),
        pa.array([1, None, 3, 4]),
        pa.array(["a", "b", None, "d"]),
        pa.chunked_array([["a", "b"], ["c", "d"]]),
        pd.Series([1, 2, 3, 4]),
        pl.Series(["a", "b", "c", None]),
        iter("abcd"),
    ],
    ids=lambda values: type(values).__name__,
)
def test_arrays_of_every_make(values):
    w = sw.Window(texts)
    given = list(values) if isinstance(values, list | np.ndarray) else None
    if given is None:
        values = list(values) if not hasattr(values, "__len__") else values
        given = values.to_pylist() if hasattr(values, "to_pylist") else list(values)
    w.insert_many(range(4), values)
    assert w.query() == [value for value in given if value is not None]
    assert all(type(value) in (int, float, str) for value in w.query())


def test_nan():
    w = sw.Window(unnamed)
    w.insert(1, math.nan)
    assert math.isnan(w.query()[0])
    w = sw.Window(unnamed, nan="skip")
    w.insert_many([1, 2], np.array([math.nan, 1.0]))
    assert w.query() == [1.0]
    w = sw.Window(unnamed, nan="raise")
    with pytest.raises(sw.SpecError, match="NaN"):
        w.insert(1, math.nan)
    assert len(w) == 0


def test_last_and_granularity():
    w = sw.Window(texts, last=sw.rows(3))
    w.insert_many(range(10), range(10))
    assert w.query() == [7, 8, 9]
    w = sw.Window(texts, last=4, granularity=2)
    w.insert_many(range(10), range(10))
    assert w.query() == [6, 7, 8, 9]


def test_what_it_looks_like():
    w = sw.Window({"own": Longest("x")})
    w.insert(1, {"x": "abc"})
    assert repr(w) == "<Window own=Longest('x'): 1 entry at 1>"
    assert "Longest('x')" in w.explain()
    assert w.to_svg().startswith("<svg")
    assert repr(unnamed) == "aggregation(combine=joined)()"
    assert w.aggs == {"own": Longest("x")}
    assert w.dtype == {"x": None}


def combines_of(use):
    calls = []

    def combine(older, younger):
        calls.append(1)
        return older + younger

    use(sw.Window(sw.aggregation(combine=combine, identity=0)))
    return len(calls)


def test_combines_are_few():
    def slide(window):
        for time in range(5000):
            window.insert(time, 1)
            if time >= 1000:
                window.evict()
            window.query()

    assert combines_of(slide) <= 6 * 5000

    def query_again(window):
        window.insert_many(range(1000), range(1000))
        for _ in range(100):
            assert window.query() == sum(range(1000))

    assert combines_of(query_again) <= 1300


# -- how they are made -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"identity": 0}, "combine= is missing"),
        ({"combine": joined}, "identity= is missing"),
        ({"combine": 5, "identity": 0}, "combine= takes a function, got 5"),
        ({"combine": joined, "identity": 0, "lift": "x"}, "lift= takes a function"),
        ({"combine": joined, "identity": 0, "codec": "json"}, "codec= is 'pickle', or"),
        ({"combine": joined, "identity": 0, "commutative": 1}, "commutative= is True"),
        ({"combine": joined, "identity": 0, "name": "short"}, "name= is 'module:name'"),
    ],
)
def test_wrong_parts(options, why):
    with pytest.raises(sw.SpecError, match=why):
        sw.aggregation(**options)


def test_wrong_use():
    with pytest.raises(sw.SpecError, match="takes the name of a column, got 5"):
        Longest(5)
    with pytest.raises(sw.SpecError, match="names no column, but others do"):
        sw.Window({"own": Longest, "x": sw.sum("x")})
    table = pa.table({"t": [1], "x": ["a"]})
    with pytest.raises(sw.SpecError, match="needs a column"):
        sw.rolling(table, on="t", windows=1, aggs={"own": Longest})
    with pytest.raises(sw.SpecError, match="decorates a class"):
        sw.aggregation(commutative=True)(joined)


def test_equality_is_of_functions_and_column():
    assert Longest("x") == Longest("x") != Longest("y")
    assert Longest() == Longest
    assert sw.aggregation(one, joined, list, ()) != unnamed
    assert len({Longest("x"), Longest("x"), Longest}) == 2


def test_an_identity_is_never_called_and_never_shared():
    def refuse(*_):
        raise AssertionError

    w = sw.Window(
        sw.aggregation(combine=lambda f, g: lambda x: g(f(x)), identity=refuse)
    )
    w.insert_many([2, 1], [lambda x: x * 10, lambda x: x + 1])
    assert w.query()(3) == 40


# -- pickles and snapshots -------------------------------------------------------------


@pytest.mark.parametrize("agg", [Longest, Longest("x"), Exact, texts, texts("y")])
def test_named_ones_are_pickled_by_reference(agg):
    blob = pickle.dumps(agg)
    assert pickle.loads(blob) == agg
    assert b"combine" not in blob


def test_unnamed_ones_are_pickled_by_their_functions():
    again = pickle.loads(pickle.dumps(unnamed("x")))
    assert again.combine is joined
    assert again.of == "x"
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(sw.aggregation(combine=lambda a, b: a, identity=0))


def first_of(a, b):
    return a


def test_an_unpickled_copy_leaves_the_name_to_the_definition():
    # Those of a script or a notebook are pickled by their functions, like this one.
    agg = sw.aggregation(combine=first_of, identity=0, name="__main__:first_of")
    w = filled(agg, [1, 2])
    copy = pickle.loads(pickle.dumps(w))
    assert sw.Window.from_bytes(w.to_bytes()).aggs["own"] == agg
    del copy
    assert sw.Window.from_bytes(w.to_bytes()).query() == w.query()


def filled(agg, values):
    w = sw.Window({"own": agg, "n": sw.count()})
    for time, value in enumerate(values):
        w.insert(time // 2, value)
    return w


@pytest.mark.parametrize("queried", [True, False])
def test_snapshots_go_on_as_before(queried):
    for agg, values in [(Longest, ["a", "bb", "cc"] * 50), (Exact, [0.1, 2.5] * 80)]:
        w = filled(agg, values)
        if queried:
            w.query(3, 40)
        again = sw.Window.from_bytes(w.to_bytes())
        again.check()
        assert again.items() == w.items()
        for window in (w, again):
            window.evict_until(30)
            window.insert(12, values[1])
        assert again.query() == w.query()
        assert pickle.loads(pickle.dumps(w)).query() == w.query()


def test_an_unnamed_one_needs_a_pickle():
    w = filled(unnamed, "abc")
    with pytest.raises(sw.SnapshotError, match="without a name"):
        sw.Window.from_bytes(w.to_bytes())
    assert pickle.loads(pickle.dumps(w)).items() == w.items()


class Blob:
    def __init__(self, value):
        self.value = value

    def __add__(self, other):
        return Blob(self.value + other.value)


def test_partials_without_bytes_are_refused():
    w = filled(sw.aggregation(Blob, joined, lambda b: b.value, None), [1, 2, 3])
    with pytest.raises(sw.SnapshotError, match=r'Blob .* give .* codec="pickle"'):
        w.to_bytes()
    assert w.query() == {"own": 6, "n": 3}
    w = filled(sw.aggregation(Blob, joined, None, None, codec="pickle"), [1, 2, 3])
    assert pickle.loads(pickle.dumps(w)).query()["own"].value == 6


def test_a_codec_that_gives_no_bytes():
    class Wrong:
        def encode(self, partial):
            return "text"

        def decode(self, blob):
            return blob

    w = filled(sw.aggregation(one, joined, None, (), codec=Wrong()), "ab")
    with pytest.raises(sw.SnapshotError, match="not as bytes"):
        w.to_bytes()


def test_bytes_import_nothing(tmp_path):
    module = tmp_path / "one_of_mine.py"
    module.write_text(
        textwrap.dedent("""
        import slidewise as sw
        @sw.aggregation
        class Total:
            identity = 0
            def combine(a, b):
                return a + b
        """)
    )
    script = textwrap.dedent("""
        import sys, pickle, slidewise as sw
        blob = bytes.fromhex(sys.argv[1])
        try:
            sw.Window.from_bytes(blob)
        except sw.SnapshotError as error:
            assert "import its module first" in str(error), error
        else:
            raise SystemExit("restored")
        assert "one_of_mine" not in sys.modules
        w = pickle.loads(bytes.fromhex(sys.argv[2]))
        assert w.query() == 6
        assert sw.Window.from_bytes(blob).query() == 6
    """)
    sys.path.insert(0, str(tmp_path))
    try:
        import one_of_mine
    finally:
        sys.path.remove(str(tmp_path))
    w = sw.Window(one_of_mine.Total)
    w.insert_many([1, 2, 3], [1, 2, 3])
    command = [sys.executable, "-c", script, w.to_bytes().hex(), pickle.dumps(w).hex()]
    subprocess.run(command, check=True, env={"PYTHONPATH": str(tmp_path)})


def test_damaged_bytes_are_refused():
    blob = filled(texts, "abcdefgh").to_bytes()
    for at in range(len(blob)):
        with pytest.raises(sw.SnapshotError):
            sw.Window.from_bytes(blob[:at])
        flipped = bytearray(blob)
        flipped[at] ^= 1 << at % 8
        with pytest.raises(sw.SnapshotError):
            sw.Window.from_bytes(bytes(flipped))


def test_names_find_living_aggregations():
    assert find_custom("nowhere:nothing") is None
    assert find_custom(f"{__name__}:Longest") == Longest


def test_the_hash_of_a_spec_names_it():
    spec = Spec.make(on="t", windows=1, aggs={"own": Longest("x")})
    assert f'"functions":"{__name__}:Longest"' in spec.canonical()
    other = Spec.make(on="t", windows=1, aggs={"own": texts("x")})
    assert spec.hash != other.hash


# -- tables ----------------------------------------------------------------------------


def by_definition(rows, row, length, closed, ties, arrival):
    """The values in the window of a row, in order."""
    t, _, _, key = rows[row]
    ends = {
        "right": lambda s: t - length < s <= t,
        "left": lambda s: t - length <= s < t,
        "both": lambda s: t - length <= s <= t,
        "neither": lambda s: t - length < s < t,
    }
    seen = []
    for other, (s, x, came, group) in enumerate(rows):
        if group != key or not ends[closed](s):
            continue
        if arrival and came > rows[row][2]:
            continue
        if not arrival and ties == "rows" and s == t and other > row:
            continue
        order = (s, came, other) if arrival else (s, other)
        seen.append((order, x))
    return [x for _, x in sorted(seen) if x is not None] or None


@pytest.mark.parametrize(("closed", "ties"), SIDES)
@pytest.mark.parametrize("arrival", [False, True])
def test_tables_against_the_definition(closed, ties, arrival):
    rng = random.Random(f"{closed}{ties}{arrival}")
    for count in (0, 1, 7, 150):
        rows = [
            (rng.randrange(40), rng.choice([None, *"abc"]), rng.randrange(60), at % 3)
            for at in range(count)
        ]
        schema = {"t": pa.int64(), "x": pa.string(), "a": pa.int64(), "k": pa.int64()}
        columns = list(zip(*rows, strict=True)) or [()] * 4
        arrays = [
            pa.array(column, kind)
            for column, kind in zip(columns, schema.values(), strict=True)
        ]
        table = pa.table(arrays, names=list(schema))
        out = sw.rolling(
            table,
            on="t",
            by="k",
            windows=[5, 17],
            aggs={"own": texts("x"), "n": sw.count("x")},
            closed=closed,
            ties=ties,
            arrival="a" if arrival else None,
        )
        for length in (5, 17):
            want = [
                by_definition(rows, row, length, closed, ties, arrival)
                for row in range(count)
            ]
            assert out[f"own_{length}"].to_pylist() == want
            counts = [len(seen or ()) for seen in want]
            assert out[f"n_{length}"].to_pylist() == counts


def test_tables_alone_and_with_min_rows():
    table = pa.table({"t": [1, 2, 3, 4], "x": [0.1, 0.2, None, 0.4]})
    out = sw.rolling(table, on="t", windows=sw.rows(2), aggs={"s": Exact("x")})
    assert out["s_2rows"].to_pylist() == [0.1, 0.1 + 0.2, 0.2, 0.4]
    out = sw.rolling(
        table, on="t", windows=sw.rows(2), aggs={"s": Exact("x")}, min_rows=2
    )
    assert out["s_2rows"].to_pylist() == [None, 0.1 + 0.2, None, None]


def test_pandas_and_polars():
    frame = pd.DataFrame({"t": [1, 2, 3], "x": ["b", "aa", None]})
    out = sw.rolling(frame, on="t", windows=2, aggs={"own": Longest("x")})
    assert list(out["own_2"]) == ["b", "aa", "aa"]
    frame = pl.DataFrame({"t": [1, 2, 3], "x": ["b", "aa", None]})
    out = sw.rolling(frame, on="t", windows=2, aggs={"own": Longest("x")})
    assert out["own_2"].to_list() == ["b", "aa", "aa"]


def test_nan_in_tables():
    table = pa.table({"t": [1, 2], "x": [math.nan, 1.0]})
    out = sw.rolling(table, on="t", windows=5, aggs={"x": unnamed("x")}, nan="skip")
    assert out["x_5"].to_pylist() == [None, [1.0]]


def test_answers_of_several_types_are_refused():
    mixed = sw.aggregation(lambda v: v, lambda a, b: b, lambda p: p or "none", None)
    table = pa.table({"t": [1, 2], "x": [1, 0]})
    with pytest.raises(sw.SpecError, match="do not fit one column"):
        sw.rolling(table, on="t", windows=1, aggs={"own": mixed("x")})


@pytest.mark.parametrize("part", ["lift", "combine", "lower"])
def test_what_a_table_raises(part):
    def failing(*_):
        raise LookupError(part)

    parts = {"lift": one, "combine": joined, "lower": list, part: failing}
    agg = sw.aggregation(**parts, identity=())
    table = pa.table({"t": [1, 2], "x": [1, 0]})
    with pytest.raises(LookupError, match=part) as caught:
        sw.rolling(table, on="t", windows=2, aggs={"own": agg("x")})
    assert "raised while slidewise.rolling was" in caught.value.__notes__[0]


# -- laws ------------------------------------------------------------------------------


def test_right_ones_pass():
    sw.check_laws(Longest, ["", "a", "b", "cc", "dd", "eee"])
    sw.check_laws(Exact, [0.1, -1e300, 1e300, 5.0, 1e-300])
    sw.check_laws(texts, range(20))
    sw.check_laws(sw.aggregation(combine=max, identity=-math.inf), [1.0, 2.0, math.inf])
    arrays = sw.aggregation(combine=np.maximum, identity=np.full(2, -np.inf))
    sw.check_laws(arrays, [np.array([1.0, 2.0]), np.array([2.0, 1.0])])
    mean = sw.aggregation(
        lambda v: (v, 1),
        lambda a, b: (a[0] + b[0], a[1] + b[1]),
        lambda p: p[0] / p[1],
        (0, 0),
        inverse=lambda whole, old: (whole[0] - old[0], whole[1] - old[1]),
        commutative=True,
    )
    sw.check_laws(mean, [0.1, 0.2, 0.3, 5.5, -7.25])


def extend(older, younger):
    older.extend(younger)
    return older


def law(why, combine=joined, lift=None, lower=None, identity=0, **options):
    return why, sw.aggregation(lift, combine, lower, identity, **options)


@pytest.mark.parametrize(
    ("why", "agg"),
    [
        law("wrong identity: combine.identity, p. is 2, where p is 1", identity=1),
        law("wrong identity: combine.p, identity. is 0", lambda a, b: b),
        law("not associative", lambda a, b: (a + b) / 2 if a and b else a or b),
        law("wrong inverse: .* is 2, where p is 1, q is 1", inverse=lambda w, o: w),
        law(
            "is not commutative, as it claims: .*, where p is .*, q is",
            lift=str,
            identity="",
            commutative=True,
        ),
        law("changes its arguments", extend, lambda v: [v], identity=[]),
        law("wrong codec", codec=type("", (), {"encode": repr, "decode": str})),
    ],
)
def test_broken_laws_have_counter_examples(why, agg):
    with pytest.raises(sw.LawError, match=why):
        sw.check_laws(agg, [1, 2, 3, 4])


def test_laws_need_samples_and_something_to_test():
    with pytest.raises(sw.SpecError, match="samples"):
        sw.check_laws(Longest, [])
    with pytest.raises(sw.SpecError, match="takes an aggregation made by"):
        sw.check_laws(sw.sum(), [1])


@pytest.mark.parametrize(
    ("functions", "message"),
    [
        ({"lower": lambda p: p.pop(), "lift": lambda v: [v]}, "lower made"),
        ({"lift": lambda v: v.append(1) or v}, "lift made"),
    ],
)
def test_functions_that_change_their_argument(functions, message):
    own = sw.aggregation(combine=lambda a, b: a + b, identity=[], **functions)
    with pytest.raises(sw.LawError, match=message):
        sw.check_laws(own, [[1], [2]])
