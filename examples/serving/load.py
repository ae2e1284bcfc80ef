"""A load test of the service: random cards over loopback, and their latencies.

    python examples/serving/load.py URL [--requests 20000] [--clients 4]

Each client keeps one connection and sends a request as soon as it has an answer.
"""

import argparse
import http.client
import json
import random
import threading
import time
from urllib.parse import urlsplit
from urllib.request import urlopen

__all__ = ["histogram", "load", "wait"]


def wait(url: str, seconds: float) -> None:
    """Waits until the service answers.

    Raises:
        RuntimeError: If it does not within so many seconds.
    """
    until = time.monotonic() + seconds
    while True:
        try:
            urlopen(f"{url}/features/c0").close()
            return
        except OSError as error:
            if time.monotonic() >= until:
                raise RuntimeError(f"no features from {url}: {error}") from error
        time.sleep(0.1)


def load(url: str, requests: int, clients: int, cards: int) -> list[float]:
    """The seconds of each request, sorted.

    Raises:
        RuntimeError: If an answer is not 200, or none comes.
    """
    place, found, failed = urlsplit(url), list[float](), list[str]()

    def request(seed: int) -> None:
        draw = random.Random(seed)
        connection = http.client.HTTPConnection(place.hostname or "", place.port)
        for _ in range(seed, requests, clients):
            card, amount = draw.randrange(cards), draw.randrange(1, 100)
            started = time.perf_counter()
            try:
                connection.request("GET", f"/features/c{card}?amount={amount}")
                response = connection.getresponse()
                body = response.read()
            except (OSError, http.client.HTTPException) as error:
                failed.append(f"no answer from {url}: {error}")
                return
            found.append(time.perf_counter() - started)
            if response.status != 200 or "n_1h" not in json.loads(body):
                failed.append(f"{response.status}: {body!r}")
                return
        connection.close()

    threads = [threading.Thread(target=request, args=(at,)) for at in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise RuntimeError(failed[0])
    return sorted(found)


def histogram(seconds: list[float], width: int = 40) -> str:
    """A line per doubling of the latency, and the percentiles, of sorted latencies."""
    bound = 62.5e-6
    while seconds[0] >= bound:
        bound *= 2
    bins, counted = list[tuple[float, int]](), 0
    while counted < len(seconds):
        below = sum(second < bound for second in seconds)
        bins.append((bound, below - counted))
        bound, counted = 2 * bound, below
    most = max(count for _, count in bins)
    lines = [
        f"< {bound * 1e3:9.3f} ms {count:8} {'#' * round(width * count / most)}"
        for bound, count in bins
    ]
    for share in (0.5, 0.9, 0.99, 0.999):
        value = seconds[int(share * len(seconds))]
        lines.append(f"p{share * 100:<5g} {value * 1e3:9.3f} ms")
    return "\n".join(lines)


def main() -> None:
    """Prints the histogram of a load test."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("url", help="such as http://127.0.0.1:8000")
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--cards", type=int, default=10_000)
    options = parser.parse_args()
    wait(options.url, 30)
    started = time.perf_counter()
    found = load(options.url, options.requests, options.clients, options.cards)
    spent = time.perf_counter() - started
    print(histogram(found))
    print(f"{len(found)} requests, {len(found) / spent:.0f} a second")


if __name__ == "__main__":
    main()
