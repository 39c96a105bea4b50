"""The facts that a run has, and that conditions and plans can read. There are no others."""

from functools import lru_cache

__all__ = ["PATHS", "is_fact"]

_FACTS = frozenset({"request", "user", "agent", "tenant_id", "intent", "safety_mode", "run"})
"""What JSONLogic sees, and nothing else."""

_INPUT = ("context", "intent", "message", "channel", "locale", "attachments")
"""What a request holds."""

_WHOLE = (
    *("tenant_id.", "intent.", "safety_mode."),
    *("request.intent.", "request.message.", "request.channel.", "request.locale."),
)
"""Facts that are a text: nothing lies below them."""

_ROOTS = (*(f"request.{name}" for name in _INPUT), *sorted(_FACTS - {"request"}))
PATHS = f"a path begins with one of: {', '.join(_ROOTS)}"


@lru_cache(1024)
def is_fact(path: str) -> bool:
    """Whether a run can have something there. The empty path is all of them."""
    root, *rest = path.split(".")
    if not path.isascii() or path.startswith(_WHOLE):
        return False
    return not path or (root in _FACTS and (root != "request" or not rest or rest[0] in _INPUT))
