"""`cached_property`: an attribute that is computed when it is first read."""

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

__all__ = ["cached_property"]

_T = TypeVar("_T")


class cached_property(Generic[_T]):  # noqa: N801 - the name of functools
    """As that of `functools`, which holds a lock before Python 3.12.

    A child of `os.fork` would wait for ever for a thread that it does not have. Threads
    that read an attribute at the same time may compute it more than once.

    Example:
        >>> class Circle:
        ...     @cached_property
        ...     def area(self) -> float:
        ...         print("computed")
        ...         return 3.14
        >>> circle = Circle()
        >>> circle.area, circle.area
        computed
        (3.14, 3.14)
    """

    def __init__(self, compute: Callable[[Any], _T]) -> None:
        self._compute, self.__doc__ = compute, compute.__doc__

    def __set_name__(self, _: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type) -> _T: ...

    def __get__(self, instance: object | None, owner: type) -> Self | _T:
        """The value, which the instance keeps under the name of the attribute."""
        if instance is None:
            return self
        # Python looks here only if the instance has no such entry.
        value = self._compute(instance)
        vars(instance)[self._name] = value
        return value
