"""Windows by algorithm: laws, order, and the same answers as recalculate."""

import pickle
import random
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

import slidewise as sw
import slidewise._core as _core
from slidewise.window.algorithms import ALGORITHMS, Card

IN_ORDER = [name for name, known in ALGORITHMS.items() if known.in_order]
OLDEST_FIRST = [name for name in IN_ORDER if name != "reactive"]
WHOLE_ONLY = [name for name, known in ALGORITHMS.items() if not known.ranges]


def of(algorithm, agg=None, **options):
    """A window on an algorithm, with an aggregation that obeys its law."""
    if agg is None:
        agg = sw.max() if ALGORITHMS[algorithm].law == "selection" else sw.sum()
    return sw.Window(agg, algorithm=algorithm, **options)


def contents(window):
    return window.items(), window.query(), len(window), window.to_bytes()


def test_every_algorithm_has_its_card():
    cards = sw.algorithms()
    assert [card.name for card in cards] == list(ALGORITHMS)
    for card in cards:
        known = ALGORITHMS[card.name]
        assert (card.order == "in order") == known.in_order, card.name
        assert ("whole window only" in card.range) != known.ranges, card.name
        for law in ("inverse", "selecti"):
            assert (law in card.laws) == (law in (known.law or "")), card.name
        for field in Card.__dataclass_fields__:
            assert getattr(card, field), (card.name, field)
        assert cards[card.name] is card


def test_cards_lie_side_by_side():
    table = repr(sw.algorithms())
    lines = table.splitlines()
    assert max(map(len, lines)) <= 120
    assert len(lines) <= 70
    columns = ["name", "order", "laws", "amortised", "worst", "bytes per", "choose"]
    starts = [lines[0].index(column) for column in columns]
    names = [line.split()[0] for line in lines if line[:1].strip()]
    assert [name for name in names if name in ALGORITHMS] == list(ALGORITHMS)
    for card in sw.algorithms():
        line = next(line for line in lines if line.split(" ")[0] == card.name)
        cells = [line[start:] for start in starts]
        assert cells[1].startswith(card.order.split()[0])
        assert cells[3].startswith(card.amortised.split()[0].rstrip(";"))
        assert cells[4].startswith(card.worst.split()[0])
        least, most = card.bytes_per_entry
        assert cells[5].startswith(f"{least} to {most} ")
        assert cells[6].startswith(" ".join(card.choose.split()[:2]))


def test_a_card_is_shown_whole():
    shown = repr(sw.algorithms()["two_stacks"])
    assert shown.startswith("two_stacks\n  paper     folklore")
    for line in (
        '  amortised 4 (3 with ties="keep")\n',
        "  worst     n\n",
        '  query     2 combines (1 with ties="keep"); 1 (0 with ties="keep") ',
        "80 to 160 per entry",
    ):
        assert line in shown
    assert max(map(len, shown.splitlines())) <= 88
    assert sw.algorithms()[0] is sw.algorithms()["fiba"]
    assert len(sw.algorithms()[:2]) == 2
    with pytest.raises(sw.SpecError, match="unknown algorithm 'fibs'; there are fiba,"):
        sw.algorithms()["fibs"]


LENGTHS = (1 << 14, (1 << 14) + 5, 25_000)
# The memory of tree nodes depends on the height: these windows have the height of the
# cards.
OF_PUBLISHED_NODES = (1 << 16, 82_000, 100_000)
LENGTHS_OF_TREES = {
    "fiba": (1 << 16, (1 << 16) + 5, 100_000),
    "daba_late": OF_PUBLISHED_NODES,
    "btree": OF_PUBLISHED_NODES,
    "fiba_published": OF_PUBLISHED_NODES,
}


def bytes_per_entry(algorithm, length, lateness=1, **options):
    """The bytes per entry once the window has slid by its length or twice that."""
    rng = random.Random(length)
    times = [at + rng.randrange(lateness) for at in range(3 * length)]
    w = sw.Window(sw.sum(), algorithm=algorithm, ties="keep", **options)
    for at in range(0, length, 1000):
        end = min(at + 1000, length)
        w.insert_many(times[at:end], range(at, end))
    slides = 1 if algorithm in LENGTHS_OF_TREES else 2  # a ring needs two to grow
    for at in range(length, (1 + slides) * length):
        w.evict()
        w.insert(times[at], at)
        if at % 64 == 0 and algorithm != "recalculate":
            w.query()
    w.query()
    assert len(w) == length
    return w.nbytes / length


@pytest.mark.long
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_an_entry_takes_the_bytes_on_its_card(algorithm):
    least, most = sw.algorithms()[algorithm].bytes_per_entry
    lengths = LENGTHS_OF_TREES.get(algorithm, LENGTHS)
    found = [bytes_per_entry(algorithm, length) for length in lengths]
    if algorithm == "fiba":
        found += [bytes_per_entry(algorithm, length, 1000) for length in lengths]
    if algorithm == "daba_late":
        found += [bytes_per_entry(algorithm, n, latency=10) for n in lengths]
    assert min(found) >= 0.98 * least, found
    assert 0.9 * most <= max(found) <= 1.02 * most, found
    if algorithm not in (
        "btree",
        "fiba_published",
    ):  # their minimum is at other lengths
        assert min(found) <= 1.1 * least, found


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_core_says_the_same_of_bytes(algorithm):
    crates = Path(__file__).parents[2] / "crates"
    folders = (crates / "core/src/window", crates / "papers/src")
    files = (f"{algorithm}.rs", f"{algorithm}/mod.rs")
    (source,) = (
        path for folder in folders for file in files for path in folder.rglob(file)
    )
    least, most = sw.algorithms()[algorithm].bytes_per_entry
    assert f"| {least} to {most} bytes per entry" in source.read_text("utf-8")


@pytest.mark.parametrize("algorithm", ["btree", "fiba_published"])
@pytest.mark.parametrize("arity", [2, 8, 16])
def test_an_entry_takes_no_more_bytes_than_its_card(algorithm, arity):
    most = {2: 152, 8: 109, 16: 103}[arity]
    assert f"{most}" in sw.algorithms()[algorithm].space
    found = [bytes_per_entry(algorithm, n, arity=arity) for n in LENGTHS[1:]]
    assert max(found) <= 1.02 * most, found


@pytest.mark.parametrize("algorithm", IN_ORDER)
@pytest.mark.parametrize("ties", ["combine", "keep"])
def test_a_late_insert_changes_nothing(algorithm, ties):
    w = of(algorithm, ties=ties)
    w.insert(5, 1)
    w.insert(9, 2)
    before = contents(w)
    late = "an entry at 8 is late: the latest in the window is at 9"
    with pytest.raises(sw.OutOfOrderError, match=late) as one:
        w.insert(8, 3)
    with pytest.raises(sw.OutOfOrderError, match=late) as many:
        w.insert_many([12, 8, 11], [3, 4, 5])
    for error in (one.value, many.value, pickle.loads(pickle.dumps(one.value))):
        assert (error.time, error.youngest, error.oldest) == (8, 9, None)
    assert contents(w) == before
    w.insert_many([11, 9, 10], [3, 4, 5])  # sorted first
    assert w.youngest == 11


@pytest.mark.parametrize("algorithm", OLDEST_FIRST)
def test_a_refusal_tells_times_as_the_window_does(algorithm):
    noon, minute = datetime(2024, 3, 1, 12, tzinfo=UTC), timedelta(minutes=1)
    w = of(algorithm)
    w.insert_many([noon, noon + minute, noon + 3 * minute], [1, 2, 3])
    with pytest.raises(sw.OutOfOrderError) as late:
        w.insert(noon + 2 * minute, 4)
    assert late.value.time == noon + 2 * minute
    assert late.value.youngest == noon + 3 * minute
    with pytest.raises(sw.OutOfOrderError) as inner:
        w.evict(noon + minute)
    again = pickle.loads(pickle.dumps(inner.value))
    assert (again.time, again.oldest) == (noon + minute, noon)


@pytest.mark.parametrize("algorithm", IN_ORDER)
def test_late_is_before_the_youngest_present_time(algorithm):
    w = of(algorithm)
    w.insert(9, 2)
    w.evict_until(50)
    w.insert(3, 1)
    assert w.query() == 1


@pytest.mark.parametrize("algorithm", OLDEST_FIRST)
def test_evict_takes_the_oldest_only(algorithm):
    w = of(algorithm)
    w.insert_many([1, 4, 9], [1, 2, 3])
    before = contents(w)
    inner = "entry at 4 is not the earliest, which"
    with pytest.raises(sw.OutOfOrderError, match=inner) as caught:
        w.evict(4)
    for error in (caught.value, pickle.loads(pickle.dumps(caught.value))):
        assert str(error) == str(caught.value)
        assert (error.time, error.youngest, error.oldest) == (4, None, 1)
    assert w.evict(3) is False
    assert w.evict(99) is False
    assert contents(w) == before
    assert w.evict(1) is True
    assert w.items() == before[0][1:]


def test_reactive_evicts_anywhere():
    w = of("reactive", sw.collect())
    w.insert_many(range(9), "abcdefghi")
    assert w.evict(4) is True
    assert w.evict(4) is False
    assert w.query(3, 5) == ["d", "f"]
    assert w.query() == list("abcdfghi")


@pytest.mark.parametrize(
    ("algorithm", "parameters"),
    [
        ("btree", {"arity": 2}),
        ("btree", {"arity": 16}),
        ("fiba_published", {}),
        ("fiba_published", {"arity": 2, "bulk": False}),
        ("fiba_published", {"arity": 8, "free_list": False}),
        ("flat_fat", {"capacity": 3}),
        ("reactive", {"capacity": 300}),
    ],
)
def test_parameters(algorithm, parameters):
    w = of(algorithm, sw.collect(), **parameters)
    w.insert_many(range(100), range(100))
    if not ALGORITHMS[algorithm].in_order:
        w.insert_many([3, 50, 200], [0, 1, 2])
    w.evict_until(40)
    assert w.query(60, 63) == [60, 61, 62, 63]
    again = sw.Window.from_bytes(w.to_bytes())
    assert again.items() == w.items()
    assert again.to_bytes() == w.to_bytes()
    again.check()


def test_a_latency_bound():
    w = sw.Window(sw.collect(), algorithm="daba_late", latency=10)
    oracle = sw.Window(sw.collect(), algorithm="recalculate")
    for time in (5, 3, 12, 9, 30, 21, 28, 22):
        w.insert(time, time)
        oracle.insert(time, time)
        assert w.query() == oracle.query()
    w.check()
    before = contents(w)
    with pytest.raises(
        sw.OutOfOrderError, match=r"at 11 is too late: .* before 12, by"
    ):
        w.insert(11, 11)
    with pytest.raises(sw.OutOfOrderError, match="too late"):
        w.insert_many([31, 4], [31, 4])
    with pytest.raises(sw.OutOfOrderError, match="entry at 9 is not the earliest"):
        w.evict(9)
    with pytest.raises(sw.SpecError, match="or for what its latency= keeps open"):
        w.query(5, 30)
    assert contents(w) == before
    assert w.query(21, 28) == [21, 22, 28]
    assert w.evict(28) is True
    again = sw.Window.from_bytes(w.to_bytes())
    assert again.to_bytes() == w.to_bytes()
    assert again.evict_until(12) == 4
    assert again.query() == [21, 22, 30]
    again.insert(1, 1)  # no closed entries are left
    assert again.query() == [1, 21, 22, 30]


NOON = datetime(2024, 3, 1, 12)


@pytest.mark.parametrize("latency", ["10m", timedelta(minutes=10)])
@pytest.mark.parametrize("bulk", [False, True])
def test_a_latency_bound_is_a_length_of_time(latency, bulk):
    w = sw.Window(sw.collect(), algorithm="daba_late", latency=latency, dtype="int64")
    minutes = [0, 5, 3, 20, 11]
    times = [NOON + timedelta(minutes=at) for at in minutes]
    if bulk:
        w.insert_many(times, minutes)
    else:
        for time, value in zip(times, minutes, strict=True):
            w.insert(time, value)
    assert w.query() == [0, 3, 5, 11, 20]
    for other in (w, w.copy(), pickle.loads(pickle.dumps(w))):
        with pytest.raises(sw.OutOfOrderError, match="too late") as caught:
            other.insert(NOON + timedelta(minutes=4), 4)
        error = caught.value
        assert (error.time, error.youngest) == (NOON + timedelta(minutes=4), times[1])
        other.insert(NOON + timedelta(minutes=12), 12)
        assert other.query() == [0, 3, 5, 11, 12, 20]
        assert other.to_bytes() == sw.Window.from_bytes(other.to_bytes()).to_bytes()
        other.check()


def test_a_latency_bound_stays_where_the_type_of_values_comes_late():
    w = sw.Window(sw.sum(), algorithm="daba_late", latency="10m")
    for at in (0, 5, 20):
        w.insert(NOON + timedelta(minutes=at), None)
    w.insert(NOON + timedelta(minutes=20), 0.5)  # refilled with floats
    with pytest.raises(sw.OutOfOrderError, match="too late"):
        w.insert(NOON, 1.0)
    assert w.query() == 0.5
    assert sw.Window.from_bytes(w.to_bytes()).to_bytes() == w.to_bytes()


@pytest.mark.parametrize(
    ("latency", "time", "message"),
    [
        ("10m", 5, "latency='10m' is a duration, but the times are ints"),
        (10, NOON, "latency=10 is a bare number, but the times are datetimes"),
        ("5ns", NOON, "latency='5ns' is not a whole number of units"),
        (2**70, 5, "is too long"),
    ],
)
def test_a_latency_bound_is_of_the_kind_of_the_times(latency, time, message):
    w = sw.Window(sw.sum(), algorithm="daba_late", latency=latency)
    with pytest.raises(sw.SpecError, match=message):
        w.insert(time, 1)
    assert len(w) == 0


@pytest.mark.parametrize(
    ("latency", "message"),
    [
        (sw.rows(3), "latency= takes a duration or an int, not a number of rows"),
        ("1month", "no fixed length"),
        (0, "longer than zero"),
        (True, "latency=True is not a length of time"),
    ],
)
def test_a_latency_bound_is_checked(latency, message):
    sw.Window(sw.sum(), algorithm="daba_late", latency=1)  # which True equals
    with pytest.raises(sw.SpecError, match=message):
        sw.Window(sw.sum(), algorithm="daba_late", latency=latency)


def test_a_latency_bound_is_explained():
    text = sw.Window(sw.sum(), algorithm="daba_late", latency="10m").explain()
    assert "entries 10m before the latest move from the tree" in text
    text = sw.Window(sw.sum(), algorithm="daba_late").explain()
    assert "without latency= all entries stay in the tree" in text


@pytest.mark.parametrize("name", [["fiba"], {}, None, 3], ids=repr)
def test_a_wrong_name_is_named(name):
    message = rf"unknown algorithm {re.escape(repr(name))}; there are auto, "
    with pytest.raises(sw.SpecError, match=message):
        sw.Window(sw.sum(), algorithm=name)
    with pytest.raises(sw.SpecError, match=message):
        sw.SharedWindow(sw.sum(), ranges=[3], algorithm=name)


def test_parameters_are_checked():
    with pytest.raises(sw.SpecError, match="arity= takes one of 2, 4, 8, 16; got 3"):
        of("fiba_published", arity=3)
    with pytest.raises(sw.SpecError, match="bulk= takes True or False; got 2"):
        of("fiba_published", bulk=2)
    with pytest.raises(sw.SpecError, match="bulk= is for algorithm='fiba_published'"):
        of("btree", bulk=True)
    with pytest.raises(sw.SpecError, match="capacity= takes an int from 1 to 2"):
        of("flat_fat", capacity=0)


@pytest.mark.parametrize("algorithm", WHOLE_ONLY)
def test_parts_are_not_answered(algorithm):
    w = of(algorithm)
    w.insert_many([1, 4, 9], [1, 2, 3])
    with pytest.raises(
        sw.SpecError, match=r"whole window only, not for 2 to 9; .*fiba"
    ):
        w.query(2, 9)
    assert w.query(0, 9) == w.query()
    assert w.query(5, 8) is None


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_law_is_named(algorithm):
    law = ALGORITHMS[algorithm].law
    if law is None:
        return
    lacks = {"inverse": sw.max(), "selection": sw.sum()}.get(law, sw.collect())
    explained = {
        "inverse": "an inverse",
        "selection": "results that are one of the values",
        "inverse or selection": "an inverse, or results that are one of the values",
    }
    with pytest.raises(sw.SpecError) as caught:
        sw.Window({"a": lacks, "n": sw.count()}, algorithm=algorithm)
    message = str(caught.value)
    assert explained[law] in message
    assert repr(lacks) in message
    assert "fiba" in message
    others = message.split("without that law:")[1]
    assert algorithm not in others.replace(",", " ").split()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_native_module_checks_laws_again(algorithm):
    law = ALGORITHMS[algorithm].law
    if law is not None:
        assert not _core.obeys_law(law, [("collect", False)], 1)


def test_infinities_leave_no_trace_where_sums_are_subtracted():
    w = sw.Window({"s": sw.sum(), "m": sw.mean()}, algorithm="subtract_on_evict")
    w.insert_many([1, 2, 3], [float("nan"), float("inf"), 0.5])
    w.insert_many([4, 5], [float("-inf"), None])
    assert str(w.query()["s"]) == "nan"
    w.evict_until(2)
    assert w.query()["s"] == float("-inf")
    w.evict_until(4)
    assert w.query() == {"s": None, "m": None}
    w.insert(6, 2.5)
    assert w.query() == {"s": 2.5, "m": 2.5}


SELECTS = {
    "lo": sw.min(),
    "hi": sw.max(),
    "one": sw.first(),
    "then": sw.last(),
    "when": sw.arg_max(),
    "wide": sw.range(),
}


@pytest.mark.parametrize(
    "agg", [*SELECTS.values(), sw.sum(), sw.count(), sw.mean(), SELECTS], ids=repr
)
def test_slick_deque_takes_what_selects_and_what_can_be_subtracted(agg):
    w = sw.Window(agg, algorithm="slick_deque", last=10)
    oracle = sw.Window(agg, algorithm="recalculate", last=10)
    for time in range(200):
        value = None if time % 7 == 0 else (time * 37) % 11
        w.insert(time, value)
        oracle.insert(time, value)
        assert w.query() == oracle.query()
    w.check()
    assert sw.Window.from_bytes(w.to_bytes()).items() == oracle.items()


@pytest.mark.parametrize(
    ("algorithm", "agg"),
    [
        ("slick_deque", sw.max()),
        ("slick_deque", sw.sum()),
        ("subtract_on_evict", sw.sum()),
    ],
)
def test_laws_that_hold_over_numbers_only_are_marked(algorithm, agg):
    w = sw.Window(agg, algorithm=algorithm)
    w.insert(1, 2)
    for make in (sw.Window, sw.SharedWindow):
        ranges = {"ranges": [3]} if make is sw.SharedWindow else {}
        if ranges and algorithm != "slick_deque":
            continue
        with pytest.raises(sw.SpecError, match="over numbers, not over objects"):
            make(agg, algorithm=algorithm, dtype="object", **ranges)
    with pytest.raises(sw.SpecError, match=r"collect\(\) lacks; algorithms without"):
        sw.Window(sw.collect(), algorithm=algorithm, dtype="object")


def test_a_latency_bound_outlives_its_entries():
    w = sw.Window(sw.sum(), algorithm="daba_late", latency="10m")
    again = [
        w.copy(),
        pickle.loads(pickle.dumps(w)),
        sw.Window.from_bytes(w.to_bytes()),
    ]
    w.insert(NOON, 1)
    w.clear()
    for other in (w, *again):
        for minute in (0, 5, 20):
            other.insert(NOON + timedelta(minutes=minute), minute)
        with pytest.raises(sw.OutOfOrderError, match="too late"):
            other.insert(NOON, 1)
        assert other.query() == 25


def test_parameters_are_single_numbers():
    with pytest.raises(sw.SpecError, match="arity= takes one of 2"):
        sw.Window(sw.sum(), algorithm="btree", arity=np.array([4, 8]))
    assert repr(sw.algorithms()[:2]).startswith("name ")


@pytest.mark.parametrize("true", [True, np.True_])
def test_a_bool_is_not_a_number(true):
    with pytest.raises(sw.SpecError, match="capacity= takes an int from 1"):
        sw.Window(sw.sum(), algorithm="flat_fat", capacity=true)
    sw.Window(sw.sum(), algorithm="fiba_published", free_list=true)


def test_messages_mark_long_values_as_cut():
    with pytest.raises(sw.SpecError, match=r"is not an aggregation: '(xy)+x?\.\.\.; "):
        sw.Spec(on="t", windows=3, aggs={"n": "xy" * 100})
