"""The guard of a checkpoint: refuses to continue it with another query.

Spark itself does not compare the query with its checkpoint.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

from slidewise.errors import Argument, SpecError
from slidewise.keyed.formats import STATE_FORMAT
from slidewise.keyed.growth import beyond
from slidewise.keyed.query import KeyedQuery
from slidewise.spec.spec import derive

__all__ = ["GUARD_BUCKET", "Guard", "check_format", "continued"]

# The bucket whose state is the guard.
GUARD_BUCKET = -1


@dataclass(frozen=True, slots=True)
class Guard:
    """The format and the query, which must not change while a checkpoint exists.

    The spec, the names and the types are text, so that a message can name a change.
    In state, buckets are their number; on the driver, the most that there may be, or
    None.
    """

    format: int
    spec: str
    emit: str
    then_by: str
    deletes: str | None
    corrects: bool
    columns: tuple[tuple[str, str], ...]
    buckets: int | None

    @classmethod
    def of(cls, query: KeyedQuery, buckets: int | None) -> Self:
        """Returns the guard of a query."""
        columns = tuple((field.name, str(field.type)) for field in query.schema)
        return cls(
            format=STATE_FORMAT,
            spec=query.spec.canonical(),
            emit=query.emit,
            then_by=str(query.then_by),
            deletes=query.deletes,
            corrects=query.corrects,
            columns=columns,
            buckets=buckets,
        )

    def to_bytes(self) -> bytes:
        """Encodes the guard as JSON."""
        return json.dumps(asdict(self), separators=(",", ":")).encode()

    @classmethod
    def check(cls, query: bytes, state: bytes | None, reason: str = "") -> None:
        """Checks that the state was made for this query.

        Args:
            query: The guard of the query.
            state: The guard in the state; None for new state.
            reason: Why a query that has grown cannot go on with it.

        Raises:
            SpecError: Naming what changed.
        """
        if state is None or query == state:
            return
        before, now = _fields(state), _fields(query)
        check_format(before["format"])
        changed = [reason] if reason else []
        changed += _column_changes(before.pop("columns"), now.pop("columns"))
        changed += [
            f"{name} was {_format(before.get(name))}, and is {_format(value)}"
            for name, value in now.items()
            if before.get(name) != value
        ]
        raise SpecError(
            "this checkpoint was made for another query: ",
            "; ".join(changed),
            ". A checkpoint continues the query that it was made for: restore that "
            "query (if the source has changed, select() and cast() the columns as they "
            "were), or give a new checkpointLocation (and the rows so far as "
            "initial=). slidewise.spark.migrate makes one for other buckets, and for "
            "windows and aggregations of the rows and columns that it keeps. What may "
            "change: windows no longer than the longest and aggregations of kept "
            "columns may be added, and ",
            Argument("late"),
            ", ",
            Argument("late_rows"),
            " between 'drop' and 'flag', ",
            Argument("changed"),
            ", ",
            Argument("valid_until"),
            ", ",
            Argument("ahead"),
            ", the length of ",
            Argument("idle"),
            ", ",
            Argument("marker"),
            " and the trigger.",
        )


def check_format(found: int) -> None:
    """Checks the format of the state in a checkpoint.

    Raises:
        SpecError: If it is that of another version.
    """
    if found != STATE_FORMAT:
        raise SpecError(
            "this checkpoint was made by another version of slidewise (format "
            f"{found} of its state, and this one has {STATE_FORMAT}): continue with "
            "that version, or give a new checkpointLocation (and the rows so far as "
            "initial=)"
        )


def continued(
    query: KeyedQuery, guard: bytes, state: bytes | None, kept: Sequence[str] | None
) -> KeyedQuery:
    """The query that goes on with some state, whose pages may have other columns.

    Args:
        query: The query. It may have more windows and aggregations than the one that
            made the state, as far as rows and columns were kept.
        guard: Its guard.
        state: The guard in the state; None for new state.
        kept: The columns of the pages, if an earlier query chose them.

    Raises:
        SpecError: Naming what changed.
    """
    if state is None or state == guard:
        return query if kept is None else replace(query, kept=tuple(kept))
    before = _earlier(query, guard, state)
    if before is None:
        Guard.check(guard, state)
        raise AssertionError("guards differ in what they record")
    before = before if kept is None else replace(before, kept=tuple(kept))
    reason = beyond(before, query.spec, before.reach + before.allowance) or ""
    # Only migrate sets the timers of buckets without rows.
    timed = query.emit in ("change", "slide")
    if timed and before.spec.windows != query.spec.windows:
        reason = reason or f"with emit={query.emit!r} only migrate adds windows"
    if reason:
        Guard.check(guard, state, reason)
    return replace(query, kept=before.stored_columns)


def _earlier(query: KeyedQuery, guard: bytes, state: bytes) -> KeyedQuery | None:
    """The query that a guard describes, if only windows and aggregations were added."""
    found, own = json.loads(state), json.loads(guard)
    text = found.pop("spec")
    before, now = json.loads(text), json.loads(own.pop("spec"))
    if found != own:
        return None
    parts = {}
    for name, values in (("windows", query.spec.windows), ("aggs", query.spec.aggs)):
        by_record = dict(zip(map(json.dumps, now[name]), values, strict=True))
        records = [json.dumps(record) for record in before[name]]
        if not by_record.keys() >= {*records}:
            return None
        parts[name] = tuple(by_record[record] for record in records)
    spec = derive(query.spec, **parts)
    return replace(query, spec=spec) if spec.canonical() == text else None


def _fields(guard: bytes) -> dict[str, Any]:
    """Decodes a guard; merges the fields of the spec into its own."""
    fields: dict[str, Any] = json.loads(guard)
    spec: dict[str, Any] = json.loads(fields.pop("spec"))
    return {**fields, **spec}


def _column_changes(
    before: list[tuple[str, str]], now: list[tuple[str, str]]
) -> list[str]:
    """Describes how the columns have changed."""
    was, present = dict(before), dict(now)
    found = [f"column {name!r} is gone" for name in was if name not in present]
    for name, kind in present.items():
        if name not in was:
            found.append(f"column {name!r} ({kind}) is new")
        elif was[name] != kind:
            found.append(f"column {name!r} was {was[name]}, and is {kind}")
    if not found and before != now:
        found.append(f"the columns' order was {', '.join(was)}")
    return found


def _format(value: Any) -> str:
    """Formats a field; of aggregations and windows the options that are set."""
    if not isinstance(value, list):
        return str(value)
    return f"[{', '.join(map(_format_item, value))}]"


def _format_item(item: Any) -> str:
    if isinstance(item, list) and len(item) == 2 and isinstance(item[1], dict):
        name, agg = item
        kind = agg.get("kind", "")
        options = _join({key: value for key, value in agg.items() if key != "kind"})
        return f"{name}={kind}({options})"
    if isinstance(item, dict) and "label" in item:
        label = item["label"]
        lengths = {k: v["label"] for k, v in item.items() if isinstance(v, dict)}
        given = {k: v for k, v in (item | lengths).items() if v and k != "label"}
        options = _join(given)
        return f"{label} ({options})"
    return str(item)


def _join(options: dict[str, Any]) -> str:
    return ", ".join(f"{key}={value}" for key, value in options.items())
