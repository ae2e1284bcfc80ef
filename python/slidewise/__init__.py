"""Exact sliding-window aggregates on event time, for data that arrives out of order.

- `Window`: one window in process, to insert into, evict from and query.
- `SharedWindow`: many ranges over one stream, answered together.
- `rolling`: rolling aggregates over a table (pandas, polars, Arrow).
- `hopping`: hopping, tumbling and session windows over a table, a row for each.
- `KeyedWindows`: the windows of `rolling` and `hopping` over a stream, for many keys.
- `follow`: answers in another process, from what a stream on Spark publishes.
- `Spec`: the windows and aggregations of these three, written once.
- `Features`: several Specs over one stream, such as one per kind of key.
- `Query`: a range and a slide, for `SharedWindow` and `hopping`.
- `audit`: features as they were served, beside those that their rows give.
- `explain`: how `rolling` and `hopping` compute a table, and the cost.
- `metrics.prometheus`, `metrics.opentelemetry`, of `slidewise.metrics`: exporters.
- `testing.check_stream`, of `slidewise.testing`: a stream cut at random, checked.
- the aggregations: `count`, `sum`, `mean`, `min`, `max`, ...; `rows` for n rows.
- `algorithms`: the structures of windows.

Example:
    >>> import pyarrow as pa, slidewise as sw
    >>> table = pa.table({"t": [1, 2, 5], "x": [10, 20, 30]})
    >>> out = sw.rolling(table, on="t", windows=[2, 9], aggs={"s": sw.sum("x")})
    >>> out["s_2"].to_pylist(), out["s_9"].to_pylist()
    ([10, 30, 30], [10, 30, 60])
"""

from typing import TYPE_CHECKING

from slidewise import aggregations as aggregations
from slidewise._core import Bloom, CountMin, __version__
from slidewise.aggregations import *  # noqa: F403 - all its names are exported
from slidewise.aggregations.compiled import native
from slidewise.aggregations.custom import aggregation
from slidewise.aggregations.laws import check_laws
from slidewise.errors import (
    EmptyWindowError,
    LawError,
    OutOfOrderError,
    ResultOverflowError,
    SlidewiseError,
    SnapshotError,
    SpecError,
    StaleResultError,
    WindowBusyError,
)
from slidewise.hints import unknown_name_error
from slidewise.keyed import KeyedWindows, follow
from slidewise.spec.durations import rows
from slidewise.spec.features import Features
from slidewise.spec.query import Query
from slidewise.spec.spec import Spec
from slidewise.spec.windows.calendar import calendar
from slidewise.spec.windows.cumulate import cumulate
from slidewise.spec.windows.delta import delta as delta  # also the aggregation
from slidewise.spec.windows.landmark import landmark
from slidewise.spec.windows.resolved import trailing
from slidewise.spec.windows.row_length import length
from slidewise.spec.windows.session import session
from slidewise.spec.windows.to_date import to_date
from slidewise.spec.windows.unbounded import unbounded
from slidewise.spec.windows.until import until
from slidewise.table.audit import audit
from slidewise.table.explain import explain
from slidewise.table.hopping import hopping
from slidewise.table.rolling import rolling
from slidewise.window.algorithms import algorithms
from slidewise.window.shared import SharedWindow
from slidewise.window.window import Window

__all__ = [
    "Bloom",
    "CountMin",
    "EmptyWindowError",
    "Features",
    "KeyedWindows",
    "LawError",
    "OutOfOrderError",
    "Query",
    "ResultOverflowError",
    "SharedWindow",
    "SlidewiseError",
    "SnapshotError",
    "Spec",
    "SpecError",
    "StaleResultError",
    "Window",
    "WindowBusyError",
    "__version__",
    "aggregation",
    "algorithms",
    "audit",
    "calendar",
    "check_laws",
    "cumulate",
    "explain",
    "follow",
    "hopping",
    "landmark",
    "length",
    "native",
    "rolling",
    "rows",
    "session",
    "to_date",
    "trailing",
    "unbounded",
    "until",
]
__all__ += aggregations.__all__


def __dir__() -> list[str]:
    """Lists the public names only."""
    return sorted(__all__)


if not TYPE_CHECKING:  # a type checker would accept every name

    def __getattr__(name: str) -> object:
        raise unknown_name_error(name, __all__)
