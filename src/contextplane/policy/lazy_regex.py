"""Regular expressions that are compiled when they are first used.

Those that look for what few documents hold are many and large: to compile them takes as long as starting an
interpreter, and a document without mistakes needs none of them.
"""

import re
from collections.abc import Callable
from functools import cache

__all__ = ["Expression", "expression"]

Expression = Callable[[], re.Pattern[str]]


def expression(pattern: str, flags: re.RegexFlag = re.NOFLAG) -> Expression:
    """Say which; call it to have it."""
    return cache(lambda: re.compile(pattern, flags))
