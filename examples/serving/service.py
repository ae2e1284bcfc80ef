"""A feature service: the features of a card at the time of a payment.

    pip install fastapi uvicorn 'slidewise[prometheus]'
    python examples/serving/payments.py feed                # ten files of payments
    python examples/serving/service.py feed state &         # the service, on port 8000
    python examples/serving/load.py http://127.0.0.1:8000   # and its latencies

A thread reads the files of the folder `feed` in order of their names, each a Parquet
file of payments (`t`, `card`, `amount`), and ingests them. Requests are answered
meanwhile from the same windows:

    GET /features/c17                  as of the latest payment
    GET /features/c17?amount=12.5      as if this payment had arrived, too
    GET /features/c17?at=1700000000    as of a time, in seconds since 1970; status 422
                                       once payments that count then were evicted
    GET /status                        files, payments, the latest time, bytes
    GET /metrics                       late rows, lags, bytes, and histograms of the
                                       queries, for Prometheus

`state` is a file: the name of the last file that was ingested, and a snapshot of the
windows after it. It is replaced as a whole, so a restarted service continues after its
last file, and each payment counts once. If a file cannot be ingested, the feed ends:
`/status` has the error, and `state` is that of the last save.

`alerts.yaml` has rules for Prometheus, and `dashboard.json` a dashboard for Grafana.
"""

import argparse
import os
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import pyarrow.parquet as pq
from fastapi import FastAPI, HTTPException, Query, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

import slidewise as sw
from slidewise.metrics import prometheus

__all__ = ["SPEC", "Feed", "make_app"]

SPEC = sw.Spec(
    on="t",
    by="card",
    windows=["10m", "1h", "24h"],
    aggs={
        "n": sw.count(),
        "sum": sw.sum("amount"),
        "mean": sw.mean("amount"),
        "max": sw.max("amount"),
    },
    nan="skip",  # JSON has no NaN
)
# The largest delay of a payment.
LATE = "5m"


class Feed:
    """Windows that follow a folder of files.

    Args:
        folder: The folder.
        state: Where the windows are saved.
        every: Files between two saves.
    """

    def __init__(self, folder: Path, state: Path, every: int = 10) -> None:
        self.folder, self.state, self.every = folder, state, every
        self.last, self.files, self.rows = "", 0, 0
        self.windows = sw.KeyedWindows(SPEC, emit="update", late=LATE)
        self.error: Exception | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="feed")
        if state.exists():
            name, _, snapshot = state.read_bytes().partition(b"\n")
            self.last = name.decode()
            self.windows = sw.KeyedWindows.from_bytes(snapshot, SPEC)

    def start(self) -> None:
        """Follows the folder in another thread."""
        self._thread.start()

    def stop(self) -> None:
        """Waits for the file that is being ingested, and saves."""
        self._stop.set()
        self._thread.join()
        if self.error is None:  # else the windows may be ahead of `last`
            self.save()

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                if not self.step():
                    self._stop.wait(0.05)
        except Exception as error:  # noqa: BLE001 - /status reports it
            self.error = error

    def step(self) -> bool:
        """Ingests the next file; False if there is none."""
        names = (path.name for path in self.folder.glob("*.parquet"))
        name = min((name for name in names if name > self.last), default=None)
        if name is None:
            return False
        payments = pq.read_table(self.folder / name)
        self.windows.ingest(payments)
        self.windows.advance()
        self.windows.collect()  # not used: requests query the windows
        self.last = name
        self.files += 1
        self.rows += len(payments)
        if self.files % self.every == 0:
            self.save()
        return True

    def save(self) -> None:
        """Replaces the saved state by the current one."""
        if not self.last:
            return
        fresh = self.state.with_suffix(".new")
        with fresh.open("wb") as file:
            file.write(self.last.encode() + b"\n" + self.windows.to_bytes())
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self.state)


def make_app(feed: Feed) -> FastAPI:
    """The service of a feed; starts and stops the feed."""

    @asynccontextmanager
    async def running(_: FastAPI) -> AsyncIterator[None]:
        feed.start()
        yield
        feed.stop()

    app = FastAPI(title="features", lifespan=running)
    registry = CollectorRegistry()
    prometheus({"payments": feed.windows}, registry=registry)

    # In the event loop: a query is short, and does not wait for a batch.
    @app.get("/features/{card}")
    async def features(
        card: str,
        amount: Annotated[float | None, Query(allow_inf_nan=False)] = None,
        at: Annotated[float | None, Query(description="seconds since 1970")] = None,
    ) -> dict[str, Any]:
        if not feed.last:
            raise HTTPException(503, "no payments yet")
        plus = None if amount is None else {"amount": amount}
        try:
            when = "latest" if at is None else datetime.fromtimestamp(at, UTC)
            return feed.windows.query(card, at=when, plus=plus)
        # `fromtimestamp` raises the last three, for times that Python cannot hold.
        except (sw.SpecError, OSError, OverflowError, ValueError) as error:
            raise HTTPException(422, str(error)) from error

    # In another thread: `nbytes` waits for the batch that is being ingested.
    @app.get("/status")
    def status() -> dict[str, Any]:
        return {
            "last": feed.last,
            "files": feed.files,
            "rows": feed.rows,
            "late": feed.windows.late_count,
            "watermark": feed.windows.watermark,
            "nbytes": feed.windows.nbytes,
            "error": None if feed.error is None else repr(feed.error),
        }

    # As `status`.
    @app.get("/metrics")
    def metrics() -> Response:
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)

    return app


def main() -> None:
    """Runs the service."""
    import uvicorn

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("feed", type=Path, help="a folder of Parquet files")
    parser.add_argument("state", type=Path, help="a file for the state")
    parser.add_argument("--port", type=int, default=8000)
    options = parser.parse_args()
    app = make_app(Feed(options.feed, options.state))
    uvicorn.run(app, host="127.0.0.1", port=options.port, log_level="warning")


if __name__ == "__main__":
    main()
