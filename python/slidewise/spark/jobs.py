"""Names of the work of slidewise in the pages of Spark: of its operators and jobs."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from slidewise.spec.spec import Spec

__all__ = ["described_jobs", "name_of"]

_DESCRIPTION = "spark.job.description"


def name_of(spec: Spec) -> str:
    """The name of a query: its call, and the beginning of the hash of its Spec."""
    call = "hopping" if spec.is_hopping else "rolling"
    return f"slidewise_{call}_{spec.hash[:8]}"


@contextmanager
def described_jobs(df: Any, spec: Spec, phase: str) -> Iterator[None]:
    """Describes the jobs of a block; the description before it comes back."""
    try:
        context = df.sparkSession.sparkContext
    except Exception:  # noqa: BLE001 - Spark Connect has no context; its error varies
        yield
        return
    before = context.getLocalProperty(_DESCRIPTION)
    context.setLocalProperty(_DESCRIPTION, f"{name_of(spec)}: {phase}")
    try:
        yield
    finally:
        context.setLocalProperty(_DESCRIPTION, before)
