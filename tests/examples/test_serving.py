"""The example service answers like a table of all payments."""

import json
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import pyarrow as pa
import pyarrow.parquet as pq
import uvicorn

import load
import service
import slidewise as sw

START = 1_700_000_000


def payments(seed: int, count: int) -> pa.Table:
    """Payments of some minutes, up to four minutes late."""
    draw = random.Random(seed)
    times = [
        (START + seed * 300 + draw.randrange(300) - draw.choice([0, 0, 240])) * 10**6
        for _ in range(count)
    ]
    return pa.table(
        {
            "t": pa.array(times, pa.timestamp("us", "UTC")),
            "card": [f"c{draw.randrange(50)}" for _ in range(count)],
            "amount": [round(draw.random() * 100, 2) for _ in range(count)],
        }
    )


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
    answers = sw.rolling(pa.concat_tables(tables), **service.REQUEST, at=points)
    return rounded(answers.drop_columns(["t", "card"]).to_pylist()[0])


def rounded(answer: dict[str, object]) -> dict[str, object]:
    """Floats to nine digits."""
    return {
        name: round(value, 9) if isinstance(value, float) else value
        for name, value in answer.items()
    }


def test_the_service_answers_and_goes_on_after_a_restart(tmp_path: Path) -> None:
    """A restarted service counts each payment once."""
    tables = []
    for at in range(8):
        tables.append(payments(at, 400))
        pq.write_table(tables[-1], tmp_path / f"{at:03}.parquet")
        if at == 3:
            with served(tmp_path) as url:
                assert wait_for(url, "003.parquet")["files"] == 4
                late = START + 4 * 300
                for card in ("c1", "c7", "unknown"):
                    answer = get(f"{url}/features/{card}?at={late}")
                    assert rounded(answer) == expected(tables, card, late)
    with served(tmp_path) as url:
        status = wait_for(url, "007.parquet")
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
