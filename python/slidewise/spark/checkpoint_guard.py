"""What a checkpoint was made for. Spark itself notices no change of it."""

import json
from dataclasses import asdict, dataclass
from typing import Any, Self

from slidewise.errors import Argument, SpecError
from slidewise.keyed.stream_query import StreamQuery

__all__ = ["GUARDED", "Guard"]

# The bucket of its own in which the guard lies.
GUARDED = -1
_FORMAT = 3


@dataclass(frozen=True, slots=True)
class Guard:
    """What must not change while a checkpoint lives.

    Attributes:
        format: The version of the layout of state.
        spec: The spec as text; its hash would say less in a message.
        emit: When rows are answered.
        then_by: What orders rows of equal time.
        deletes: What says which rows take others back.
        corrects: Whether late rows change answers that were given.
        columns: Names and types of the stream's columns.
        buckets: Into how many groups keys are hashed.
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
    def of(cls, job: StreamQuery, buckets: int) -> Self:
        """The guard of a job."""
        columns = tuple((field.name, str(field.type)) for field in job.schema)
        return cls(
            format=_FORMAT,
            spec=job.spec.canonical(),
            emit=job.emit,
            then_by=str(job.then_by),
            deletes=job.deletes,
            corrects=job.corrects,
            columns=columns,
            buckets=buckets,
        )

    def to_bytes(self) -> bytes:
        """For the state."""
        return json.dumps(asdict(self), separators=(",", ":")).encode()

    @classmethod
    def check(cls, ours: bytes, theirs: bytes | None) -> None:
        """Refuses to go on with the state of another job.

        Raises:
            SpecError: Naming what changed.
        """
        if theirs is None or ours == theirs:
            return
        before, now = _parts(theirs), _parts(ours)
        if before["format"] != now["format"]:
            raise SpecError(
                "this checkpoint was made by another version of slidewise (format "
                f"{before['format']} of its state, and this one has {now['format']}): "
                "go on with that version, or give a new checkpointLocation (and the "
                "rows so far as initial=)"
            )
        changed = _columns(before.pop("columns"), now.pop("columns"))
        changed += [
            f"{name} was {_told(before.get(name))}, and is {_told(value)}"
            for name, value in now.items()
            if before.get(name) != value
        ]
        raise SpecError(
            "this checkpoint was made for another query: ",
            "; ".join(changed),
            ". A checkpoint goes on with the query it was made with: restore that (of "
            "a source that has changed, select() and cast() the columns as they were), "
            "or give a new checkpointLocation (and the rows so far as initial=). What "
            "may change: ",
            Argument("late"),
            ", ",
            Argument("late_rows"),
            " between 'drop' and 'flag', ",
            Argument("marker"),
            " and the trigger.",
        )


def _parts(guard: bytes) -> dict[str, Any]:
    """What is compared, the parts of the spec one by one."""
    parts: dict[str, Any] = json.loads(guard)
    spec: dict[str, Any] = json.loads(parts.pop("spec"))
    return {**parts, **spec}


def _columns(before: list[tuple[str, str]], now: list[tuple[str, str]]) -> list[str]:
    """What became of the columns."""
    was, here = dict(before), dict(now)
    found = [f"column {name!r} is gone" for name in was if name not in here]
    for name, kind in here.items():
        if name not in was:
            found.append(f"column {name!r} ({kind}) is new")
        elif was[name] != kind:
            found.append(f"column {name!r} was {was[name]}, and is {kind}")
    if not found and before != now:
        found.append(f"the columns' order was {', '.join(was)}")
    return found


def _told(part: Any) -> str:
    """A part as text: of aggregations and windows what is set."""
    if not isinstance(part, list):
        return str(part)
    return f"[{', '.join(_short(item) for item in part)}]"


def _short(item: Any) -> str:
    if isinstance(item, list) and len(item) == 2 and isinstance(item[1], dict):
        name, agg = item
        kind = agg.get("kind", "")
        rest = {key: value for key, value in agg.items() if key != "kind"}
        told = ", ".join(f"{key}={value}" for key, value in rest.items())
        return f"{name}={kind}({told})"
    if isinstance(item, dict) and "label" in item:
        rest = {key: value for key, value in item.items() if value and key != "label"}
        told = ", ".join(f"{key}={value}" for key, value in rest.items())
        return f"{item['label']} ({told})"
    return str(item)
