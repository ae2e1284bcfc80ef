"""Metrics of streams, read by the real `prometheus_client` and OpenTelemetry's SDK."""

import datetime as dt
import math
import os
import pickle
import re
import socket
import subprocess
import sys
import threading
from copy import copy
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pyarrow as pa
import pytest
import yaml
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from prometheus_client import REGISTRY, CollectorRegistry, generate_latest

import slidewise as sw
from slidewise.measuring import AGES, QUERIES, Histogram, Reading, observe
from slidewise.metrics import opentelemetry, prometheus

NOON = dt.datetime(2026, 6, 1, 12, tzinfo=dt.UTC)
AT_NOON = NOON.timestamp()


def cards(**options: Any) -> sw.KeyedWindows:
    """Windows of a card, with the latest row at noon, one late and one ahead."""
    windows = sw.KeyedWindows(
        on="t",
        by="card",
        windows="1h",
        aggs={"n": sw.count()},
        late="10m",
        ahead="1h",
        clock=lambda: NOON,
        schema={"t": pa.timestamp("us", "UTC"), "card": "string"},
        **options,
    )
    for minutes in (0, -20, 600):
        windows.ingest({"t": NOON + dt.timedelta(minutes=minutes), "card": "A"})
        windows.advance()
    return windows


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


def samples(registry: CollectorRegistry) -> dict[str, float]:
    """The samples of a registry with the label stream="a", buckets apart."""
    return {
        sample.name: sample.value
        for family in registry.collect()
        for sample in family.samples
        if sample.labels == {"stream": "a"}
    }


def observed(reader: InMemoryMetricReader) -> dict[str, dict[tuple[Any, ...], Any]]:
    """The values that OpenTelemetry collects, by name and attributes."""
    data = reader.get_metrics_data()
    assert data is not None
    return {
        metric.name: {
            tuple(sorted((point.attributes or {}).items())): point.value
            for point in metric.data.data_points
        }
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }


def test_metrics_of_keyed_windows() -> None:
    windows = cards()
    found = windows.metrics()
    assert found == {
        "late": 1,
        "ahead": 1,
        "duplicates": 0,
        "state_bytes": windows.nbytes,
        "latest": AT_NOON,
        "watermark": AT_NOON - 600,
    }


@pytest.mark.parametrize(
    ("kind", "time", "seconds"),
    [
        (pa.timestamp("s"), dt.datetime(1970, 1, 2), 86_400.0),
        (pa.timestamp("ns", "Asia/Tokyo"), NOON, AT_NOON),
        (pa.date32(), dt.date(1970, 1, 3), 172_800.0),
        (pa.date64(), dt.date(1970, 1, 3), 172_800.0),
        (pa.timestamp("us"), dt.datetime(1969, 12, 31, 23, 59), -60.0),
        (pa.int64(), 17, None),
        (pa.duration("s"), dt.timedelta(seconds=5), None),
    ],
)
def test_times_are_in_seconds_since_1970(
    kind: pa.DataType, time: Any, seconds: float | None
) -> None:
    """Integers and durations have no epoch, and no lag."""
    windows = sw.KeyedWindows(
        on="t", windows=sw.rows(2), aggs={"n": sw.count()}, schema={"t": kind}
    )
    assert "latest" not in windows.metrics()
    windows.ingest({"t": time})
    assert windows.metrics().get("latest") == seconds


def test_prometheus_reads_counts_lags_and_queries(registry: CollectorRegistry) -> None:
    windows = cards()
    exported = prometheus(
        {"a": windows}, registry=registry, clock=lambda: AT_NOON + 2.5
    )
    for _ in range(3):
        windows.query("A")
    windows.query_many({"card": ["A", "B"]})
    with pytest.raises(sw.SpecError):
        windows.query("A", windows="9h")
    found = samples(registry)
    assert found == {
        "slidewise_rows_late_total": 1,
        "slidewise_rows_ahead_total": 1,
        "slidewise_rows_duplicate_total": 0,
        "slidewise_state_bytes": windows.nbytes,
        "slidewise_watermark_lag_seconds": 602.5,
        "slidewise_latest_lag_seconds": 2.5,
        "slidewise_query_duration_seconds_count": 5,
        "slidewise_query_duration_seconds_sum": pytest.approx(0, abs=5),
        "slidewise_freshness_seconds_count": 5,
        "slidewise_freshness_seconds_sum": found["slidewise_freshness_seconds_sum"],
    }
    text = generate_latest(registry).decode()
    assert 'slidewise_query_duration_seconds_bucket{le="+Inf",stream="a"} 5.0' in text
    exported.close()
    assert not [*registry.collect()]


def test_freshness_is_the_age_of_the_latest_row_at_a_query(
    registry: CollectorRegistry,
) -> None:
    windows = sw.KeyedWindows(
        on="t",
        windows="1h",
        aggs={"n": sw.count()},
        schema={"t": pa.timestamp("us", "UTC")},
    )
    prometheus({"a": windows}, registry=registry)
    now = dt.datetime.now(dt.UTC)
    for minutes in (-45, 15):  # the second is of the future: as fresh as can be
        windows.ingest({"t": now + dt.timedelta(minutes=minutes)})
        windows.query()

    def at_most(bound: str) -> float | None:
        return registry.get_sample_value(
            "slidewise_freshness_seconds_bucket", {"stream": "a", "le": bound}
        )

    assert [*map(at_most, ("0.1", "1800.0", "3600.0", "+Inf"))] == [1, 1, 2, 2]
    total = samples(registry)["slidewise_freshness_seconds_sum"]
    assert 2_700 <= total < 2_760


def test_features_have_the_counts_of_one_and_the_bytes_of_all(
    registry: CollectorRegistry,
) -> None:
    specs = {
        name: sw.Spec(on="t", by=name, windows="1h", aggs={f"n_{name}": sw.count()})
        for name in ("card", "shop")
    }
    kinds = {"t": pa.timestamp("us"), "card": "string", "shop": "string"}
    windows = sw.KeyedWindows(sw.Features(**specs), schema=kinds)
    prometheus({"a": windows}, registry=registry, clock=lambda: 60.0)
    for second in (30, 20):
        time = dt.datetime(1970, 1, 1, 0, 0, second)
        windows.ingest({"t": time, "card": "A", "shop": "S"})
        windows.advance()
    answer = windows.query({"card": "A", "shop": "S"})
    assert {*answer.values()} == {1}
    found = samples(registry)
    assert found["slidewise_rows_late_total"] == 1
    assert found["slidewise_latest_lag_seconds"] == 30
    assert found["slidewise_state_bytes"] == windows.nbytes
    assert found["slidewise_query_duration_seconds_count"] == 1


def test_duplicates_are_counted(registry: CollectorRegistry) -> None:
    windows = cards(unique_by="t")
    windows.ingest({"t": [NOON, NOON], "card": ["B", "B"]})
    assert windows.metrics()["duplicates"] == 1
    prometheus({"a": windows}, registry=registry)
    assert samples(registry)["slidewise_rows_duplicate_total"] == 1


def test_opentelemetry_gives_the_same_numbers() -> None:
    reader = InMemoryMetricReader()
    meter = MeterProvider(metric_readers=[reader]).get_meter("test")
    windows = cards()
    opentelemetry({"a": windows}, meter=meter, clock=lambda: AT_NOON + 2.5)
    for _ in range(3):
        windows.query("A")
    found = observed(reader)
    of_a = (("stream", "a"),)
    assert found["slidewise.rows.late"] == {of_a: 1}
    assert found["slidewise.rows.ahead"] == {of_a: 1}
    assert found["slidewise.state"] == {of_a: windows.nbytes}
    assert found["slidewise.watermark.lag"] == {of_a: 602.5}
    assert found["slidewise.latest.lag"] == {of_a: 2.5}
    assert found["slidewise.query.duration.count"] == {of_a: 3}
    assert found["slidewise.freshness.count"] == {of_a: 3}
    buckets = found["slidewise.query.duration.bucket"]
    assert buckets[("le", "+Inf"), ("stream", "a")] == 3
    assert len(buckets) == len(QUERIES) + 1
    assert not [name for name in found if name.startswith("slidewise.batch")]


def test_two_exporters_count_a_query_once(registry: CollectorRegistry) -> None:
    reader = InMemoryMetricReader()
    windows = cards()
    prometheus({"a": windows}, registry=registry)
    opentelemetry(
        {"a": windows}, meter=MeterProvider(metric_readers=[reader]).get_meter("test")
    )
    windows.query("A")
    assert samples(registry)["slidewise_query_duration_seconds_count"] == 1
    assert [*observed(reader)["slidewise.query.duration.count"].values()] == [1]


@pytest.mark.parametrize("again", [copy, lambda x: pickle.loads(pickle.dumps(x))])
def test_a_copy_answers_by_itself_and_is_not_counted(
    registry: CollectorRegistry, again: Any
) -> None:
    windows = sw.KeyedWindows(on="t", by="k", windows=5, aggs={"n": sw.count()})
    windows.ingest({"t": [1], "k": ["A"]})
    prometheus({"a": windows}, registry=registry)
    twin = again(windows)
    twin.ingest({"t": [2], "k": ["A"]})
    assert (twin.query("A"), windows.query("A")) == ({"n_5": 2}, {"n_5": 1})
    assert samples(registry)["slidewise_query_duration_seconds_count"] == 1


def test_streams_in_one_registry_have_names(registry: CollectorRegistry) -> None:
    first, second = cards(), cards()
    exported = prometheus({"a": first, "b": second}, registry=registry)
    second.query("A")
    name = "slidewise_query_duration_seconds_count"
    found = [registry.get_sample_value(name, {"stream": each}) for each in "ab"]
    assert found == [0, 1]
    message = r"one call, prometheus\(\{name: windows, \.\.\.\}\)"
    with pytest.raises(sw.SpecError, match=message):
        prometheus({"c": first}, registry=registry)
    exported.close()
    with prometheus(first, registry=registry):
        late = registry.get_sample_value("slidewise_rows_late_total", {"stream": ""})
        assert late == 1
    assert not [*registry.collect()]


def test_queries_of_one_name_have_labels_of_their_own(
    registry: CollectorRegistry,
) -> None:
    """Prometheus drops a scrape in which two samples have one name and one label."""

    class OfSpark:
        def _measured(self) -> list[Reading]:
            return [Reading("a", {"late": 2}, {}), Reading("b", {"late": 3}, {})]

    streams: dict[str, Any] = {"a": cards(), "x": OfSpark(), "y": OfSpark()}
    prometheus(streams, registry=registry)
    late = (x for x in registry.collect() if x.name == "slidewise_rows_late")
    found = [
        (sample.labels["stream"], sample.value) for x in late for sample in x.samples
    ]
    assert found == [("a", 1), ("x/a", 2), ("x/b", 3), ("y/a", 2), ("y/b", 3)]
    reader = InMemoryMetricReader()
    meter = MeterProvider(metric_readers=[reader]).get_meter("test")
    opentelemetry(streams, meter=meter)
    assert observed(reader)["slidewise.rows.late"] == {
        (("stream", name),): value for name, value in found
    }


def test_the_default_registry_is_that_of_the_process() -> None:
    with prometheus({"a": cards()}):
        found = REGISTRY.get_sample_value("slidewise_rows_late_total", {"stream": "a"})
    assert found == 1


def test_a_port_is_served_until_it_is_closed(registry: CollectorRegistry) -> None:
    exported = prometheus(cards(), registry=registry, port=0)
    with urlopen(f"http://127.0.0.1:{exported.port}/metrics") as response:
        assert b"slidewise_rows_late_total" in response.read()
    exported.close()
    with socket.socket() as free:
        assert free.connect_ex(("127.0.0.1", exported.port)) != 0


@pytest.mark.parametrize("port", [None, 70_000, "x"])
def test_a_port_that_cannot_be_used_is_named(
    registry: CollectorRegistry, port: Any
) -> None:
    """And leaves nothing in the registry. None here is a port in use."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        given = taken.getsockname()[1] if port is None else port
        with pytest.raises(sw.SpecError, match=rf"port={given!r} cannot be used on"):
            prometheus(cards(), registry=registry, port=given)
    assert not [*registry.collect()]


@pytest.mark.parametrize("given", [None, sw.Spec, {"a": 3}])
def test_what_has_no_metrics_is_refused(given: Any) -> None:
    for export in (prometheus, opentelemetry):
        with pytest.raises(sw.SpecError, match=r"streams.* takes KeyedWindows"):
            export(given)


@pytest.mark.parametrize("name", [3, None, b"a", ("a",), "\ud800"])
def test_a_stream_is_named_by_text(registry: CollectorRegistry, name: Any) -> None:
    """Another name would fail each scrape, for all metrics of the registry."""
    for export in (prometheus, opentelemetry):
        with pytest.raises(sw.SpecError, match=r"streams= names a stream .* a str of"):
            export({"a": cards(), name: cards()})
    with prometheus({'é"\n\\': cards()}, registry=registry):
        assert (
            r'slidewise_rows_late_total{stream="é\"\n\\"} 1.0'
            in generate_latest(registry).decode()
        )


def test_arguments_of_another_kind_are_named() -> None:
    exports: dict[str, Any] = {"registry": prometheus, "meter": opentelemetry}
    for name, export in exports.items():
        with pytest.raises(sw.SpecError, match=rf"{name}=3 is not an? \w+.*\.\w+"):
            export(cards(), **{name: 3})
        with pytest.raises(sw.SpecError, match="clock=3 is no function that returns"):
            export(cards(), clock=3)


def test_metrics_may_be_closed_twice(registry: CollectorRegistry) -> None:
    with prometheus(cards(), registry=registry, port=0) as exported:
        exported.close()
    prometheus(cards(), registry=registry)
    exported.close()
    assert [*registry.collect()]


@pytest.mark.parametrize(
    ("call", "module", "extra"),
    [
        ("prometheus", "prometheus_client", "prometheus"),
        ("opentelemetry", "opentelemetry", "opentelemetry"),
    ],
)
def test_a_missing_library_is_named(call: str, module: str, extra: str) -> None:
    code = f"""
import sys
sys.modules[{module!r}] = None
import slidewise as sw, slidewise.metrics as metrics
try:
    metrics.{call}(sw.KeyedWindows(on="t", windows=5, aggs=dict(n=sw.count())))
except ImportError as error:
    print(error)
"""
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert re.fullmatch(
        rf"{call}\(\) needs .*: pip install 'slidewise\[{extra}\]'\n", run.stdout
    )


def test_bounds_belong_to_their_buckets() -> None:
    histogram, ages = Histogram((1.0, 2.0)), Histogram(AGES)
    for value in (0.5, 1.0, 1.5, 2.0, 3.0):
        observe(histogram, value, ages, None)
    assert histogram.read() == ([2, 4, 5], 8.0)
    assert ages.read() == ([0] * (len(AGES) + 1), 0.0)
    assert QUERIES[:4] == (1e-6, 2.5e-6, 5e-6, 1e-5)
    assert QUERIES[-1] == 5.0
    assert all(math.isfinite(bound) for bound in (*QUERIES, *AGES))


def test_no_query_of_a_thread_is_lost(registry: CollectorRegistry) -> None:
    windows = cards()
    prometheus({"a": windows}, registry=registry)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [
            threading.Thread(target=lambda: [windows.query("A") for _ in range(2_000)])
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert samples(registry)["slidewise_query_duration_seconds_count"] == 8_000


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_of_a_fork_does_not_wait_for_a_thread_that_counts() -> None:
    code = """
import os, slidewise.measuring as measuring
first, second = measuring.Histogram((1.0,)), measuring.Histogram((1.0,))
measuring._lock.acquire()
child = os.fork()
if not child:
    measuring.observe(first, 0.5, second, None)
    os._exit(first.read() != ([1, 1], 0.5))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    assert run.stdout == "0\n"


@pytest.mark.parametrize("name", ["dashboard.json", "alerts.yaml"])
def test_dashboard_and_alerts_ask_for_metrics_that_exist(
    registry: CollectorRegistry, name: str
) -> None:
    text = (Path(__file__).parents[2] / "examples" / "serving" / name).read_text(
        "utf-8"
    )
    read = yaml.safe_load(text)
    if name == "dashboard.json":
        panels = [panel["targets"] for panel in read["panels"]]
        asked = [target["expr"] for targets in panels for target in targets]
    else:
        asked = [rule["expr"] for group in read["groups"] for rule in group["rules"]]
    exported = prometheus(cards(), registry=registry)
    families = {family.name: family.type for family in exported.describe()}
    parts = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_count")}
    known = {name + part for name, kind in families.items() for part in parts[kind]}
    names = {name for expr in asked for name in re.findall(r"slidewise_\w+", expr)}
    assert len(names) >= 4
    assert names <= known
    if name == "dashboard.json":
        lost = {f"slidewise_rows_{how}_total" for how in ("late", "ahead", "duplicate")}
        assert lost <= names
