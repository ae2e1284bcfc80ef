"""The example service answers like a table of all payments."""

import json
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pyarrow as pa
import pytest
import uvicorn

import load
import service
import slidewise as sw
from payments import START, payments, write


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a running service."""
    feed = service.Feed(folder, folder / "state", every=3)
    config = uvicorn.Config(service.make_app(feed), port=0, log_level="warning")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()


def get(url: str) -> dict[str, object]:
    """The answer of the service."""
    with urlopen(url) as response:
        answer: dict[str, object] = json.load(response)
        return answer


def text_of(url: str) -> str:
    """The answer of the service, as text."""
    with urlopen(url) as response:
        text: str = response.read().decode()
        return text


def wait_for(url: str, name: str) -> dict[str, object]:
    """The status once a file has been ingested."""
    while True:
        status = get(f"{url}/status")
        assert status["error"] is None
        if status["last"] == name:
            return status
        time.sleep(0.02)


def expected(tables: list[pa.Table], card: str, at: int) -> dict[str, object]:
    """The answers of a table of all payments, sums rounded."""
    points = pa.table(
        {"t": pa.array([at * 10**6], pa.timestamp("us", "UTC")), "card": [card]}
    )
    answers = sw.rolling(pa.concat_tables(tables), service.SPEC, at=points)
    return rounded(answers.drop_columns(["t", "card"]).to_pylist()[0])


def rounded(answer: dict[str, object]) -> dict[str, object]:
    """Floats to nine digits."""
    return {
        name: round(value, 9) if isinstance(value, float) else value
        for name, value in answer.items()
    }


@pytest.mark.long
def test_the_service_answers_and_goes_on_after_a_restart(tmp_path: Path) -> None:
    """A restarted service counts each payment once."""
    tables = []
    for at in range(8):
        tables.append(payments(at, 400, 50))
        write(tables[-1], tmp_path, at)
        if at == 3:
            with served(tmp_path) as url:
                assert wait_for(url, "000003.parquet")["files"] == 4
                # At the end, and before the watermark.
                for when, card in product((4, 1), ("c1", "c7", "unknown")):
                    late = START + when * 300
                    answer = get(f"{url}/features/{card}?at={late}")
                    assert rounded(answer) == expected(tables, card, late)
    with served(tmp_path) as url:
        status = wait_for(url, "000007.parquet")
        assert (status["files"], status["late"]) == (4, 0)
        end = START + 8 * 300
        for card in ("c1", "c2", "c49"):
            answer = get(f"{url}/features/{card}?at={end}")
            assert rounded(answer) == expected(tables, card, end)
        more = get(f"{url}/features/c2?at={end}&amount=1000")
        assert more["max_10m"] == 1000.0
        assert get(f"{url}/features/c2?at={end}")["max_10m"] != 1000.0, "not stored"
        found = load.load(url, 400, 4, 60)
        assert len(found) == 400
        assert load.histogram(found).count("p9") == 3
        scraped = text_of(f"{url}/metrics")
        assert 'slidewise_rows_late_total{stream="payments"} 0.0' in scraped
        # Those above, and those of the load.
        asked = r'slidewise_query_duration_seconds_count\{stream="payments"\} (\S+)'
        assert float(re.findall(asked, scraped)[0]) == 405


def test_requests_that_cannot_be_answered_are_refused(tmp_path: Path) -> None:
    """Without payments, and with values that Python or JSON cannot hold."""
    with served(tmp_path) as url:
        with pytest.raises(HTTPError, match="503"):
            urlopen(f"{url}/features/c1")
        write(payments(0, 10, 5), tmp_path, 0)
        load.wait(url, 30)
        for query in ("at=1e18", "at=nan", "at=inf", "amount=nan", "amount=x"):
            with pytest.raises(HTTPError, match="422"):
                urlopen(f"{url}/features/c1?{query}")
    with pytest.raises(RuntimeError, match="no answer"):
        load.load(url, 4, 2, 5)
    with pytest.raises(RuntimeError, match="no features"):
        load.wait(url, 0)


def test_a_feed_that_failed_is_not_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A restarted service reads the file again, and its payments count once."""
    for number in range(2):
        write(payments(number, 10, 5), tmp_path, number)
    feed = service.Feed(tmp_path, tmp_path / "state", every=1)
    assert feed.step()

    def fail() -> None:
        raise OSError("no watermark")

    monkeypatch.setattr(feed.windows, "advance", fail)
    feed.start()
    while feed.error is None:
        time.sleep(0.01)
    feed.stop()
    again = service.Feed(tmp_path, tmp_path / "state")
    assert again.last == "000000.parquet"
    assert again.step()
    counts = again.windows.query_many({"card": [f"c{at}" for at in range(5)]})
    assert sum(counts["n_24h"]) == 20
