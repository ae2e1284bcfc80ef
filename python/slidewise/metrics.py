"""Metrics of streams for Prometheus and OpenTelemetry.

- `prometheus`: registers them with `prometheus_client`, and serves them if asked.
- `opentelemetry`: creates their instruments with OpenTelemetry's API.

Both read `KeyedWindows`, what `follow` returns, and the `Listener` of
`slidewise.spark` when they are scraped: rows cost nothing. From then on a query costs
one to two microseconds more, to count how long it took and how old its rows were. The
names are, with `_` as `.` and without units for OpenTelemetry:

- `slidewise_rows_late_total`, `slidewise_rows_ahead_total`,
  `slidewise_rows_duplicate_total`;
- `slidewise_state_bytes`;
- `slidewise_watermark_lag_seconds`, `slidewise_latest_lag_seconds`: the clock minus the
  watermark, and minus the latest time of the rows; not for integer times and durations;
- `slidewise_query_duration_seconds`: a histogram of the calls of `query` and
  `query_many`;
- `slidewise_freshness_seconds`: a histogram of the clock minus the latest time of the
  rows, at the end of each of these calls, or of each micro-batch with rows;
- of queries on Spark also `slidewise_batch_duration_seconds`, a histogram, and the
  counters `slidewise_rows_total`, `slidewise_answers_total`,
  `slidewise_corrections_total`, `slidewise_batches_total`,
  `slidewise_operator_seconds_total`, `slidewise_state_read_bytes_total` and
  `slidewise_state_written_bytes_total`.

Each has the label `stream`: the name that a mapping gives, that of Spark's query, or
"name/query" for a `Listener` in a mapping, so that no two streams have one label.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from time import monotonic, time
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from slidewise.errors import Argument, SpecError
from slidewise.measuring import Histogram, Reading

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, Meter, Observation
    from prometheus_client import CollectorRegistry
    from prometheus_client.metrics_core import Metric

__all__ = ["PrometheusMetrics", "opentelemetry", "prometheus"]

# The seconds for which a reading serves all instruments of a collection.
_COLLECTION = 0.1


class Streams(Protocol):
    """What has metrics: `KeyedWindows`, a follower, or a `Listener`."""

    def _measured(self) -> list[Reading]: ...


class _Kind(NamedTuple):
    """A metric.

    Attributes:
        key: What readings call it.
        name: Its name, without "slidewise".
        unit: "seconds", "bytes", or "" for a number.
        text: What it is.
    """

    key: str
    name: str
    unit: str
    text: str

    @property
    def for_prometheus(self) -> str:
        """The name in Prometheus, without "_total"."""
        return "_".join(filter(None, ("slidewise", self.name, self.unit)))

    @property
    def for_opentelemetry(self) -> str:
        """The name in OpenTelemetry."""
        return f"slidewise.{self.name.replace('_', '.')}"


_COUNTERS = (
    _Kind("late", "rows_late", "", "Rows that the watermark had passed"),
    _Kind("ahead", "rows_ahead", "", "Rows that were ahead of the clock"),
    _Kind("duplicates", "rows_duplicate", "", "Rows that unique_by= dropped"),
    _Kind("rows", "rows", "", "Rows that were ingested"),
    _Kind("answers", "answers", "", "Rows that were emitted"),
    _Kind("corrections", "corrections", "", "Emitted rows that correct others"),
    _Kind("batches", "batches", "", "Micro-batches"),
    _Kind("seconds", "operator", "seconds", "Time in the operator, over all tasks"),
    _Kind("bytes_read", "state_read", "bytes", "State that was read"),
    _Kind("bytes_written", "state_written", "bytes", "State that was written"),
)
_GAUGES = (
    _Kind("state_bytes", "state", "bytes", "Rows and their index"),
    _Kind("watermark", "watermark_lag", "seconds", "The clock minus the watermark"),
    _Kind("latest", "latest_lag", "seconds", "The clock minus the latest time"),
)
_HISTOGRAMS = (
    _Kind("query_duration", "query_duration", "seconds", "Calls of queries"),
    _Kind("batch_duration", "batch_duration", "seconds", "Micro-batches"),
    _Kind("freshness", "freshness", "seconds", "The clock minus the latest time, seen"),
)
_LAGS = ("watermark", "latest")


class _Readings:
    """Reads streams, under their names.

    Args:
        streams: As for `prometheus`.
        clock: Returns seconds since 1970.
    """

    def __init__(self, streams: Any, clock: Callable[[], float]) -> None:
        named = streams if isinstance(streams, Mapping) else {"": streams}
        if not callable(clock):
            raise SpecError(
                Argument("clock", clock), " is no function that returns seconds"
            )
        for name, each in named.items():
            if not _is_label(name):
                raise SpecError(
                    Argument("streams"),
                    f" names a stream {name!r:.60}: a name is a str of valid Unicode, "
                    "such as 'clicks'",
                )
            if not hasattr(each, "_measured"):
                raise SpecError(
                    Argument("streams"),
                    " takes KeyedWindows, what sw.follow returns or a Listener, or a "
                    f"mapping from names to these; got {each!r:.60}",
                )
        self._streams: dict[str, Streams] = dict(named)
        self._clock = clock
        self._last: tuple[float, list[Reading]] = (float("-inf"), [])
        self.read()

    def read(self) -> list[Reading]:
        """Reads all streams, with lags in place of times."""
        now, found = self._clock(), []
        for name, stream in self._streams.items():
            for reading in stream._measured():
                values = {
                    key: now - value if key in _LAGS else value
                    for key, value in reading.values.items()
                }
                label = "/".join(filter(None, (name, reading.stream)))
                found.append(reading._replace(stream=label, values=values))
        return found

    def recent(self) -> list[Reading]:
        """As `read`, or what it gave just now: for the instruments of a collection."""
        if monotonic() - self._last[0] > _COLLECTION:
            self._last = (monotonic(), self.read())
        return self._last[1]


def _is_label(name: object) -> bool:
    """Whether a name can be the value of a label, which is text in UTF-8.

    Example:
        >>> _is_label("é"), _is_label(3), _is_label(chr(0xD800))
        (True, False, False)
    """
    return isinstance(name, str) and name == name.encode(errors="replace").decode()


def prometheus(
    streams: Streams | Mapping[str, Streams],
    *,
    registry: "CollectorRegistry | None" = None,
    port: int | None = None,
    host: str = "127.0.0.1",
    clock: Callable[[], float] = time,
) -> "PrometheusMetrics":
    """Registers the metrics of streams with `prometheus_client`.

    Needs it: `pip install 'slidewise[prometheus]'`.

    Args:
        streams: `KeyedWindows`, what `slidewise.follow` returns, or a `Listener` of
            `slidewise.spark`; or a mapping from names to these. Register all streams of
            a process in one call.
        registry: A `prometheus_client.CollectorRegistry`. Default: that of the process.
        port: A port at which a thread serves the registry; 0 for any free one. Default:
            none does, and the service that has the registry exports it.
        host: The address of that port. "0.0.0.0" is that of all interfaces.
        clock: Returns seconds since 1970.

    Raises:
        SpecError: If an argument is wrong, the registry has these metrics already, or
            the port cannot be used.
        ImportError: If `prometheus_client` is missing.

    Cost: a scrape is O(pages) per stream, and waits for a batch that is being ingested.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> from prometheus_client import CollectorRegistry
        >>> from slidewise.metrics import prometheus
        >>> w = sw.KeyedWindows(on="t", windows=5, aggs={"n": sw.count()})
        >>> registry = CollectorRegistry()
        >>> exported = prometheus({"clicks": w}, registry=registry)
        >>> w.ingest(pa.table({"t": [3, 9]}))
        >>> w.advance()
        >>> w.ingest(pa.table({"t": [8]}))
        >>> registry.get_sample_value("slidewise_rows_late_total", {"stream": "clicks"})
        1
    """
    try:
        return PrometheusMetrics(streams, registry, port, host, clock)
    except ModuleNotFoundError as error:
        raise ImportError(
            f"prometheus() needs prometheus_client ({error}): "
            "pip install 'slidewise[prometheus]'"
        ) from error


class PrometheusMetrics:
    """The metrics of streams in a registry; `prometheus` makes it.

    Attributes:
        port: The port that is served; None for none.
    """

    def __init__(
        self,
        streams: Any,
        registry: "CollectorRegistry | None",
        port: int | None,
        host: str,
        clock: Callable[[], float],
    ) -> None:
        from prometheus_client import REGISTRY, CollectorRegistry, start_http_server

        if not isinstance(registry, CollectorRegistry | None):
            raise SpecError(
                Argument("registry", registry),
                " is not a prometheus_client.CollectorRegistry",
            )
        self._readings = _Readings(streams, clock)
        self._registry = REGISTRY if registry is None else registry
        self._server: Any = None
        self._is_closed = False
        self.port: int | None = None
        try:
            self._registry.register(self)
        except ValueError as error:
            raise SpecError(
                "the registry has metrics of slidewise already: register all streams "
                "in one call, prometheus({name: windows, ...}), or close() those before"
            ) from error
        if port is None:
            return
        try:
            self._server, _ = start_http_server(port, host, self._registry)
        except (OSError, OverflowError, TypeError) as error:
            self._registry.unregister(self)
            raise SpecError(
                Argument("port", port),
                f" cannot be used on {host!r} ({error}): give another, or 0 for any "
                "free one",
            ) from error
        self.port = self._server.server_port

    def describe(self) -> Iterator["Metric"]:
        """The metrics without values, by whose names the registry finds doubles."""
        return self._families([])

    def collect(self) -> Iterator["Metric"]:
        """The metrics, for the registry."""
        return self._families(self._readings.read())

    def close(self) -> None:
        """Takes the metrics out of the registry, and ends the thread of `port=`.

        Does nothing if it was called before.
        """
        if self._is_closed:
            return
        self._is_closed = True
        self._registry.unregister(self)
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()

    def __enter__(self) -> "PrometheusMetrics":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _families(self, readings: Iterable[Reading]) -> Iterator["Metric"]:
        from prometheus_client.core import (
            CounterMetricFamily,
            GaugeMetricFamily,
            HistogramMetricFamily,
        )

        for family, kinds in (
            (CounterMetricFamily, _COUNTERS),
            (GaugeMetricFamily, _GAUGES),
        ):
            for kind in kinds:
                found = family(kind.for_prometheus, kind.text, labels=["stream"])
                for reading in readings:
                    if kind.key in reading.values:
                        found.add_metric([reading.stream], reading.values[kind.key])
                yield found
        for kind in _HISTOGRAMS:
            of_kind = HistogramMetricFamily(
                kind.for_prometheus, kind.text, labels=["stream"]
            )
            for reading in readings:
                if kind.key in reading.histograms:
                    buckets, total = _buckets(reading.histograms[kind.key])
                    of_kind.add_metric([reading.stream], [*buckets.items()], total)
            yield of_kind


def _buckets(histogram: Histogram) -> tuple[dict[str, int], float]:
    """The number of values up to each bound, as Prometheus writes it, and their sum."""
    counts, total = histogram.read()
    bounds = [*map(repr, histogram.bounds), "+Inf"]
    return dict(zip(bounds, counts, strict=True)), total


def opentelemetry(
    streams: Streams | Mapping[str, Streams],
    *,
    meter: "Meter | None" = None,
    clock: Callable[[], float] = time,
) -> None:
    """Creates the instruments of streams with OpenTelemetry's API.

    Needs it: `pip install 'slidewise[opentelemetry]'`. Where the metrics go is set by
    its SDK in the application. All instruments are observed when they are collected. A
    histogram is three counters: `bucket`, with the attribute `le` as in Prometheus,
    `count`, and `sum`; so a query costs no call of the SDK.

    Args:
        streams: As for `prometheus`.
        meter: An `opentelemetry.metrics.Meter`. Default: the global provider's, with
            the name "slidewise". Observed until its provider shuts down: make one call.
        clock: Returns seconds since 1970.

    Raises:
        SpecError: If an argument is wrong.
        ImportError: If `opentelemetry-api` is missing.

    Cost: as for `prometheus`, per collection.

    Example:
        >>> import slidewise as sw
        >>> from slidewise.metrics import opentelemetry
        >>> w = sw.KeyedWindows(on="t", windows=5, aggs={"n": sw.count()})
        >>> opentelemetry({"clicks": w})
    """
    try:
        from opentelemetry.metrics import Meter, Observation, get_meter
    except ModuleNotFoundError as error:
        raise ImportError(
            f"opentelemetry() needs opentelemetry-api ({error}): "
            "pip install 'slidewise[opentelemetry]'"
        ) from error

    if not isinstance(meter, Meter | None):
        raise SpecError(
            Argument("meter", meter), " is not an opentelemetry.metrics.Meter"
        )
    readings = _Readings(streams, clock)
    made = get_meter("slidewise") if meter is None else meter
    units = {"seconds": "s", "bytes": "By", "": "1"}

    def callback(
        observed: Callable[[Reading], Iterable[tuple[float, dict[str, str]]]],
    ) -> "list[Callable[[CallbackOptions], Iterable[Observation]]]":
        """The observations of all streams."""

        def observe(_: "CallbackOptions") -> Iterator["Observation"]:
            for reading in readings.recent():
                for value, labels in observed(reading):
                    yield Observation(value, {"stream": reading.stream, **labels})

        return [observe]

    for create, kinds in (
        (made.create_observable_counter, _COUNTERS),
        (made.create_observable_gauge, _GAUGES),
    ):
        for kind in kinds:
            create(
                kind.for_opentelemetry,
                callback(_value_of(kind.key)),
                units[kind.unit],
                kind.text,
            )
    for kind in _HISTOGRAMS:
        for part, unit in (("bucket", "1"), ("count", "1"), ("sum", "s")):
            made.create_observable_counter(
                f"{kind.for_opentelemetry}.{part}",
                callback(_part_of(kind.key, part)),
                unit,
                f"{kind.text}: {part}",
            )


_Values = Callable[[Reading], Iterator[tuple[float, dict[str, str]]]]


def _value_of(key: str) -> _Values:
    """Gives the value of a metric, if a reading has it."""

    def value(reading: Reading) -> Iterator[tuple[float, dict[str, str]]]:
        if key in reading.values:
            yield reading.values[key], {}

    return value


def _part_of(key: str, part: str) -> _Values:
    """Gives a part of a histogram, if a reading has it: a value per bucket, or one."""

    def values(reading: Reading) -> Iterator[tuple[float, dict[str, str]]]:
        if key not in reading.histograms:
            return
        buckets, total = _buckets(reading.histograms[key])
        if part == "bucket":
            yield from ((count, {"le": bound}) for bound, count in buckets.items())
        else:
            yield (buckets["+Inf"] if part == "count" else total), {}

    return values
