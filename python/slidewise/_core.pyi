"""The native module. Its docstrings are in the module itself."""

from collections.abc import Callable, Sequence
from typing import Any, Self, final

from typing_extensions import disjoint_base

from slidewise.aggregations.compiled import Compiled
from slidewise.aggregations.custom import Functions
from slidewise.window.planner import WindowPlan
from slidewise.window.time_codec import Clock

__all__ = [
    "ArrowArray",
    "Bloom",
    "CountMin",
    "KeyedStore",
    "Question",
    "SortLayout",
    "Spec",
    "Window",
    "__version__",
    "algorithms",
    "commutes",
    "hashes",
    "hop_windows",
    "kernel_kind",
    "obeys_law",
    "partials",
    "rolling",
    "rolling_udaf",
    "rows_are_sorted",
    "session_windows",
    "sort_rows",
    "subtracts_exactly",
]

# Times, groups and arrival.
_Rows = tuple[object, object | None, object | None]
# Times, where windows begin, groups and arrival.
_QueryPoints = tuple[object, object | None, object | None, object | None]

__version__: str

@final
class ArrowArray:
    def __arrow_c_array__(
        self, requested_schema: object | None = None
    ) -> tuple[object, object]: ...
    def __len__(self) -> int: ...

@final
class Bloom:
    @classmethod
    def from_bytes(cls, blob: bytes) -> Self: ...
    def to_bytes(self) -> bytes: ...
    def might_contain(self, value: Any) -> bool: ...
    def __contains__(self, key: Any, /) -> bool: ...
    @property
    def bits(self) -> int: ...
    @property
    def error_rate(self) -> float: ...
    def __or__(self, value: Self, /) -> Self: ...
    def __ror__(self, value: Self, /) -> Self: ...
    def __eq__(self, value: object, /) -> bool: ...

@final
class CountMin:
    @classmethod
    def from_bytes(cls, blob: bytes) -> Self: ...
    def to_bytes(self) -> bytes: ...
    def estimate(self, value: Any) -> int: ...
    @property
    def total(self) -> int: ...
    @property
    def error(self) -> float: ...
    def __add__(self, value: Self, /) -> Self: ...
    def __radd__(self, value: Self, /) -> Self: ...
    def __eq__(self, value: object, /) -> bool: ...

@final
class Spec:
    def __new__(cls, plan: WindowPlan) -> Self: ...

@disjoint_base
class Window:
    def __new__(cls, spec: Spec, contents: object | None = None) -> Self: ...
    def insert(self, time: Any, value: Any = ...) -> None: ...
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
        read_header: Callable[
            [bytes], tuple[Spec, list[str | None], Clock | None, bool]
        ],
        shared: bool = False,
    ) -> Self: ...
    def _shape(
        self,
    ) -> tuple[int, int, list[tuple[int, str, list[Any], list[int], Any]]] | None: ...
    def _describe(self) -> tuple[WindowPlan, list[str | None], Clock | None]: ...
    def _migrated(self) -> tuple[str, Any, Any] | None: ...

def algorithms() -> list[
    tuple[str, bool, str | None, bool, bool, list[tuple[str, int, list[int] | None]]]
]: ...
def hashes(array: object) -> ArrowArray: ...
def commutes(kind: str, inputs: int) -> bool: ...
def obeys_law(law: str, aggs: Sequence[tuple[str, bool]], inputs: int) -> bool: ...
def subtracts_exactly(aggs: Sequence[tuple[str, bool]], floats: bool) -> bool: ...
def rolling(
    rows: _Rows,
    columns: Sequence[object],
    aggs: Sequence[tuple[str, int, int, int]],
    windows: Sequence[tuple[str, int, str, int]],
    ties: str,
    query_points: _QueryPoints | None,
    natives: Sequence[Compiled],
    history: int,
    lifted: object | None,
    threads: int,
    layout: SortLayout | None,
    fails: bool,
) -> tuple[list[list[ArrowArray]], list[tuple[int, int, int, int]]]: ...
def partials(
    rows: _Rows,
    columns: Sequence[object],
    aggs: Sequence[tuple[str, int, int, int]],
    query_points: _QueryPoints,
    natives: Sequence[Compiled],
    lifted: object | None,
) -> ArrowArray: ...
def rolling_udaf(
    rows: _Rows,
    values: list[Any],
    functions: Functions,
    windows: Sequence[tuple[str, int, str, int]],
    ties: str,
    query_points: _QueryPoints | None,
    history: int,
) -> list[list[Any]]: ...

@final
class SortLayout: ...

@final
class Question:
    def __new__(
        cls,
        spans: Sequence[tuple[str, int, str, int]],
        names: Sequence[Sequence[str | None]],
    ) -> Self: ...

@final
class KeyedStore:
    def __new__(
        cls,
        aggs: Sequence[tuple[str, int, int, int]],
        keys: Sequence[object],
        columns: Sequence[object],
        natives: Sequence[Compiled],
    ) -> Self: ...
    def insert(
        self,
        keys: Sequence[object],
        times: object,
        columns: Sequence[object],
        gone: tuple[Sequence[object], int] = ...,
    ) -> None: ...
    def query(
        self,
        keys: Sequence[object],
        times: object,
        windows: Sequence[tuple[str, int, str, int]],
        plus: Sequence[object] | None,
        fails: bool,
    ) -> tuple[list[list[ArrowArray]], list[tuple[int, int, int, int]]]: ...
    def first_times(
        self,
        keys: Sequence[object],
        times: object,
        windows: Sequence[tuple[str, int, str, int]],
        plus: bool,
    ) -> list[ArrowArray]: ...
    def ask(
        self, question: Question, key: object, at: int | None
    ) -> dict[str, Any] | None: ...
    def evict(self, until: int) -> int: ...
    @property
    def latest(self) -> int | None: ...
    def __len__(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    def check_invariants(self) -> None: ...

def sort_rows(rows: _Rows, threads: int) -> SortLayout: ...
def hop_windows(
    rows: _Rows, layout: SortLayout, length: int, every: int, offset: int, empty: bool
) -> tuple[ArrowArray, ArrowArray, ArrowArray, ArrowArray]: ...
def rows_are_sorted(rows: _Rows) -> bool: ...
def kernel_kind(kind: str, number: int) -> str: ...
def session_windows(
    rows: _Rows, layout: SortLayout, gap: int
) -> tuple[ArrowArray, ArrowArray, ArrowArray, ArrowArray]: ...
