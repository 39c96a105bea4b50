"""Exact token counters, by tiktoken. Its tables are read from a local folder, and never fetched."""

import hashlib
import os
from typing import TYPE_CHECKING, ClassVar, Literal

from contextplane.errors import ContextPlaneError, Family

if TYPE_CHECKING:
    from contextplane.model.tokens import Tokens

__all__ = ["TokensUnavailable", "load_exact_tokens"]

Encoding = Literal["o200k_base", "cl100k_base"]

_TABLES = "https://openaipublic.blob.core.windows.net/encodings"
_DIGESTS: dict[Encoding, str] = {
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
}


class TokensUnavailable(ContextPlaneError):
    """A token counter that cannot be loaded here. No other takes its place: it would keep other blocks."""

    code: ClassVar[str] = "tokens_unavailable"
    family: ClassVar[Family] = "refused"


class _ExactTokens:
    def __init__(self, name: Encoding) -> None:
        import tiktoken  # noqa: PLC0415  an extra

        self.name: str = name
        self._encoding = tiktoken.get_encoding(name)

    def count(self, text: str) -> int:
        return len(self._encoding.encode_ordinary(text))


def load_exact_tokens(name: Encoding, folder: str | None) -> "Tokens":
    """Load the counter of an encoding, or raise `TokensUnavailable` with the way to get it.

    `folder`: what `TIKTOKEN_CACHE_DIR` names, where tiktoken looks for its tables.
    """
    _check_table(name, folder)
    try:
        return _ExactTokens(name)
    except ImportError as error:
        raise TokensUnavailable(
            f"{name} is counted by tiktoken, which cannot be loaded: {error.msg}",
            at=name,
            hint="pip install 'contextplane[tokens]', or count with calibrated1",
        ) from error


def _check_table(name: Encoding, folder: str | None) -> None:
    """Refuse a table that is missing or altered: tiktoken would fetch it, and a compile uses no network."""
    problem = "TIKTOKEN_CACHE_DIR names no folder with it"
    if folder is not None:
        # tiktoken names a table by the SHA-1 of where it is published.
        file_name = hashlib.sha1(f"{_TABLES}/{name}.tiktoken".encode(), usedforsecurity=False).hexdigest()
        try:
            with open(os.path.join(folder, file_name), "rb") as file:
                digest = hashlib.sha256(file.read()).hexdigest()
        except OSError:
            digest = None
        if digest == _DIGESTS[name]:
            return
        problem = f"{folder} has {'none' if digest is None else 'another one'}"
    fetch = f"""python -c "import tiktoken; tiktoken.get_encoding('{name}')\""""
    raise TokensUnavailable(
        f"the table of {name} is not here: {problem}",
        at="TIKTOKEN_CACHE_DIR",
        hint=f"set it to a folder and run {fetch} once with a network, or count with calibrated1",
    )
