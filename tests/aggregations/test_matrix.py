"""The matrix: every algorithm × aggregation × kind of value × order that it supports.

Random scripts run beside `recalculate`; answers are compared after every operation.

`SLIDEWISE_SCRIPTS` sets the number of scripts per pair and kind of value (`make
test-matrix-long` has a million). They change daily, unless `SLIDEWISE_SEED` is the
first seed. `auto` and `fiba` take part in all of them, the others in a fifth.
"""

import inspect
import math
import os
import pickle
import random

import pytest
from definitions import BITS, DEFINITIONS, OF_TIMES, PAIRS, PARAMETERS
from seeds import SEED

import slidewise as sw
from slidewise import aggregations
from slidewise.aggregations.records import kinds as built_in
from slidewise.window.algorithms import ALGORITHMS, LAWS

SCRIPTS = int(os.environ.get("SLIDEWISE_SCRIPTS", "60"))
DEFAULT = ("auto", "fiba")
STEPS = 16

joined = sw.aggregation(
    lift=str, combine=lambda a, b: a + b, identity="", name="test_matrix:joined"
)
total = sw.aggregation(
    combine=lambda a, b: a + b,
    inverse=lambda whole, earliest: whole - earliest,
    identity=0,
    commutative=True,
    name="test_matrix:total",
)

# The arguments of aggregations; those of two columns name them.
ARGUMENTS = {
    **PARAMETERS,
    "bloom": {"capacity": 50},
    "count_min": {"error": 0.2, "confidence": 0.9},
    **{kind: {"x": "x", "y": "y"} for kind in PAIRS},
    "weighted_mean": {"column": "x", "by": "y"},
}


def with_law(law):
    return {kind for kind, meant in DEFINITIONS.items() if meant.law == law}


# Over objects few are invertible.
INVERTIBLE = {"count", "of one's own, with an inverse"}
INVERTIBLE_NUMBERS = INVERTIBLE | with_law("invertible")
SELECTIVE = with_law("selective")
HOLISTIC = with_law("holistic")

# A latency that all late entries keep, so that entries leave the tree.
OPTIONS = {"daba_late": {"latency": 13}}


def made(name):
    return getattr(aggregations, name)(**ARGUMENTS.get(name, {}))


AGGS = {
    name: made(name)
    for name in aggregations.__all__
    if inspect.isfunction(getattr(aggregations, name))
}
AGGS["of one's own"] = joined()
AGGS["of one's own, with an inverse"] = total()
AGGS["several"] = {"n": sw.count(), "avg": sw.mean(), "top": sw.max()}
AGGS["several, with objects"] = {"n": sw.count(), "all": sw.collect()}

KINDS = ("int64", "float64", "object")

# The aggregations that refuse a kind of value, and the message.
NUMBERS_ONLY = "computes with numbers: objects can be aggregated by"
TEXT_ONLY = "takes str, bytes, lists and tuples"
NUMBERS = {kind for kind, meant in DEFINITIONS.items() if not meant.objects}
REFUSED = {("concat", "int64"): TEXT_ONLY, ("concat", "float64"): TEXT_ONLY}
REFUSED |= {(name, "float64"): "computes with int64" for name in BITS}
REFUSED |= {
    (name, "object"): NUMBERS_ONLY
    for name in (*NUMBERS, "approx_quantile")
    if name not in OF_TIMES  # whatever the values are
}
REFUSED |= {
    (name, kind): "ranks the value of a row"
    for name in ("rank", "percent_rank")
    for kind in ("int64", "float64", "object")
}
# Text has neither a difference nor a quotient, but ints beyond int64 do.
LARGE = ("mean", "range", "several", "of one's own, with an inverse")
LARGE += ("delta", "increase", "drawdown")


def value_of(name, kind, rng):
    if rng.random() < 0.1:
        return None
    drawn = rng.randrange(-40, 40)
    if name == "geometric_mean":
        drawn = abs(drawn)
    if name == "product":  # the product of a whole window must fit int64
        drawn = rng.choice((-1, 1, 1, 1, 2))
    if kind == "int64":
        return drawn
    if kind == "float64":
        return drawn / 4
    return 2**70 + drawn if name in LARGE else rng.choice("abcdefghijk")


def row_of(name, kind, rng):
    if getattr(AGGS[name], "columns", ()):
        return {column: value_of(name, kind, rng) for column in ("x", "y")}
    return value_of(name, kind, rng)


def window(name, kind, algorithm, ties):
    dtype = "object" if kind == "object" and not name.startswith("of one") else None
    options = OPTIONS.get(algorithm, {})
    return sw.Window(AGGS[name], algorithm=algorithm, ties=ties, dtype=dtype, **options)


def apart(algorithm, name, kind):
    """Why an algorithm and an aggregation do not go together, or None."""
    if name in HOLISTIC and algorithm not in ("fiba", "recalculate"):
        return "holistic"
    law = ALGORITHMS[algorithm].law
    keeps = {
        None: True,
        "inverse": inverts(name, kind),
        "inverse or selection": inverts(name, kind) or selects(name, kind),
    }
    return None if keeps[law] else "law"


def inverts(name, kind):
    return name in INVERTIBLE if kind == "object" else name in INVERTIBLE_NUMBERS


def selects(name, kind):
    return name in SELECTIVE and (kind != "object" or name in OF_TIMES)


CASES = [(name, kind) for name in AGGS for kind in KINDS]


def same(a, b):
    if type(a) is type(b) and type(a) is not dict and a == b:
        return True
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9) or (a != a and b != b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if type(a) is not type(b):
        return False
    return bool(a == b) or repr(a) == repr(b)


class Side:
    """One window in a script."""

    def __init__(self, algorithm, empty):
        self.algorithm, self.window = algorithm, empty.copy()
        whole_only = algorithm in OPTIONS  # entries outside the tree answer as a whole
        self.parts = algorithm == "auto" or (
            ALGORITHMS[algorithm].ranges and not whole_only
        )

    def again(self, how):
        if how == "copy":
            self.window = self.window.copy()
        elif how == "pickle":
            self.window = pickle.loads(pickle.dumps(self.window))
        else:
            self.window = sw.Window.from_bytes(self.window.to_bytes())


def script(rng, name, kind, late):
    """Calls of one script, the same for all windows: method and arguments."""
    now = 0
    for _ in range(STEPS):
        drawn = rng.random()
        step = rng.choice((0, 1, 1, 2, 7))
        if drawn < 0.5:
            now += step
            back = rng.randrange(12) if late and rng.random() < 0.4 else 0
            yield "insert", (now - back, row_of(name, kind, rng))
        elif drawn < 0.62:
            count = rng.choice((1, 2, 9))
            times = [now + rng.randrange(-9 * late, 9) for _ in range(count)]
            now = max(now, *times)
            yield "insert_many", (times, [row_of(name, kind, rng) for _ in times])
        elif drawn < 0.74:
            yield "evict", ()
        elif drawn < 0.84:
            yield "evict_until", (now - rng.randrange(20),)
        elif drawn < 0.92:
            lo, hi = sorted(now - rng.randrange(-2, 25) for _ in "ab")
            yield "query", (lo, hi)
        elif drawn < 0.94 and late:
            yield "evict", (now - rng.randrange(12),)
        elif drawn < 0.96:
            yield "clear", ()
        else:
            yield "again", (rng.choice(("copy", "pickle", "bytes")),)


def run(name, kind, algorithms, late):
    prototypes = {
        (algorithm, ties): window(name, kind, algorithm, ties)
        for algorithm in ("recalculate", *algorithms)
        for ties in ("combine", "keep")
    }
    for seed in range(SEED, SEED + SCRIPTS):
        rng = random.Random(f"{name} {kind} {late} {seed}")
        ties = rng.choice(("combine", "keep"))
        oracle = prototypes["recalculate", ties].copy()
        some = algorithms if (seed - SEED) % 5 == 0 else DEFAULT
        sides = [Side(other, prototypes[other, ties]) for other in some]
        for step, (method, arguments) in enumerate(script(rng, name, kind, late)):
            what = (seed, step, method, arguments)
            if method == "again":
                for side in sides:
                    side.again(*arguments)
            elif method == "evict" and not arguments and not len(oracle):
                continue
            else:
                if method == "insert_many" and not late:
                    youngest = oracle.youngest
                    arguments = (
                        [max(t, youngest or t) for t in arguments[0]],
                        *arguments[1:],
                    )
                wanted = getattr(oracle, method)(*arguments)
                for side in sides:
                    if method == "query" and not side.parts:
                        continue
                    got = getattr(side.window, method)(*arguments)
                    assert same(got, wanted), (side.algorithm, what, got, wanted)
            whole, count = oracle.query(), len(oracle)
            for side in sides:
                got = side.window.query()
                assert same(got, whole), (side.algorithm, what, got, whole)
                assert len(side.window) == count, (side.algorithm, what)
        for side in sides:
            side.window.check()
            pairs = zip(side.window.items(), oracle.items(), strict=True)
            assert all(same(a, b) for a, b in pairs), (side.algorithm, seed)


def answer_over_one(name, kind):
    w = window(name, kind, "auto", "keep")
    w.insert(1, row_of(name, kind, random.Random(3)))
    return w.query()


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_matrix(name, kind):
    refusal = REFUSED.get((name, kind))
    if refusal is not None:
        with pytest.raises(sw.SpecError, match=refusal):
            answer_over_one(name, kind)
        return
    lawful = [one for one in ALGORITHMS if apart(one, name, kind) is None]
    lawful.remove("recalculate")
    run(name, kind, ["auto", *lawful], late=False)
    any_order = [one for one in lawful if not ALGORITHMS[one].in_order]
    run(name, kind, ["auto", *any_order], late=True)


def strangers():
    for name, kind in CASES:
        for algorithm in ALGORITHMS:
            why = apart(algorithm, name, kind)
            if why is not None and (name, kind) not in REFUSED:
                case = f"{algorithm}-{name}-{kind}-{why}"
                yield pytest.param(algorithm, name, kind, why, id=case)


@pytest.mark.parametrize(("algorithm", "name", "kind", "why"), list(strangers()))
def test_pairs_that_do_not_go_together(algorithm, name, kind, why):
    """The message names the missing law and the aggregation that lacks it."""
    with pytest.raises(sw.SpecError) as caught:
        window(name, kind, algorithm, "keep")
    message = str(caught.value)
    if why == "law":
        law = LAWS[ALGORITHMS[algorithm].law]
        assert message.startswith(f"algorithm {algorithm!r} needs {law}, which ")
        assert "without that law: auto, fiba, " in message
    else:
        assert message.startswith(f"algorithm {algorithm!r} combines partial results")
        assert "need all values of the window" in message
    if isinstance(AGGS[name], sw.Aggregation):
        assert repr(AGGS[name]) in message


def test_the_matrix_has_all_aggregations():
    kinds = {agg.kind for agg in AGGS.values() if isinstance(agg, sw.Aggregation)}
    assert set(built_in()) <= kinds


def restored():
    for name in ("sum", "mean", "stddev", "geometric_mean", "max", "of one's own"):
        yield name, "auto"
        yield from (
            (name, one) for one in ALGORITHMS if not apart(one, name, "float64")
        )


@pytest.mark.parametrize(("name", "algorithm"), list(restored()))
@pytest.mark.parametrize("ties", ["combine", "keep"])
def test_restoring_is_invisible(name, algorithm, ties):
    """A copy, a pickle and a snapshot continue like the window, bit for bit."""
    w = window(name, "float64", algorithm, ties)
    rng = random.Random(f"{algorithm} {ties} {name}")
    others = []
    for step in range(120):
        if step % 20 == 7:
            others.append(w.copy())
            others.append(pickle.loads(pickle.dumps(w)))
            others.append(sw.Window.from_bytes(w.to_bytes()))
        time, value = step + rng.randrange(2), rng.uniform(1e-9, 1e9)
        calls = [("insert", max(time, w.youngest or 0), value)] * 4
        calls += [("evict_until", time - rng.randrange(5, 40))]
        calls += [("evict",)] if len(w) else []
        method, *arguments = rng.choice(calls)
        wanted = repr((getattr(w, method)(*arguments), w.query(), len(w)))
        for other in others:
            got = repr((getattr(other, method)(*arguments), other.query(), len(other)))
            assert got == wanted, (step, method, arguments)
