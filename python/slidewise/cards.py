"""The algorithms one can choose from, each on a card."""

import textwrap
from dataclasses import dataclass, fields

__all__ = ["Card", "algorithms"]


@dataclass(frozen=True, slots=True)
class Card:
    """What one needs to know to choose an algorithm.

    Costs are in combines and moves of entries; n is the length of the window, d the
    number of entries between a place and the nearer end, m the size of a bulk.

    Attributes:
        name: As in `Window(..., algorithm=name)`.
        paper: Where it was published.
        order: Which order of arrival it allows.
        laws: What it asks of the aggregation.
        insert: Cost of an insert.
        evict: Cost of an evict.
        query: Cost of a query of the whole window.
        range: Cost of a query of a sub-range.
        bulk: Cost of bulk inserts and evicts.
        space: Memory.
        differs: Where it departs from the paper.
        choose: When to choose it.
    """

    name: str
    paper: str
    order: str
    laws: str
    insert: str
    evict: str
    query: str
    range: str
    bulk: str
    space: str
    differs: str
    choose: str

    def __str__(self) -> str:
        lines = [self.name]
        for field in fields(self)[1:]:
            text = f"{field.name:<8} {getattr(self, field.name)}"
            lines += textwrap.wrap(
                text, 86, initial_indent="  ", subsequent_indent=" " * 11
            )
        return "\n".join(lines)


_CARDS = (
    Card(
        name="fiba",
        paper="Tangwongsan, Hirzel, Schneider: FiBA, PVLDB 12(10), 2019; bulk evict "
        "and insert, PVLDB 16(11), 2023",
        order="any",
        laws="associative",
        insert="amortised O(log d); at the young end amortised O(1)",
        evict="amortised O(log d); of the oldest amortised O(1)",
        query="at most 2 combines",
        range="O(log d_from + log d_to + log n_sub)",
        bulk="evict_until amortised O(log m), worst O(log n); insert_many "
        "O(log d + m (1 + log(d/m)))",
        space="about 17 bytes per entry of 16 bytes in order, about 24 after disorder",
        differs="entries in leaves only (a B+-tree with fat leaves); late entries are "
        "staged and inserted together; a few entries are a sorted array",
        choose="always, unless order is certain; it is what auto means",
    ),
    Card(
        name="recalculate",
        paper="none: the baseline of all papers",
        order="any",
        laws="associative",
        insert="O(1), if late O(n) moves",
        evict="of the oldest O(1), else O(n) moves",
        query="n − 1 combines",
        range="n_sub − 1 combines",
        bulk="as many single steps",
        space="the entries, no partials",
        differs="nothing",
        choose="to check another algorithm, or for windows of a few entries",
    ),
)


class Cards(tuple[Card, ...]):
    """Cards, shown below one another."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "\n\n".join(map(str, self))


def algorithms() -> Cards:
    """The algorithms to choose from, each as a card.

    Cost: none.

    Example:
        >>> [card.name for card in algorithms()]
        ['fiba', 'recalculate']
        >>> algorithms()[0].order
        'any'
    """
    return Cards(_CARDS)
