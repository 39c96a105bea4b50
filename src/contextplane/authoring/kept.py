"""A property that is worked out once."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

__all__ = ["kept"]

T = TypeVar("T")
O = TypeVar("O")  # noqa: E741  an owner


class kept(Generic[O, T]):  # noqa: N801  it reads like `property`
    """A property that is worked out when it is first asked for, and kept.

    As `functools.cached_property`, without its lock: that takes longer than most of what is kept here.
    """

    def __init__(self, make: Callable[[O], T]) -> None:
        self.make = make
        self.name = make.__name__
        self.__doc__ = make.__doc__

    @overload
    def __get__(self, owner: None, kind: type[Any]) -> "kept[O, T]": ...
    @overload
    def __get__(self, owner: O, kind: type[Any]) -> T: ...
    def __get__(self, owner: O | None, kind: type[Any]) -> "T | kept[O, T]":
        if owner is None:
            return self
        value = owner.__dict__[self.name] = self.make(owner)
        return value
