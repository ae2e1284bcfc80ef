"""The algorithms one can choose from, each on a card."""

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import zip_longest
from typing import SupportsIndex, overload

from slidewise.errors import SpecError

__all__ = ["Card", "algorithms", "card_of"]


@dataclass(frozen=True, slots=True, repr=False)
class Card:
    """What one needs to know to choose an algorithm.

    Costs are in combines and moves of entries; n is the length of the window, d the
    number of entries between a place and the nearer end, m the size of a bulk. The
    combines of an aggregation of your own are noted down by the call that they are
    counted for, and called when an answer needs them: see `slidewise.aggregation`.
    Bytes were measured on sums of int64, whose partials take 16 bytes.

    Attributes:
        name: As in `Window(..., algorithm=name)`.
        paper: Where it was published.
        order: Which order of arrival it allows.
        laws: What it asks of the aggregation.
        amortised: Combines of an insert, an evict and a query together, amortised over
            many; where entries come in order, unless it says otherwise.
        worst: The most that one round of the three can take.
        insert: Cost of an insert.
        evict: Cost of an evict.
        query: Cost of a query of the whole window.
        range: Cost of a query of a sub-range.
        bulk: Cost of bulk inserts and evicts.
        bytes_per_entry: The least and the most, over all lengths, of a window that
            keeps its length and has slid by twice as much.
        space: What that is made of, and when it is more.
        differs: Where it departs from the paper.
        choose: When to choose it.
    """

    name: str
    paper: str
    order: str
    laws: str
    amortised: str
    worst: str
    insert: str
    evict: str
    query: str
    range: str
    bulk: str
    bytes_per_entry: tuple[int, int]
    space: str
    differs: str
    choose: str

    def __str__(self) -> str:
        """All of it, field by field."""
        least, most = self.bytes_per_entry
        lines = [self.name]
        for field in fields(self)[1:]:
            text = f"{field.name:<9} {getattr(self, field.name)}"
            if field.name == "bytes_per_entry":
                text = f"bytes     {least} to {most} per entry"
            lines += textwrap.wrap(
                text, 86, initial_indent="  ", subsequent_indent=" " * 12
            )
        return "\n".join(lines)

    __repr__ = __str__

    @property
    def row(self) -> tuple[str, ...]:
        """Its row in the table of `algorithms`: what stands before the details."""
        least, most = self.bytes_per_entry
        asks = (self.name, _gist(self.order), _gist(self.laws))
        costs = (self.amortised, self.worst, f"{least} to {most}")
        return (*asks, *costs, _gist(self.choose))


def _gist(text: str) -> str:
    return re.split(r"[:;.] ", text)[0]


_WHOLE = "the whole window only"
_IN_RINGS = (
    "per entry, up to twice that while rings are half full; until a window that grew "
    "has slid by twice its length up to three times"
)
_ONE_PARTIAL = f"a time, a value and a partial {_IN_RINGS}"
_TWO_PARTIALS = f"a time, a value and two partials {_IN_RINGS}"
_NODES = (
    "nodes, half full where entries come in order, in room that doubles: with arity=2 "
    "up to 152, with 8 up to 109, with 16 up to 103"
)

_CARDS = (
    Card(
        name="fiba",
        paper="Tangwongsan, Hirzel, Schneider: FiBA, PVLDB 12(10), 2019; bulk evict "
        "and insert, PVLDB 16(11), 2023",
        order="any",
        laws="associative",
        amortised="4; of late entries O(log d)",
        worst="O(log n) each, of up to n/256 late ones that waited; n moves at a third",
        insert="amortised O(log d); at the young end amortised O(1)",
        evict="amortised O(log d); of the oldest amortised O(1); the one that leaves "
        "less than a third of the entries moves those n, which gives memory back: half "
        "a move for each entry ever inserted",
        query="at most 2 combines",
        range="O(log d_from + log d_to + log n_sub)",
        bulk="evict_until amortised O(log m), worst O(log n), and moves as evict; "
        "insert_many O(log d + m (1 + log(d/m)))",
        bytes_per_entry=(17, 26),
        space="a time and a value per entry, a partial per leaf: 17 in order, 22 to 26 "
        "after disorder; at most the memory of three times the entries once a window "
        "has shrunk",
        differs="entries in leaves only (a B+-tree with fat leaves); late entries are "
        "staged and inserted together; a few entries are a sorted array",
        choose="always, unless order is certain; it is what auto means",
    ),
    Card(
        name="daba_lite",
        paper="Tangwongsan, Hirzel, Schneider: DABA, DEBS 2015; the lite form: "
        "In-Order Sliding-Window Aggregation in Worst-Case Constant Time, VLDBJ 30, "
        "2021",
        order="in order",
        laws="associative",
        amortised="4",
        worst="6",
        insert="worst case 3 combines, 2 on average",
        evict="worst case 2 combines, 1 on average",
        query="1 combine",
        range=_WHOLE,
        bulk="as many single steps",
        bytes_per_entry=(32, 64),
        space=_ONE_PARTIAL,
        differs="nothing; its queue is a chain of rings, in which entries keep their "
        "places, but that at most 127 move at once when a window has shrunk to them",
        choose="in order, where every single operation must be fast",
    ),
    Card(
        name="two_stacks_lite",
        paper="Tangwongsan, Hirzel, Schneider: Two-Stacks, DEBS 2015; the lite form: "
        "In-Order Sliding-Window Aggregation in Worst-Case Constant Time, VLDBJ 30, "
        "2021",
        order="in order",
        laws="associative",
        amortised="3",
        worst="n",
        insert="1 combine",
        evict="amortised 1 combine, worst n − 1 (the flip)",
        query="1 combine",
        range=_WHOLE,
        bulk="evict_until O(1) within the front, else a flip of what stays; "
        "insert_many as many single steps",
        bytes_per_entry=(32, 64),
        space=_ONE_PARTIAL,
        differs="a bulk evict flips only what stays",
        choose="for throughput in order, where a rare slow evict is fine",
    ),
    Card(
        name="subtract_on_evict",
        paper="the baseline of DEBS 2015, figure 19",
        order="in order",
        laws="associative, with an inverse: count, sum, mean, variance, stddev, "
        "geometric_mean, your own with inverse=",
        amortised="2, one an inverse",
        worst="2; n after floats overflowed",
        insert="1 combine",
        evict="1 inverse",
        query="0 combines",
        range=_WHOLE,
        bulk="as many single steps",
        bytes_per_entry=(32, 64),
        space=_ONE_PARTIAL,
        differs="infinities and NaN are kept apart, so that they leave no trace "
        "(but not beside an aggregation of your own)",
        choose="for integer sums and counts in order, where it is exact. On floats, "
        "and for variance and stddev of integers too, every subtraction leaves a "
        "rounding error until the window has been empty, and a value far larger than "
        "the others (1e16 for sums, 1e8 for deviations) takes their digits along as it "
        "leaves",
    ),
    Card(
        name="slick_deque",
        paper="Shein, Chrysanthis, Labrinidis: SlickDeque, EDBT 2018, section 3.2",
        order="in order",
        laws="associative, with an inverse (Inv) or selective (Non-Inv): min, max, "
        "first, last, arg_min, arg_max, each alone",
        amortised="2, one an inverse; Non-Inv < 2",
        worst="2; Non-Inv n",
        insert="Inv 1 combine; Non-Inv amortised < 2 comparisons, worst n",
        evict="Inv 1 inverse; Non-Inv 0",
        query="0 combines",
        range=_WHOLE,
        bulk="as many single steps",
        bytes_per_entry=(32, 64),
        space="of Inv: a time, a value and a partial per entry; Non-Inv 16 to 32 in "
        "random data, up to 80 where no value is outdone",
        differs="for one range Inv is subtract_on_evict",
        choose="for many ranges over one stream, and for min and max of random data; "
        "of those few candidates are kept. Inv subtracts: floats and deviations lose "
        "digits as with subtract_on_evict",
    ),
    Card(
        name="amta",
        paper="Villalba, Berral, Carrera: AMTA, TPDS 30(3), 2019; compared with in "
        "bulk FiBA, PVLDB 16(11), 2023",
        order="in order",
        laws="associative",
        amortised="4",
        worst="2 + 3 log₂ n",
        insert="amortised 2 combines, worst 1 + log₂ n",
        evict="amortised 1 combine, worst 2 log₂ n",
        query="1 combine",
        range="at most 2 log₂ n_sub combines",
        bulk="evict_until at most 2 log₂ n combines; insert_many as many single steps",
        bytes_per_entry=(48, 96),
        space="a time, a value and 2 to 4 partials per entry",
        differs="subtrees lie in a ring that doubles, not in linked nodes",
        choose="in order, where many entries leave at once",
    ),
    Card(
        name="flat_fat",
        paper="Tangwongsan, Hirzel, Schneider, Wu: FlatFAT, PVLDB 8(7), 2015; as a "
        "window, SlickDeque, EDBT 2018, §2.2",
        order="in order",
        laws="associative",
        amortised="4 log₂ n",
        worst="2 n, as the tree doubles",
        insert="0 combines: the next query updates",
        evict="0 combines: the next query updates",
        query="m (1 + ⌈log₂(n/m)⌉) combines for m changes since the last, 2 log₂ n "
        "more while the buffer is inverted",
        range="at most 2 log₂ n combines beside the update",
        bulk="as many single steps, updated together",
        bytes_per_entry=(52, 120),
        space="a time, a value and 2 to 4 partials per entry; capacity= reserves them",
        differs="what is empty is told by the ends of the buffer; the tree doubles "
        "when it is full, and halves again, not below capacity=",
        choose="many ranges over one stream, of a length that is known",
    ),
    Card(
        name="reactive",
        paper="Tangwongsan, Hirzel, Schneider, Wu: Reactive Aggregator, "
        "PVLDB 8(7), 2015",
        order="in order",
        laws="associative",
        amortised="4 log₂ n",
        worst="2 n, as the tree doubles",
        insert="0 combines, amortised O(1) moves: the next query updates",
        evict="anywhere: 0 combines, amortised O(1) moves; the next query updates",
        query="m (1 + ⌈log₂(n/m)⌉) combines for m events since the last, 2 log₂ n "
        "more while the buffer is inverted",
        range="at most 2 log₂ n combines beside the update",
        bulk="as many single steps, updated together",
        bytes_per_entry=(44, 104),
        space="a time and 2 to 8 partials per entry",
        differs="marks for holes are kept only while there are holes",
        choose="in order, where entries are taken back out of order",
    ),
    Card(
        name="b_int",
        paper="Arasu, Widom: base intervals, VLDB 2004; as described in SlickDeque, "
        "EDBT 2018, §2.2",
        order="in order",
        laws="associative",
        amortised="1 + 2 log₂ n",
        worst="2 + 3 log₂ n",
        insert="amortised 1 combine, worst log₂ n",
        evict="0 combines",
        query="at most 2 log₂ n combines",
        range="at most 2 log₂ n_sub combines",
        bulk="as many single steps; evict_until 0 combines",
        bytes_per_entry=(48, 96),
        space="a time, a value and 2 to 4 partials per entry",
        differs="the ring doubles when the window outgrows it",
        choose="many ranges over one stream, asked for seldom",
    ),
    Card(
        name="flat_fit",
        paper="Shein, Chrysanthis, Labrinidis: FlatFIT, SSDBM 2017; as described in "
        "SlickDeque, EDBT 2018, §2.2",
        order="in order",
        laws="associative",
        amortised="3",
        worst="n − 1",
        insert="0 combines",
        evict="0 combines",
        query="amortised 3 combines per slide, worst n − 1 (the window reset); of many "
        "ranges asked every slide 1 to 4 each, by how they lie",
        range="the whole window only; beneath it, parts that end at the young end",
        bulk="as many single steps",
        bytes_per_entry=(48, 96),
        space="a time, a value, a partial and a pointer per entry, up to twice that",
        differs="windows of changing length; the arrays double when they are full",
        choose="many ranges over one stream, asked for often",
    ),
    Card(
        name="daba_chain",
        paper="Tangwongsan, Hirzel, Schneider: DABA, DEBS 2015, section 9: young and "
        "old over one queue",
        order="in order",
        laws="associative",
        amortised="6; of q ranges 7q",
        worst="6; of q ranges 7q",
        insert="at most 3 combines, worst case; beneath a SharedWindow 5 more for each "
        "further range, which hand on a value each",
        evict="at most 2 combines, worst case",
        query="1 combine; beneath a SharedWindow at most 2 per range",
        range=_WHOLE,
        bulk="as many single steps",
        bytes_per_entry=(48, 96),
        space=_TWO_PARTIALS,
        differs="any number of ranges, where the paper has two; daba_lite for one",
        choose="a few ranges over one stream, of any aggregation, where no call may be "
        "long",
    ),
    Card(
        name="daba_late",
        paper="Tangwongsan, Hirzel, Schneider: DABA, DEBS 2015, section 9: a tree "
        "before DABA",
        order="any up to latency=",
        laws="associative",
        amortised="10; of late entries O(log d)",
        worst="O(log n), after a pause more",
        insert="amortised O(log d), and amortised O(1) to move on: after a pause, all "
        "that has become old at once",
        evict="of the oldest at most 2 combines, worst case, where it is older than "
        "the bound",
        query="at most 5 combines",
        range="O(log n_sub) among entries younger than the bound; of the older all or "
        "none",
        bulk="as many single steps, but for a bulk insert of young entries",
        bytes_per_entry=(32, 122),
        space="as daba_lite, and a node's share of the tree per young entry; without "
        "latency= as btree",
        differs="latency= is a duration such as '10m', or an int for integer times; "
        "what is later than the bound is taken where nothing younger has moved "
        "on; without latency= all stays in the tree",
        choose="a long window whose late entries are never very late",
    ),
    Card(
        name="btree",
        paper="Tangwongsan, Hirzel, Schneider: the baseline of FiBA, PVLDB 12(10), "
        "2019, §3.1",
        order="any",
        laws="associative",
        amortised="O(log n)",
        worst="O(log n)",
        insert="O(log n)",
        evict="O(log n)",
        query="0 combines",
        range="O(log n)",
        bulk="as many single steps",
        bytes_per_entry=(76, 122),
        space=_NODES,
        differs="nodes of a few sizes, by index; equal times can be kept apart",
        choose="to measure what fingers bring; arity= is the least one, 2, 4, 8 or 16",
    ),
    Card(
        name="fiba_published",
        paper="Tangwongsan, Hirzel, Schneider: FiBA, PVLDB 12(10), 2019; bulk evict "
        "and insert, PVLDB 16(11), 2023",
        order="any",
        laws="associative",
        amortised="18; of late entries O(log d)",
        worst="O(log n)",
        insert="amortised O(log d), worst O(log n)",
        evict="amortised O(log d), worst O(log n); of the oldest amortised O(1)",
        query="at most 2 combines",
        range="O(log d_from + log d_to + log n_sub)",
        bulk="evict_until amortised O(log m), worst O(log n); insert_many "
        "O(log d + m (1 + log(d/m))); bulk=False: as many single steps",
        bytes_per_entry=(76, 122),
        space=_NODES,
        differs="as printed, errata mended; nodes of a few sizes, by index",
        choose="for experiments with arity= (2, 4, 8, 16), bulk= and free_list=; else "
        "fiba, which is faster",
    ),
    Card(
        name="daba",
        paper="Tangwongsan, Hirzel, Schneider: DABA, DEBS 2015, section 6",
        order="in order",
        laws="associative",
        amortised="4",
        worst="6; 8 with caching=False",
        insert="worst case 3 combines, 2 on average",
        evict="worst case 2 combines, 1 on average",
        query="1 combine; 0 if nothing has changed since the last",
        range=_WHOLE,
        bulk="as many single steps",
        bytes_per_entry=(48, 96),
        space=_TWO_PARTIALS,
        differs="caching= is figure 17, without it figure 14",
        choose="to compare with; daba_lite does the same in less memory",
    ),
    Card(
        name="aba",
        paper="Tangwongsan, Hirzel, Schneider: ABA, DEBS 2015, section 5",
        order="in order",
        laws="associative",
        amortised="3",
        worst="n + 1",
        insert="1 combine",
        evict="amortised 1 combine, worst n − 1 (the flip)",
        query="1 combine; 0 if nothing has changed since the last",
        range=_WHOLE,
        bulk="as many single steps",
        bytes_per_entry=(48, 96),
        space=_TWO_PARTIALS,
        differs="nothing; caching= keeps the last answer",
        choose="to compare with; two_stacks_lite does the same in less memory",
    ),
    Card(
        name="two_stacks",
        paper="Tangwongsan, Hirzel, Schneider: Two-Stacks, DEBS 2015, section 4",
        order="in order",
        laws="associative",
        amortised="3",
        worst="n + 1",
        insert="1 combine",
        evict="amortised 1 combine, worst n − 1 and n moves (the flip)",
        query="1 combine; 0 if nothing has changed since the last",
        range=_WHOLE,
        bulk="as many single steps",
        bytes_per_entry=(80, 160),
        space="a time and a value per entry, and two partials in either stack, which "
        "keep the room that they once took",
        differs="nothing; caching= keeps the last answer",
        choose="to compare with; two_stacks_lite does the same in less memory",
    ),
    Card(
        name="recalculate",
        paper="none: the baseline of all papers",
        order="any",
        laws="associative",
        amortised="n − 1",
        worst="n − 1",
        insert="O(1), if late O(n) moves",
        evict="of the oldest O(1), else O(n) moves",
        query="n − 1 combines",
        range="n_sub − 1 combines",
        bulk="as many single steps",
        bytes_per_entry=(48, 96),
        space="the entries, no partials",
        differs="nothing",
        choose="to check another algorithm, or for windows of a few entries",
    ),
)


def card_of(name: str) -> Card:
    """The card of an algorithm.

    Raises:
        SpecError: If there is none of that name.

    Example:
        >>> card_of("fiba").order
        'any'
    """
    for card in _CARDS:
        if card.name == name:
            return card
    there = ", ".join(card.name for card in _CARDS)
    raise SpecError(f"unknown algorithm {name!r}; there are {there}")


# What the columns of the table are called, and how many characters each may take.
_COLUMNS = (
    ("name", 17),
    ("order", 8),
    ("laws", 13),
    ("amortised", 14),
    ("worst", 14),
    ("bytes per entry", 9),
    ("choose", 29),
)
_ABOUT = """\
amortised, worst: combines of an insert, an evict and a query together, for n entries of
which d lie between a late one and the nearer end. bytes per entry: sums of int64.
A whole card: slidewise algorithms NAME, or sw.algorithms()[NAME]."""


class Cards(tuple[Card, ...]):
    """Cards, shown as a table, and found by name or by place."""

    __slots__ = ()

    @overload
    def __getitem__(self, at: str | SupportsIndex) -> Card: ...
    @overload
    def __getitem__(self, at: slice) -> "Cards": ...
    def __getitem__(self, at: str | SupportsIndex | slice) -> "Card | Cards":
        """A card by the name of its algorithm, or as any tuple has it.

        Raises:
            SpecError: If there is none of that name.

        Example:
            >>> algorithms()["daba_lite"].worst
            '6'
        """
        if isinstance(at, str):
            return card_of(at)
        found = super().__getitem__(at)
        return found if isinstance(found, Card) else Cards(found)

    def __repr__(self) -> str:
        head = _line([name for name, _ in _COLUMNS])
        rule = "  ".join("-" * width for _, width in _COLUMNS)
        rows = [_line(card.row) for card in self]
        return "\n".join([head, rule, *rows, "", _ABOUT])


def _line(texts: Sequence[str]) -> str:
    """A row of the table, its cells wrapped."""
    widths = [width for _, width in _COLUMNS]
    cells = (
        textwrap.wrap(text, width) for text, width in zip(texts, widths, strict=True)
    )
    lines = zip_longest(*cells, fillvalue="")
    padded = (
        "  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True))
        for line in lines
    )
    return "\n".join(line.rstrip() for line in padded)


def algorithms() -> Cards:
    """The algorithms to choose from, each as a card; together a table.

    Cost: none.

    Example:
        >>> [card.name for card in algorithms()][:3]
        ['fiba', 'daba_lite', 'two_stacks_lite']
        >>> algorithms()["fiba"].order
        'any'
        >>> min(algorithms(), key=lambda card: card.bytes_per_entry).name
        'fiba'
    """
    return Cards(_CARDS)
