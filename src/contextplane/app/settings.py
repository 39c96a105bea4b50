"""What the environment says. The only module that reads environment variables; everyone else is handed a `Settings`."""

import os

from contextplane.model.value import Value

__all__ = ["Settings", "from_environment"]


class Settings(Value, frozen=True):
    """Where we are and what we were told."""

    cwd: str
    ctx_dir: str | None = None
    no_color: bool = False
    debug: bool = False


def from_environment() -> Settings:
    """`CTX_DIR` names the store's folder; `NO_COLOR` asks for plain output; `CTX_DEBUG` for the place of a defect."""
    return Settings(
        cwd=_working_folder(),
        ctx_dir=os.environ.get("CTX_DIR") or None,
        no_color=bool(os.environ.get("NO_COLOR")),
        debug=bool(os.environ.get("CTX_DEBUG")),
    )


def _working_folder() -> str:
    """Where we are; nowhere, when that folder was removed under us. What is looked for there is not found, then."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return os.path.join(os.sep, "removed")
