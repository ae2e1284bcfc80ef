"""Custom aggregations, some of which a file cannot name by their import path."""

import slidewise as sw


@sw.aggregation
class Product:
    identity = 1

    def combine(a: int, b: int) -> int:  # noqa: N805 - a static method
        return a * b


def _add(a: int, b: int) -> int:
    return a + b


TOTAL = sw.aggregation(combine=_add, identity=0, name="own_aggregations:TOTAL")
UNNAMED = sw.aggregation(combine=_add, identity=0)
ELSEWHERE = sw.aggregation(combine=_add, identity=0, name="own_aggregations:OTHER")
MAIN = sw.aggregation(combine=_add, identity=0, name="__main__:MAIN")


def local() -> sw.Aggregation:
    @sw.aggregation
    class Local:
        identity = 0
        combine = staticmethod(_add)

    return Local("x")
