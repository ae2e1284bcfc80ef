"""`check_stream`: a stream over random cuts of a table, against the table."""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import pyarrow as pa

from slidewise.errors import SpecError
from slidewise.formatting import format_count
from slidewise.frames.adapt import frame
from slidewise.frames.base import require
from slidewise.hints import with_hints
from slidewise.keyed.options import Options
from slidewise.spec.durations import WindowLike
from slidewise.spec.features import Features, parts_of
from slidewise.spec.given import given_specs
from slidewise.spec.spec import Spec, one_of
from slidewise.table.hopping import hopping_spec
from slidewise.testing.case import ROW, Case, rolled
from slidewise.testing.differences import RAISES, DifferenceError
from slidewise.testing.in_process import InProcess
from slidewise.testing.on_spark import OnSpark, rows_of_spark
from slidewise.testing.script import Script, draw, smallest

__all__ = ["check_stream"]


@with_hints
def check_stream(
    spec: Spec | Features,
    rows: Any,
    *,
    late: WindowLike = 0,
    emit: str | None = None,
    runs: int = 20,
    seed: int = 0,
    engine: str = "process",
    late_rows: str = "drop",
    then_by: str | Sequence[str] | None = None,
    keep: WindowLike | None = None,
    ahead: WindowLike | None = None,
    idle: WindowLike | None = None,
    changed: bool = False,
    valid_until: bool = False,
    deletes: str | None = None,
    schema: Any = None,
    clock: Any = None,
) -> None:
    """Checks that a stream of rows, cut at random, gives what the table gives.

    Each run cuts the rows into batches of `KeyedWindows`, in order of arrival (the
    `arrival=` columns of the Spec, otherwise the table's order) or of event time. Some
    rows come later, by less than `late`; a few by more, and may be late. The watermark
    advances after most batches, and at random places the windows are restored from a
    snapshot (`to_bytes`, `from_bytes`). `ahead=` and `idle=` get a clock of random
    times: some rows are ahead of it, and it goes on while none come. These are
    compared:

    - what is emitted after each batch, with `rolling` or `hopping` over the rows that
      were accepted: which rows, keys or windows, every cell, and `_correction`;
    - `query` and `query_many` at random points, with `rolling(at=)`, except for
      sessions, `until` and `delta`;
    - `watermark`, `late_count`, `ahead_count` and `duplicate_count`.

    For "change", the last result of each key is compared with `rolling(at=)` at the
    watermark, or at the key's latest row if that is later; a result that comes although
    no row left its window is accepted, if it is right. So is a corrected result that is
    as before. `valid_until` is compared with the first time at which `rolling(at=)`
    over the rows of the window differs.

    With `engine="spark"` each batch is a micro-batch of a stream of Spark, in a local
    session (that of this process, or one by `slidewise.spark.session`). It starts again
    from its checkpoint at random places. The rows are those that Spark reads: times in
    microseconds, which must have a time zone.

    Args:
        spec: The `Spec`, or the `Features`.
        rows: A table that `rolling` takes.
        late: As for `KeyedWindows`.
        emit: As for `KeyedWindows`, any of its kinds.
        runs: The number of cuts.
        seed: The seed of the cuts: equal seeds give equal cuts.
        engine: "process" for `KeyedWindows`, or "spark".
        late_rows: As for `KeyedWindows`.
        then_by: As for `KeyedWindows`.
        keep: As for `KeyedWindows`. Spark has none.
        ahead: As for `KeyedWindows`. Spark compares with its own clock, so it is
            refused there.
        idle: As for `KeyedWindows`; refused with Spark.
        changed: As for `KeyedWindows`.
        valid_until: As for `KeyedWindows`.
        deletes: As for `KeyedWindows`.
        schema: Refused: the columns of `rows` have types.
        clock: Refused: the check draws times of the clock.

    Raises:
        AssertionError: If a cell differs. The message has the smallest cut that was
            found to differ, and the cell with both values.
        SpecError: If an argument is wrong or not supported: `approx_quantile` and
            `heavy_hitters` are not, whose answers depend on how rows are grouped, nor
            Features whose Specs have different `arrival=`.
        ResultOverflowError: As for `rolling`. On Spark the error of the query.
        ImportError: With `engine="spark"`, if PySpark is not installed.

    Floats are equal within 128 ulp, the bound of the documentation; integers, times,
    text and lists are equal if all values are.

    Cost: per batch, that of `KeyedWindows` and of `rolling` over the rows so far, with
    at most 12 batches a run; for a smaller cut up to 2,000 runs more. Some hundred rows
    find what many find. On Spark at most 5 batches, some seconds per run, and up to 30
    runs more for a smaller cut: a few runs are enough there.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> from slidewise.testing import check_stream
        >>> spec = sw.Spec(on="t", by="card", windows=[5, sw.rows(3)],
        ...                aggs={"n": sw.count(), "sum": sw.sum("x")})
        >>> rows = pa.table({"t": [1, 2, 9, 4], "card": [*"ABAA"], "x": [5, 7, 2, 1]})
        >>> check_stream(spec, rows, late=3, runs=5)
    """
    specs = given_specs(spec, {}, "check_stream")
    one_of(engine, "engine", _ENGINES)
    options = {
        "late_rows": late_rows,
        "then_by": then_by,
        "keep": keep,
        "ahead": ahead,
        "idle": idle,
        "changed": changed,
        "valid_until": valid_until,
        "deletes": deletes,
    }
    _refuse(specs, runs, {"schema": schema, "clock": clock}, _OF_THE_CHECK)
    if engine == "spark":
        _refuse(specs, runs, options, _OF_THE_PROCESS)
    check = _Check(specs, rows, {"late": late, "emit": emit, **options}, engine)
    for run in range(runs):
        check.run(Random(f"{seed}.{run}"), f"seed {seed}, run {run}")


_ENGINES = ("process", "spark")
# Arguments of `KeyedWindows` that are refused, and why: by each engine, and by Spark.
_OF_THE_CHECK = {
    "schema": "a table has types: cast its columns, and leave it out",
    "clock": "ahead= and idle= get a clock of the check's own: leave it out",
}
_OF_THE_PROCESS = {
    "keep": "a stream of Spark has no queries, for which rows are kept: leave it out",
    "idle": "a stream of Spark has no idle=: leave it out",
    "ahead": (
        "a stream of Spark compares with the time of its micro-batch, which a check "
        "cannot choose: check it with engine='process'"
    ),
}


def _refuse(
    specs: Spec | Features,
    runs: int,
    given: Mapping[str, Any],
    reasons: Mapping[str, str],
) -> None:
    """Refuses what cannot be compared."""
    if runs < 1:
        raise SpecError(f"runs={runs!r} is not a number of runs: give an int from 1")
    for name, reason in reasons.items():
        if given[name] is not None:
            raise SpecError(f"check_stream does not take {name}=: {reason}")
    for spec in parts_of(specs):
        for name, agg in spec.aggs:
            if agg.record.grouped:
                raise SpecError(
                    f"check_stream does not support {agg!r}, which has several right "
                    f"answers for the same rows: leave the aggregation {name!r} out"
                )
    arrivals = {spec.arrivals for spec in parts_of(specs)}
    if len(arrivals) > 1:
        raise SpecError(
            "check_stream takes Features whose Specs have one arrival=: check each "
            "Spec by itself"
        )


class _Check:
    """A case and the engine that plays its scripts."""

    def __init__(
        self, spec: Spec | Features, rows: Any, given: dict[str, Any], engine: str
    ) -> None:
        emit = given["emit"]
        if emit is None and isinstance(spec, Features):
            emit = "final"
        options = [Options.make(x, **{**given, "emit": emit}) for x in parts_of(spec)]
        first = options[0]
        source = frame(rows)
        deletes = () if first.deletes is None else (first.deletes,)
        names = [*dict.fromkeys([*spec.columns, *first.then_by, *deletes])]
        require(source, names)
        table = pa.Table.from_arrays([source.column(x) for x in names], names=names)
        number = pa.array(range(source.length), pa.int64())
        table = table.append_column(ROW, number)
        if engine == "spark":
            spark, struct, table = rows_of_spark(table)
        # What is wrong with the rows is raised now.
        is_hopping = spec.is_hopping
        of = parts_of(spec)
        results = hopping_spec(table, *of) if is_hopping else rolled(table, of)
        case = Case.of(spec, table, options)
        given = {**given, "emit": first.emit}
        self._engine: InProcess | OnSpark
        if engine == "spark":
            micro = case.by_micro_batches()
            self._engine = OnSpark(micro, given, spark, struct, results.schema)
        else:
            self._engine = InProcess(case, given)
        self._case, self._kind = case, "hopping" if is_hopping else "rolling"
        arrivals = [(name, "ascending") for name in [*case.arrivals, ROW]]
        self._order = table.sort_by(arrivals)[ROW].to_pylist()

    def run(self, random: Random, which: str) -> None:
        """Checks one cut.

        Raises:
            AssertionError: If a cell differs.
        """
        case = self._case
        ticks = case.times.ticks.to_pylist()
        engine, bounds = self._engine, (case.late, case.longest)
        script = draw(random, ticks, self._order, *bounds, engine.batches)
        script = engine.adapted(script, random)
        found = self._difference(script)
        if found is None:
            return
        raises = found.startswith(RAISES)

        def fails(each: Script) -> bool:
            """Whether a cell differs, or a call raises, as in the first script."""
            other = self._difference(each)
            return other is not None and other.startswith(RAISES) == raises

        script = smallest(script, fails, engine.tries)
        found = self._difference(script)
        raise AssertionError(
            f"the stream differs from {self._kind} over its rows: {found}\n"
            f"({which}; the smallest cut found: {_counts(script)})\n"
            + "\n".join(engine.lines(script))
        )

    def _difference(self, script: Script) -> str | None:
        """The cell that differs, as a clause; None if all are equal."""
        try:
            self._engine.play(script)
        except DifferenceError as error:
            return str(error)
        return None


def _counts(script: Script) -> str:
    rows = sum(len(step.rows) for step in script)
    restarts = sum(step.restart for step in script)
    batches = f"{len(script)} batch{'es' * (len(script) != 1)}"
    counts = [format_count(rows, "row"), format_count(restarts, "restart")]
    return ", ".join([batches, *counts])
