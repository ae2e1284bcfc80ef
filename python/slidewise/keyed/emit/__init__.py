"""What a stream emits: results per row, per key, or per window."""

from slidewise.keyed.answer import FromEntries, FromRows
from slidewise.keyed.emit.emitter import Emitter
from slidewise.keyed.emit.nothing import Nothing
from slidewise.keyed.emit.per_key import PerKey
from slidewise.keyed.emit.per_row import AsFinal, OnArrival
from slidewise.keyed.emit.per_window import PerWindow
from slidewise.keyed.shard import Shard

__all__ = ["Emitter", "emitter_of"]


def __dir__() -> list[str]:
    """Lists the public names only."""
    return sorted(__all__)


def emitter_of(shard: Shard, answer: FromEntries | FromRows) -> Emitter:
    """The emitter of `emit=`."""
    emit = shard.query.emit
    if emit == "arrival":
        return OnArrival(shard, answer)
    if emit == "final":
        return AsFinal(shard)
    if emit == "none":
        return Nothing(shard)
    return PerWindow(shard, answer) if emit == "slide" else PerKey(shard, answer)
