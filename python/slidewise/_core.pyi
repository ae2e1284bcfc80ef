"""The native module. Its docstrings are in the module itself."""

from collections.abc import Callable, Sequence
from typing import Any, Self, final

from typing_extensions import disjoint_base

from slidewise.instants import Clock
from slidewise.own import Functions
from slidewise.plan import WindowPlan

__all__ = [
    "Column",
    "Spec",
    "Window",
    "__version__",
    "algorithms",
    "obeys_law",
    "rolling",
    "rolling_own",
]

__version__: str

@final
class Column:
    def __arrow_c_array__(
        self, requested_schema: object | None = None
    ) -> tuple[object, object]: ...
    def __len__(self) -> int: ...

@final
class Spec:
    def __new__(cls, plan: WindowPlan) -> Self: ...

@disjoint_base
class Window:
    def __new__(cls, spec: Spec, contents: object | None = None) -> Self: ...
    def insert(self, time: Any, value: Any = None) -> None: ...
    def insert_many(self, times: Any, values: Any = None) -> None: ...
    def query(self, lo: Any = None, hi: Any = None) -> Any: ...
    def evict(self, time: Any = None) -> Any: ...
    def evict_until(self, time: Any) -> int: ...
    def __len__(self) -> int: ...
    @property
    def oldest(self) -> Any: ...
    @property
    def youngest(self) -> Any: ...
    def items(self) -> list[tuple[Any, Any]]: ...
    def clear(self) -> None: ...
    def check(self) -> None: ...
    @property
    def nbytes(self) -> int: ...
    def copy(self) -> Self: ...
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, memo: dict[int, Any]) -> Self: ...
    def to_bytes(self) -> bytes: ...
    @classmethod
    def _restore(
        cls,
        blob: bytes,
        read_header: Callable[[bytes], tuple[Spec, list[str | None], Clock | None]],
    ) -> Self: ...
    def _shape(
        self,
    ) -> tuple[int, int, list[tuple[int, str, list[Any], list[int], Any]]] | None: ...
    def _describe(self) -> tuple[WindowPlan, list[str | None], Clock | None]: ...

def algorithms() -> list[
    tuple[str, bool, str | None, bool, list[tuple[str, int, list[int] | None]]]
]: ...
def obeys_law(law: str, aggs: Sequence[tuple[str, bool]], feeds: int) -> bool: ...
def rolling(
    times: object,
    groups: object | None,
    columns: Sequence[object],
    aggs: Sequence[tuple[str, int, int, int]],
    windows: Sequence[tuple[str, int, str]],
    ties: str,
    arrival: object | None,
) -> list[list[Column]]: ...
def rolling_own(
    times: object,
    groups: object | None,
    values: list[Any],
    functions: Functions,
    windows: Sequence[tuple[str, int, str]],
    ties: str,
    arrival: object | None,
) -> list[list[Any]]: ...
