"""Aggregations compiled by Numba: on every algorithm and surface, or refused."""

import gc
import math
import pickle
import random
import subprocess
import sys
import threading

import pyarrow as pa
import pytest
import tables_oracle
from tables_oracle import SIDES

import slidewise as sw

numba = pytest.importorskip("numba", reason="the extra slidewise[numba]")
np = pytest.importorskip("numpy")

MOMENTS = np.dtype([("n", "i8"), ("mean", "f8"), ("m2", "f8")])


def lift_moment(value, out):
    out.n = 1
    out.mean = value
    out.m2 = 0.0


def combine_moments(a, b, out):
    n = a.n + b.n
    gap = b.mean - a.mean
    out.n = n
    out.mean = a.mean + gap * b.n / n
    out.m2 = a.m2 + b.m2 + gap * gap * a.n * b.n / n


def variance_of(record):
    return record["m2"] / (record["n"] - 1) if record["n"] > 1 else None


moments = sw.native(
    combine_moments,
    MOMENTS,
    lift=lift_moment,
    lower=variance_of,
    commutative=True,
    name=f"{__name__}:moments",
)

# An affine map modulo a prime: not commutative, so it reveals any wrong order.
MAP = np.dtype([("a", "u8"), ("b", "u8")])
PRIME = 4_294_967_291


def lift_map(value, out):
    out.a = np.uint64(value % 1_000_003 + 2)
    out.b = np.uint64(value % 65_537)


def combine_maps(f, g, out):
    p = np.uint64(4_294_967_291)
    a = f.a * g.a % p
    b = (f.b * g.a + g.b) % p
    out.a = a
    out.b = b


affine = sw.native(
    combine_maps,
    MAP,
    lift=lift_map,
    identity=(1, 0),
    value="int64",
    name=f"{__name__}:affine",
)


def by_definition(values):
    a, b = 1, 0
    for value in values:
        own = value % 1_000_003 + 2, value % 65_537
        a, b = a * own[0] % PRIME, (b * own[0] + own[1]) % PRIME
    return {"a": a, "b": b} if values else None


def add(a, b):
    return a + b


def subtract(whole, earliest):
    return whole - earliest


total = sw.native(add, "int64", inverse=subtract, commutative=True, identity=0)

# The one with an inverse is for algorithms that need an inverse.
ALGORITHMS = {
    card.name: total if card.name in ("subtract_on_evict", "slick_deque") else affine
    for card in sw.algorithms()
}


@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside"])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_on_every_algorithm(algorithm, beside):
    agg = ALGORITHMS[algorithm]
    several = {"own": agg, "other": sw.sum(), "again": agg}
    w = sw.Window(several if beside else agg, algorithm=algorithm, ties="keep")
    draw = random.Random(3)
    entries = []
    for time in range(400):
        value = None if draw.random() < 0.2 else draw.randrange(-(10**9), 10**9)
        entries.append((time, value))
        w.insert(time, value)
        if draw.random() < 0.4:
            until = time - draw.choice((0, 5, 40, 90))
            w.evict_until(until)
            entries = [entry for entry in entries if entry[0] > until]
        values = [value for _, value in entries if value is not None]
        if agg is total:
            want = sum(values) if values else None
        else:
            want = by_definition(values)
        answer = w.query()
        if beside:
            assert answer["other"] == (sum(values) if values else None)
            assert answer["own"] == answer["again"]
            answer = answer["own"]
        assert answer == want
    w.check()
    assert w.copy().query() == w.query()
    assert pickle.loads(pickle.dumps(w)).items() == w.items()


WIDE = np.dtype([("bins", "f8", 12), ("n", "i8")])


def lift_wide(value, out):
    for at in range(12):
        out.bins[at] = 0.0
    out.bins[int(value) % 12] = 1.0
    out.n = 1


def combine_wide(a, b, out):
    for at in range(12):
        out.bins[at] = a.bins[at] + b.bins[at]
    out.n = a.n + b.n


def inverse_wide(whole, earliest, out):
    for at in range(12):
        out.bins[at] = whole.bins[at] - earliest.bins[at]
    out.n = whole.n - earliest.n


@pytest.mark.parametrize(
    "algorithm", ["fiba", "recalculate", "daba_lite", "subtract_on_evict"]
)
def test_large_records(algorithm):
    agg = sw.native(
        combine_wide,
        WIDE,
        lift=lift_wide,
        inverse=inverse_wide,
        lower=lambda record: (int(record["n"]), record["bins"].tolist()),
    )
    w = sw.Window(agg, algorithm=algorithm)
    for time in range(200):
        w.insert(time, float(time))
        w.evict_until(time - 30)
        kept = range(max(0, time - 29), time + 1)
        bins = [float(sum(value % 12 == at for value in kept)) for at in range(12)]
        assert w.query() == (len(kept), bins)
    w.check()
    assert pickle.loads(pickle.dumps(w.copy().query())) == w.query()


def test_late_entries_ranges_and_bulk():
    draw = random.Random(1)
    w = sw.Window(affine, ties="keep")
    entries = []
    for _ in range(30):
        times = [draw.randrange(1_000) for _ in range(draw.choice((1, 5, 100)))]
        values = [draw.randrange(10**6) for _ in times]
        w.insert_many(np.array(times), np.array(values))
        entries += zip(times, values, strict=True)
        entries.sort(key=lambda entry: entry[0])
        lo = draw.randrange(1_000)
        inside = [value for time, value in entries if lo <= time <= lo + 200]
        assert w.query() == by_definition([value for _, value in entries])
        assert w.query(lo, lo + 200) == by_definition(inside)
        w.check()


def test_records_and_their_answers():
    w = sw.Window({"var": moments, "builtin": sw.variance()})
    assert w.query() == {"var": None, "builtin": None}
    w.insert_many(range(1_000), [math.sin(i) for i in range(1_000)])
    answer = w.query()
    assert math.isclose(answer["var"], answer["builtin"], rel_tol=1e-12)
    w.clear()
    w.insert(1, 5)  # an int comes as the float that lift takes
    assert w.items() == [(1, {"var": None, "builtin": None})]


def test_a_lift_of_floats_leaves_ints_beside_it_alone():
    w = sw.Window({"var": moments, "sum": sw.sum()})
    w.insert_many([1, 2], [3, 4])
    w.insert(3, 5)
    assert w.query() == {"var": 1.0, "sum": 12}
    assert isinstance(w.query()["sum"], int)


def test_over_tables():
    pointer = numba.types.CPointer(numba.from_dtype(MOMENTS))

    @numba.cfunc(numba.types.float64(pointer))
    def mean(record):
        return numba.carray(record, 1)[0].mean

    native_mean = sw.native(
        combine_moments, MOMENTS, lift=lift_moment, lower=mean, commutative=True
    )
    table = pa.table(
        {
            "t": [1, 2, 3, 4, 9],
            "x": pa.array([1, 2, None, 4, 8], pa.int32()),
            "ok": [True, True, True, False, True],
        }
    )
    aggs = {
        "mean": native_mean("x", where="ok"),
        "want": sw.mean("x", where="ok"),
        "var": moments("x"),
        "map": affine("x"),
        "sum": total("x"),
    }
    out = sw.rolling(table, on="t", windows=[3], aggs=aggs)
    assert out["mean_3"].to_pylist() == out["want_3"].to_pylist() == [1, 1.5, 1.5, 2, 8]
    assert out["var_3"].to_pylist() == [None, 0.5, 0.5, 2.0, None]
    assert out["sum_3"].to_pylist() == [1, 3, 3, 6, 8]
    assert out["map_3"].to_pylist()[3] == by_definition([2, 4])
    arrived = sw.rolling(table, on="t", windows=[3], aggs=aggs, arrival="t")
    assert arrived["map_3"].to_pylist() == out["map_3"].to_pylist()
    floats = table.set_column(1, "x", table["x"].cast(pa.float64()))
    with pytest.raises(sw.SpecError, match="its lift takes int64"):
        sw.rolling(floats, on="t", windows=3, aggs={"s": total("x")})


@pytest.mark.parametrize(("closed", "ties"), SIDES)
def test_over_tables_in_order(closed, ties):
    draw = random.Random(f"{closed} {ties}")
    rows = 300
    for missing, span in ((0.0, 2_000), (0.3, 100), (0.9, 40)):
        times = [draw.randrange(span) for _ in range(rows)]
        keys = [draw.choice("ab") for _ in range(rows)]
        values = [
            None if draw.random() < missing else draw.randrange(-(10**9), 10**9)
            for _ in range(rows)
        ]
        table = pa.table({"t": times, "k": keys, "x": pa.array(values, pa.int64())})
        lengths = [1, 7, 50, 5_000]
        windows = [*lengths, sw.rows(3)] if closed == "right" else lengths
        out = sw.rolling(
            table,
            on="t",
            by="k",
            windows=windows,
            aggs={"map": affine("x"), "built": sw.sum("x"), "own": total("x")},
            closed=closed,
            ties=ties,
        )
        for window in windows:
            name = "3rows" if not isinstance(window, int) else str(window)
            seen = tables_oracle.windows(
                times, window, keys=keys, closed=closed, ties=ties
            )
            kept = [[values[row] for row in one] for one in seen]
            there = [[value for value in one if value is not None] for one in kept]
            assert out[f"map_{name}"].to_pylist() == list(map(by_definition, there))
            assert out[f"own_{name}"] == out[f"built_{name}"]


def test_at_query_points_and_in_hops():
    draw = random.Random(5)
    table = pa.table(
        {
            "t": [draw.randrange(1_000) for _ in range(500)],
            "k": [draw.randrange(3) for _ in range(500)],
            "x": pa.array(
                [draw.choice((None, draw.randrange(10**6))) for _ in range(500)],
                pa.int64(),
            ),
        }
    )
    at = pa.table(
        {
            "t": [draw.randrange(-20, 1_200) for _ in range(200)],
            "k": [draw.randrange(4) for _ in range(200)],
        }
    )
    rows = sorted(
        zip(*(table[name].to_pylist() for name in "tkx"), strict=True),
        key=lambda row: row[0],
    )

    def inside(key, start, end):
        kept = [x for t, k, x in rows if k == key and start < t <= end]
        return by_definition([x for x in kept if x is not None])

    out = sw.rolling(
        table, on="t", by="k", windows=[60], aggs={"map": affine("x")}, at=at
    )
    for time, key, got in zip(
        *(out[name].to_pylist() for name in ("t", "k", "map_60")), strict=True
    ):
        assert got == inside(key, time - 60, time)
    aggs = {"map": affine("x"), "own": total("x"), "built": sw.sum("x")}
    hops = sw.hopping(table, on="t", by="k", window=60, every=25, aggs=aggs)
    assert hops["own"] == hops["built"]
    for row in hops.to_pylist():
        end = row["window_end"]
        assert row["map"] == inside(row["k"], end - 61, end - 1)


def test_snapshots_name_the_aggregation_and_its_record():
    w = sw.Window({"m": moments("x"), "n": sw.count("x")})
    w.insert_many([1, 2], {"x": [1.0, 4.0]})
    blob = w.to_bytes()
    again = sw.Window.from_bytes(blob)
    assert again.query() == {"m": 4.5, "n": 2}
    assert again.to_bytes() == blob
    nameless = sw.Window(total)
    nameless.insert(1, 2)
    with pytest.raises(sw.SnapshotError, match="without a name"):
        sw.Window.from_bytes(nameless.to_bytes())
    assert pickle.loads(pickle.dumps(nameless)).query() == 2
    first = sw.native(add, "int64", name="there:it")
    blob = sw.Window(first).to_bytes()
    assert sw.Window.from_bytes(blob).query() is None
    second = sw.native(add, "float64", name="there:it")
    with pytest.raises(sw.SnapshotError, match="records of"):
        sw.Window.from_bytes(blob)
    del second


def test_pickles_go_by_reference_where_they_can():
    assert pickle.loads(pickle.dumps(moments("x"))) == moments("x")
    again = pickle.loads(pickle.dumps(total))
    assert again.functions is not total.functions
    pointer = numba.types.CPointer(numba.types.int64)

    @numba.cfunc(numba.types.void(pointer, pointer, pointer))
    def compiled(a, b, out):
        out[0] = a[0] + b[0]

    agg = sw.native(compiled, np.int64)
    w = sw.Window(agg)
    w.insert_many([1, 2], [3, 4])
    assert w.query() == 7
    with pytest.raises(pickle.PicklingError, match="give it name="):
        pickle.dumps(agg)


def test_an_unpickled_copy_leaves_the_name_to_the_definition() -> None:
    agg = sw.native(add, "int64", name="__main__:it")
    w = sw.Window(agg)
    w.insert(1, 2)
    copy = pickle.loads(pickle.dumps(w))
    assert sw.Window.from_bytes(w.to_bytes()).aggs == agg
    del copy
    assert sw.Window.from_bytes(w.to_bytes()).query() == 2


def test_a_combine_that_leaves_fields_out_breaks_a_law() -> None:
    def forgetful(a, b, out):
        out.a = a.a + b.a
        if b.b:
            out.b = b.b

    agg = sw.native(forgetful, MAP, lift=lift_map, identity=(0, 0))
    with pytest.raises(sw.LawError):
        sw.check_laws(agg, [1, 2, 65_537])


def test_laws():
    sw.check_laws(affine, range(20))
    sw.check_laws(total, range(20))
    sw.check_laws(moments, [0.5, 1.5, 3.0, 1e6])
    wrong = sw.native(lambda a, b: a - b, "float64")
    with pytest.raises(sw.LawError, match="is not associative"):
        sw.check_laws(wrong, [1.0, 2.0])
    wrong = sw.native(add, "int64", identity=1)
    with pytest.raises(sw.LawError, match="wrong identity"):
        sw.check_laws(wrong, [1, 2])


POINTER = numba.types.CPointer(numba.types.float64)
VOID = numba.types.void


@numba.cfunc(VOID(POINTER, POINTER))
def too_few(a, out):
    out[0] = a[0]


@numba.cfunc(numba.types.float64(numba.types.float64, numba.types.float64))
def by_value(a, b):
    return a + b


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: sw.native(too_few, "float64"), "has the signature .* it has to be"),
        (lambda: sw.native(by_value, "float64"), "has the signature"),
        (lambda: sw.native(add, MOMENTS), "lift= is missing"),
        (lambda: sw.native(add, "int32"), "lift= is missing"),
        (lambda: sw.native(add, "float64", lift=too_few), "has the signature"),
        (lambda: sw.native(add, "float64", lower=too_few), "has the signature"),
        (lambda: sw.native(add, "float64", lower=3), "lower= takes a function"),
        (lambda: sw.native(add, "float64", inverse=too_few), "has the signature"),
        (lambda: sw.native(len, "float64"), "a plain function or a numba.cfunc"),
        (lambda: sw.native(0xDEADBEEF, "float64"), "a plain function or a numba.cfunc"),
        (lambda: sw.native(lambda a, b: a.n, "float64"), "Numba cannot compile"),
        (lambda: sw.native(add, "O"), "takes numbers in native byte order"),
        (lambda: sw.native(add, ">f8"), "takes numbers in native byte order"),
        (lambda: sw.native(add, "nonsense"), "is not a numpy dtype"),
        (lambda: sw.native(add, [("x", "f8", 17)]), "up to 128 bytes"),
        (lambda: sw.native(add, "float64", value="int8"), "value= is"),
        (lambda: sw.native(add, "float64", name="plain"), "module:name"),
        (lambda: sw.native(add, "float64", commutative=1), "commutative="),
        (lambda: sw.Window(affine, algorithm="subtract_on_evict"), "an inverse"),
        (lambda: sw.Window(total).insert(1, 2.5), "is a float"),
        (lambda: sw.Window(total).insert(1, "a"), "is not a number"),
    ],
)
def test_wrong_requests(make, why):
    with pytest.raises(sw.SpecError, match=why):
        make()


def test_without_numba():
    program = (
        "import sys; sys.modules['numba'] = None\n"
        "import slidewise as sw\n"
        "try: sw.native(lambda a, b: a + b, 'float64')\n"
        "except ImportError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert "pip install 'slidewise[numba]'" in done.stdout


def test_functions_live_as_long_as_windows():
    def one(scale):
        return sw.native(lambda a, b: a + b * scale, "float64")

    windows = [sw.Window(one(scale)) for scale in (1.0, 2.0)]
    gc.collect()
    for window in windows:
        window.insert_many([1, 2], [1.0, 1.0])
    assert [window.query() for window in windows] == [2.0, 3.0]
    blobs = [pickle.dumps(window) for window in (sw.Window(moments),)]
    assert pickle.loads(blobs[0]).query() is None


def test_a_lower_that_raises_or_calls_back_in():
    behaviour = []

    def lower(record):
        return behaviour[-1](record)

    agg = sw.native(add, "float64", lower=lower)
    w = sw.Window({"own": agg, "n": sw.count()})
    w.insert_many([1, 2], [1.0, 2.0])
    behaviour.append({}.__getitem__)
    with pytest.raises(KeyError) as caught:
        w.query()
    assert "lowering a record" in caught.value.__notes__[0]
    behaviour.append(lambda record: w.query())
    with pytest.raises(sw.WindowBusyError):
        w.query()
    behaviour.append(float)
    assert w.query() == {"own": 3.0, "n": 2}


def test_threads_share_a_window():
    w = sw.Window(total, ties="keep")

    def work(start):
        for at in range(2_000):
            w.insert(start + at, 1)
            w.query()

    threads = [threading.Thread(target=work, args=(k * 5_000,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert w.query() == len(w) == 8_000
    w.check()
