"""`Sink`: what the sinks share: keys, columns, and reading the result of a key."""

import base64
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

import pyarrow as pa

from slidewise.errors import (
    Argument,
    SlidewiseError,
    SpecError,
    StaleResultError,
)
from slidewise.keyed.points import key_values
from slidewise.spark.sinks.json_values import dumps, encoder
from slidewise.spec.arguments import check_columns

__all__ = [
    "COPIED",
    "Layout",
    "Sink",
    "check_url",
    "failures",
    "gap",
    "other_query",
    "query_of",
    "unsigned_zero",
]

# What a task returns: the query that it ran for, and the number of its rows.
COPIED = "query string, rows long"
# The names of key columns, and of those of `valid_until=True`, in a stored schema.
_KEYS, _UNTIL = b"keys", b"valid_until"


@dataclass(frozen=True)
class Layout:
    """The columns of stored results.

    Attributes:
        schema: Names and types.
        keys: The columns that identify a row.
        until: The columns of `valid_until=True`.
    """

    schema: pa.Schema
    keys: tuple[str, ...]
    until: tuple[str, ...] = ()

    @classmethod
    def of(cls, results: Any, by: tuple[str, ...], call: str) -> Self:
        """Returns the layout of a DataFrame of results.

        Args:
            results: The DataFrame.
            by: The key columns; if empty, those that slidewise has marked.
            call: The call that takes `by=`, for messages.

        Raises:
            SpecError: If there are no key columns, or names are taken twice.
        """
        from slidewise.spark.marks import key_names, until_names
        from slidewise.spark.schemas import arrow_schema

        keys, fields = by or key_names(results), list(arrow_schema(results))
        if not keys:
            raise SpecError(
                "the results have no key columns, by which a row replaces another: "
                f"name them, as in {call}"
            )
        names = [field.name for field in fields]
        for name in keys:
            if name not in names:
                raise SpecError(
                    f"by= names {name!r}, and the results have {', '.join(names)}"
                )
        for name in names:
            if names.count(name) > 1:
                raise SpecError(f"the results have two columns {name!r}: rename one")
        schema = pa.schema([(one.name, one.type) for one in fields])
        return cls(schema, keys, until_names(results))

    def to_text(self) -> str:
        """Writes the layout as text."""
        names = {_KEYS: json.dumps(self.keys), _UNTIL: json.dumps(self.until)}
        schema = self.schema.with_metadata(names)
        return base64.b64encode(schema.serialize()).decode()

    @classmethod
    def from_text(cls, text: str | bytes) -> Self:
        """Reads the text of `to_text`."""
        schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))
        keys, until = (json.loads(schema.metadata[name]) for name in (_KEYS, _UNTIL))
        return cls(schema.remove_metadata(), tuple(keys), tuple(until))

    def rows(self, batch: pa.RecordBatch) -> pa.Table:
        """A batch in the types of the layout: times of other zones are in UTC."""
        return pa.Table.from_batches([batch]).cast(self.schema)

    def key(self, given: Any) -> list[Any]:
        """The values of a key, in the types of their columns; zeros are positive.

        Raises:
            SpecError: If it is not a key.
        """
        found = []
        for name, value in key_values(self.keys, given).items():
            kind = self.schema.field(name).type
            try:
                found.append(unsigned_zero(pa.scalar(value, kind).as_py()))
            except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
                raise SpecError(
                    f"{value!r} is not a key of column {name!r}, which holds {kind}"
                ) from error
        return found

    def refuse_stale(self, row: Mapping[str, Any], at: Any) -> None:
        """Checks that results are valid at a time.

        Raises:
            StaleResultError: If one has changed by then.
            SpecError: If the results do not say until when they are valid.
        """
        if not self.until:
            raise SpecError(
                "the results do not say until when they are valid: leave out ",
                Argument("at"),
                ", or give rolling(..., valid_until=True)",
            )
        for name in self.until:
            end = row.get(name)
            if (
                end is not None
                and end <= pa.scalar(at, self.schema.field(name).type).as_py()
            ):
                raise StaleResultError(
                    f"{name} is {end}, and the result is asked at {at}"
                )

    def key_text(self, values: Sequence[Any]) -> str:
        """A key as JSON: a list of its values."""
        kinds = [self.schema.field(name).type for name in self.keys]
        pairs = zip(kinds, values, strict=True)
        return dumps([encoder(kind)(value) for kind, value in pairs])


def unsigned_zero(value: Any) -> Any:
    """The value; of -0.0, which is the same key, 0.0."""
    return value + 0.0 if isinstance(value, float) else value


class Sink(ABC):
    """A function for `foreachBatch` that keeps the last result of each key.

    Args:
        by: The key columns; by default those of the results.
    """

    def __init__(self, by: str | Sequence[str] | None) -> None:
        self._by = check_columns(by, "by")
        self._prepared: Layout | None = None
        self._known: Layout | None = None

    def __call__(self, results: Any, batch: int) -> None:
        """Writes a micro-batch, as Spark calls it."""
        layout = self._layout(results)
        if layout != self._prepared:
            self.prepare(results)
        self._write(layout, results, int(batch))

    def prepare(self, results: Any) -> None:
        """Creates what the store lacks and checks what it has, before the query starts.

        The first micro-batch does so, too.

        Args:
            results: DataFrame of results, streaming or not; it is not computed.

        Raises:
            SpecError: If the results have no key columns, or the store has others.
            SlidewiseError: If the server cannot be reached.
        """
        layout = self._layout(results)
        self._prepare(layout)
        self._prepared, self._known = layout, None

    def get(self, key: Any, at: Any = None) -> dict[str, Any] | None:
        """Returns the last result of a key.

        Args:
            key: A bare value, a tuple, or a mapping from columns to values where keys
                are several columns.
            at: A time at which the result must be valid, by the columns of
                `valid_until=True`. Rows that came since count with the next result.

        Returns:
            dict of all columns to values; None if the key has no result.

        Raises:
            SpecError: If it is not a key of the results, or nothing is stored yet.
            StaleResultError: If the result has changed by `at`, as rows have left.
            SlidewiseError: If the server cannot be reached.

        Cost: one request, after a first one for the columns.
        """
        if self._known is None:
            self._known = self._read_layout()
        row = self._read(self._known, self._known.key(key))
        if row is not None and at is not None:
            self._known.refuse_stale(row, at)
        return row

    @abstractmethod
    def _layout(self, results: Any) -> Layout:
        """The checked layout of results."""

    @abstractmethod
    def _prepare(self, layout: Layout) -> None:
        """Creates and checks what the store has."""

    @abstractmethod
    def _write(self, layout: Layout, results: Any, batch: int) -> None:
        """Writes a micro-batch."""

    @abstractmethod
    def _read_layout(self) -> Layout:
        """The layout of the stored results."""

    @abstractmethod
    def _read(self, layout: Layout, key: list[Any]) -> dict[str, Any] | None:
        """The last result of a key."""


def query_of(copied: Sequence[Any]) -> str | None:
    """The id of the query that tasks ran for; None outside of a stream."""
    return next((row.query for row in copied if row.query is not None), None)


def check_url(url: object, name: str, schemes: Sequence[str]) -> str:
    """Checks the scheme of a URL, which a message may show; the rest may be secret."""
    scheme = url.partition("://")[0] if isinstance(url, str) and "://" in url else None
    if isinstance(url, str) and scheme in schemes:
        return url
    what = repr(url)[:40] if scheme is None else f"the scheme {scheme!r}"
    raise SpecError(
        f"{name}() takes a url such as '{schemes[0]}://localhost', got {what}"
    )


@contextmanager
def failures(what: str, kind: type[Exception]) -> Iterator[None]:
    """Raises the errors of a client as one line."""
    try:
        yield
    except kind as error:
        text = " ".join(str(error).split()) or type(error).__name__
        raise SlidewiseError(f"{what}: {text}") from error


def gap(last: int, batch: int, way_out: str) -> SpecError:
    """The error of micro-batches that the store does not have."""
    return SpecError(
        f"the store has results up to micro-batch {last}, and this is {batch}: it has "
        "lost what was written, or another sink got those between. Begin anew with "
        f"another checkpoint and initial=, or go on without them: {way_out}"
    )


def other_query(what: str, way_out: str) -> SpecError:
    """The error of a store that another query writes."""
    return SpecError(
        f"{what} holds the results of another checkpoint: give another one, or begin "
        f"anew after {way_out}"
    )
