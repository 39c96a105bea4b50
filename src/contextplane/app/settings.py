"""What the environment says. The only module that reads environment variables; everyone else is handed a `Settings`."""

import os

from contextplane.model.value import Value

__all__ = ["Settings", "from_environment"]


class Settings(Value, frozen=True):
    """Where we are and what we were told."""

    cwd: str
    ctx_dir: str | None = None
    no_color: bool = False


def from_environment() -> Settings:
    """`CTX_DIR` names the store's folder; `NO_COLOR` asks for plain output."""
    return Settings(
        cwd=os.getcwd(),
        ctx_dir=os.environ.get("CTX_DIR") or None,
        no_color=bool(os.environ.get("NO_COLOR")),
    )
