"""The guard of a checkpoint: refuses to continue it with another query.

Spark itself does not compare the query with its checkpoint.
"""

import json
from dataclasses import asdict, dataclass
from typing import Any, Self

from slidewise.errors import Argument, SpecError
from slidewise.keyed.formats import STATE_FORMAT
from slidewise.keyed.query import KeyedQuery

__all__ = ["GUARD_BUCKET", "Guard"]

# The bucket whose state is the guard.
GUARD_BUCKET = -1


@dataclass(frozen=True, slots=True)
class Guard:
    """The format and the query, which must not change while a checkpoint exists.

    The spec, the names and the types are text, so that a message can name a change.
    """

    format: int
    spec: str
    emit: str
    then_by: str
    deletes: str | None
    corrects: bool
    columns: tuple[tuple[str, str], ...]
    buckets: int

    @classmethod
    def of(cls, query: KeyedQuery, buckets: int) -> Self:
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
    def check(cls, query: bytes, state: bytes | None) -> None:
        """Checks that the state was made for this query.

        Args:
            query: The guard of the query.
            state: The guard in the state; None for new state.

        Raises:
            SpecError: Naming what changed.
        """
        if state is None or query == state:
            return
        before, now = _fields(state), _fields(query)
        if before["format"] != now["format"]:
            raise SpecError(
                "this checkpoint was made by another version of slidewise (format "
                f"{before['format']} of its state, and this one has {now['format']}): "
                "continue with that version, or give a new checkpointLocation (and the "
                "rows so far as initial=)"
            )
        changed = _column_changes(before.pop("columns"), now.pop("columns"))
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
            "initial=). What may change: ",
            Argument("late"),
            ", ",
            Argument("late_rows"),
            " between 'drop' and 'flag', ",
            Argument("changed"),
            ", ",
            Argument("ahead"),
            ", ",
            Argument("marker"),
            " and the trigger.",
        )


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
