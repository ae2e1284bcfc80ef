"""Adapter of narwhals frames, which hold those of other libraries."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from slidewise.frames.base import Frame, Result

__all__ = ["is_narwhals", "narwhals_frame", "rewrapped"]


def is_narwhals(table: Any, type_name: str) -> bool:
    """Whether this is a narwhals `DataFrame` or `LazyFrame`, stable ones included."""
    narwhals = sys.modules.get("narwhals")
    return narwhals is not None and isinstance(table, getattr(narwhals, type_name))


def rewrapped(table: Any, native: Any) -> Any:
    """The frame of a library as a narwhals one of the version of another."""
    # "narwhals.dataframe", or "narwhals.stable.v1" for frames of a stable version.
    parts = type(table).__module__.split(".")
    version = parts[:3] if parts[1:2] == ["stable"] else parts[:1]
    return sys.modules[".".join(version)].from_native(native)


def narwhals_frame(table: Any, native: Frame) -> Frame:
    """Wraps a narwhals DataFrame; `native` wraps the one that it holds."""
    return _NarwhalsFrame(table, native)


class _NarwhalsFrame:
    """A narwhals DataFrame, read and made by the adapter of its library."""

    def __init__(self, table: Any, native: Frame) -> None:
        self._table = table
        self._native = native
        self.times_beside = native.times_beside

    @property
    def names(self) -> Sequence[str]:
        return self._native.names

    @property
    def length(self) -> int:
        return self._native.length

    def column(self, name: str) -> pa.Array:
        return self._native.column(name)

    def never_null(self, name: str) -> bool:
        return self._native.never_null(name)

    def dtype(self, name: str) -> Any:
        return self._native.dtype(name)

    def append(self, results: Mapping[str, Result]) -> Any:
        return rewrapped(self._table, self._native.append(results))

    def make(self, columns: Mapping[str, Result]) -> Any:
        return rewrapped(self._table, self._native.make(columns))
