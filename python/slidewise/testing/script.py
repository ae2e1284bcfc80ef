"""Scripts of a stream: how its rows are cut into batches, and what is called between.

A script is a list of steps over the numbers of rows, so that it can be made smaller.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from random import Random

__all__ = ["Script", "Step", "clocked", "draw", "smallest"]


@dataclass(frozen=True)
class Step:
    """A batch, and the calls that follow it.

    Attributes:
        rows: The numbers of its rows, in order of arrival.
        advance: Whether the watermark advances.
        restart: Whether the windows are restored from a snapshot.
        asked: Query points: the number of a row with the key, and by how many ticks
            the point is later than this row.
        now: The time of the clock, in ticks.
    """

    rows: tuple[int, ...]
    advance: bool = True
    restart: bool = False
    asked: tuple[tuple[int, int], ...] = ()
    now: int = 0


Script = tuple[Step, ...]


def draw(
    random: Random,
    ticks: Sequence[int],
    order: Sequence[int],
    late: int,
    length: int,
    most: int = 12,
) -> Script:
    """Cuts rows into batches at random.

    Args:
        random: What draws.
        ticks: The time of each row.
        order: The numbers of the rows, in order of arrival.
        late: The delay of the watermark, in ticks.
        length: That of the longest window.
        most: The most batches.
    """
    if random.random() < 0.5:  # a table may be sorted by keys
        order = sorted(order, key=lambda row: ticks[row])
    order = _delayed(random, ticks, order, late)
    count = random.randint(1, max(1, min(len(order), most)))
    inner = sorted(random.choices(range(len(order) + 1), k=count - 1))
    steps = []
    for first, last in pairwise([0, *inner, len(order)]):
        asked = []
        if last and random.random() < 0.5:
            for _ in range(random.randint(1, 3)):
                later = random.choice([0, 1, length, random.randint(0, length + 1)])
                asked.append((order[random.randrange(last)], later))
        step = Step(
            tuple(order[first:last]),
            advance=random.random() < 0.8,
            restart=random.random() < 0.3,
            asked=tuple(asked),
        )
        steps.append(step)
    return tuple(steps)


def clocked(
    random: Random, script: Script, ticks: Sequence[int], ahead: int, idle: int
) -> Script:
    """A script with a clock: some rows are ahead of it, and it goes on without rows.

    Args:
        random: What draws.
        script: The script.
        ticks: The time of each row.
        ahead: How far rows may be ahead of the clock, in ticks.
        idle: After how many ticks without rows the watermark follows it.
    """
    now, steps = min(ticks, default=0), []
    for step in script:
        latest = max((ticks[row] for row in step.rows), default=now)
        behind = random.choice([0, ahead, random.randint(0, 2 * ahead + 1)])
        later = random.choice([0, 0, 1, random.randint(0, 2 * idle + 1)])
        now = max(now, latest - behind) + later - random.choice([0, 0, 0, 1])
        steps.append(replace(step, now=now))
    return tuple(steps)


def _delayed(
    random: Random, ticks: Sequence[int], order: Sequence[int], late: int
) -> list[int]:
    """Some rows come later, by less than the watermark waits; a few by more."""
    if not order:
        return []
    far = max(3 * late, (max(ticks) - min(ticks)) // 8) + 1

    def delay() -> int:
        drawn = random.random()
        if drawn < 0.6 or (drawn < 0.95 and not late):
            return 0
        return random.randrange(late if drawn < 0.95 else far)

    clock = accumulate((ticks[row] for row in order), max)
    came = {row: now + delay() for row, now in zip(order, clock, strict=True)}
    return sorted(order, key=came.__getitem__)


def smallest(
    script: Script, fails: Callable[[Script], bool], most: int = 2_000
) -> Script:
    """A script that fails, and of which none of the next smaller ones does.

    Args:
        script: One that fails.
        fails: Whether a script fails.
        most: The most scripts that are tried.
    """
    tries = 0
    found = True
    while found:
        found = False
        for candidate in _smaller(script):
            tries += 1
            if tries > most:
                return script
            if fails(candidate):
                script, found = candidate, True
                break
    return script


def _smaller(script: Script) -> Iterator[Script]:
    """Scripts with fewer steps, rows or calls; those with much less come first."""
    for at in range(1, len(script)):
        yield script[:at]
    for at in range(len(script)):
        if len(script) > 1:
            yield script[:at] + script[at + 1 :]
    rows = [row for step in script for row in step.rows]
    size = len(rows) // 2
    while size:
        for first in range(0, len(rows), size):
            gone = {*rows[first : first + size]}
            yield tuple(_without(step, gone) for step in script)
        size //= 2
    for at, (one, other) in enumerate(pairwise(script)):
        joined = replace(other, rows=one.rows + other.rows)
        yield (*script[:at], joined, *script[at + 2 :])
    for at, step in enumerate(script):
        fewer = [replace(step, restart=False)] if step.restart else []
        fewer += [replace(step, advance=False)] if step.advance else []
        fewer += [
            replace(step, asked=step.asked[:one] + step.asked[one + 1 :])
            for one in range(len(step.asked))
        ]
        for each in fewer:
            yield (*script[:at], each, *script[at + 1 :])


def _without(step: Step, gone: set[int]) -> Step:
    return replace(step, rows=tuple(row for row in step.rows if row not in gone))
