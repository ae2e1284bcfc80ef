"""Custom aggregations that workers import by name."""

import slidewise as sw


@sw.aggregation
class Longest:
    identity = ""
    commutative = True

    @staticmethod
    def combine(a: str, b: str) -> str:
        return min((a, b), key=lambda text: (-len(text), text))

    @staticmethod
    def lower(text: str) -> str:
        return text.upper()
