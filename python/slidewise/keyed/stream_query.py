"""A query over a stream of rows: checked, and with the columns of its answers."""

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from slidewise.frames.adapt import frame
from slidewise.frames.base import refuse_taken
from slidewise.keyed.hop_windows import answer_none
from slidewise.keyed.page_store import TIME
from slidewise.keyed.page_tree import Cover
from slidewise.keyed.query import Query, flagged
from slidewise.keyed.validation import check_query
from slidewise.spec.spec import refuse_duplicates

__all__ = ["StreamQuery"]


@dataclass(frozen=True)
class StreamQuery(Query):
    """A `Query` that fits together.

    Raises:
        SpecError: If it does not, naming what was given and the way out.
    """

    def __post_init__(self) -> None:
        """Refuses what does not fit together.

        Raises:
            SpecError: Naming it, and the way out.
        """
        check_query(self)
        if self.emit in ("arrival", "final"):
            refuse_taken(frame(self.schema.empty_table()), self.spec.results)
        _ = self.reach, self.folds
        refuse_duplicates(self.output.names)

    @cached_property
    def output(self) -> pa.Schema:
        """The columns of the answers."""
        empty = self.waiting.empty_table()
        if self.emit == "slide":
            table = answer_none(self)
        else:
            answers = self.answer_moments(Cover(), self.moments(empty))
            table = self.answered(empty, answers)
        return self.marked(table).schema

    def given_back(self, late: pa.Table) -> pa.Table:
        """Late rows, without results."""
        table = self.arranged(late, self.ticks(late)).drop_columns(TIME)
        for name in self.spec.results:
            kind = self.output.field(name).type
            table = table.append_column(name, pa.nulls(len(late), kind))
        return flagged(self.marked(table), late=True)
