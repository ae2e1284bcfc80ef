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

__all__ = ["histogram", "load"]


def load(url: str, requests: int, clients: int, cards: int) -> list[float]:
    """The seconds of each request, sorted.

    Raises:
        RuntimeError: If an answer is not 200.
    """
    place, found, failed = urlsplit(url), list[float](), list[str]()

    def request(seed: int) -> None:
        draw = random.Random(seed)
        connection = http.client.HTTPConnection(place.hostname or "", place.port)
        for _ in range(requests // clients):
            card, amount = draw.randrange(cards), draw.randrange(1, 100)
            started = time.perf_counter()
            connection.request("GET", f"/features/c{card}?amount={amount}")
            response = connection.getresponse()
            body = response.read()
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
    """A line per doubling of the latency, and the percentiles."""
    lines, bound, most = [], 62.5e-6, 1
    bins: list[tuple[float, int]] = []
    while not bins or sum(count for _, count in bins) < len(seconds):
        below = sum(second < bound for second in seconds)
        bins.append((bound, below - sum(count for _, count in bins)))
        bound *= 2
    most = max(count for _, count in bins)
    for bound, count in bins:
        bar = "#" * round(width * count / most)
        lines.append(f"< {bound * 1e3:9.3f} ms {count:8} {bar}")
    for share in (0.5, 0.9, 0.99, 0.999):
        value = seconds[min(int(share * len(seconds)), len(seconds) - 1)]
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
    started = time.perf_counter()
    found = load(options.url, options.requests, options.clients, options.cards)
    spent = time.perf_counter() - started
    print(histogram(found))
    print(f"{len(found)} requests, {len(found) / spent:.0f} a second")


if __name__ == "__main__":
    main()
