"""`Sink`: what the sinks share: keys, columns, and reading the result of a key."""

import base64
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

import pyarrow as pa

from slidewise.errors import SlidewiseError, SpecError
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
_KEYS = b"keys"


@dataclass(frozen=True)
class Layout:
    """The columns of stored results.

    Attributes:
        schema: Names and types.
        keys: The columns that identify a row.
    """

    schema: pa.Schema
    keys: tuple[str, ...]

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
        from slidewise.spark.marks import key_names
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
        return cls(pa.schema([(one.name, one.type) for one in fields]), keys)

    def to_text(self) -> str:
        """Writes the layout as text."""
        schema = self.schema.with_metadata({_KEYS: json.dumps(self.keys)})
        return base64.b64encode(schema.serialize()).decode()

    @classmethod
    def from_text(cls, text: str | bytes) -> Self:
        """Reads the text of `to_text`."""
        schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))
        keys = json.loads(schema.metadata[_KEYS])
        return cls(schema.remove_metadata(), tuple(keys))

    def rows(self, batch: pa.RecordBatch) -> pa.Table:
        """A batch in the types of the layout: times of other zones are in UTC."""
        return pa.Table.from_batches([batch]).cast(self.schema)

    def key(self, given: Any) -> list[Any]:
        """The values of a key, in the types of their columns; zeros are positive.

        Raises:
            SpecError: If it is no key.
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

    def get(self, key: Any) -> dict[str, Any] | None:
        """Returns the last result of a key.

        Args:
            key: A bare value, a tuple, or a mapping from columns to values where keys
                are several columns.

        Returns:
            dict of all columns to values; None if the key has no result.

        Raises:
            SpecError: If it is not a key of the results, or nothing is stored yet.
            SlidewiseError: If the server cannot be reached.

        Cost: one request, after a first one for the columns.
        """
        if self._known is None:
            self._known = self._read_layout()
        return self._read(self._known, self._known.key(key))

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
