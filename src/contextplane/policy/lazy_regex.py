"""Regular expressions that are compiled on first use.

Those that search for what few documents contain are many and large: compiling them takes as long as starting an
interpreter, and a document without mistakes needs none of them.
"""

import re
from collections.abc import Callable
from functools import cache

__all__ = ["LazyPattern", "lazy_regex"]

LazyPattern = Callable[[], re.Pattern[str]]


def lazy_regex(pattern: str, flags: re.RegexFlag = re.NOFLAG) -> LazyPattern:
    """A function that compiles the pattern on its first call and returns it."""
    return cache(lambda: re.compile(pattern, flags))
