"""Checks that users run in their own tests.

`check_stream` is the public function. `script` draws streams and makes them smaller,
`in_process` and `on_spark` play them, `accepted` and `expected` define the results of
one, and `differences` compares tables of results.
"""

from slidewise.testing.streams import check_stream

__all__ = ["check_stream"]


def __dir__() -> list[str]:
    """Lists the public names only."""
    return sorted(__all__)
