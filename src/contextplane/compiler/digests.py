"""Digests of the inputs of a compile, and of the parts that stages produce."""

import hashlib
from typing import Any, TypeVar

import msgspec

from contextplane.compiler.errors import InputInvalid
from contextplane.model.invoke import AgentIdentity, InvokeRequest, RunContext, Trace
from contextplane.model.json.canonical import SORTED, canonical, collect_floats, to_rfc8785
from contextplane.model.json.errors import JsonRefused

__all__ = [
    "canonical_input",
    "digest",
    "digest_of_bytes",
    "digest_of_input",
    "digest_of_open_input",
    "digest_of_plain",
    "digest_of_plain_input",
    "normalize_numbers",
    "strip_correlation_ids",
    "text_digest",
]

D = TypeVar("D", RunContext, InvokeRequest)

_NO_TRACE = Trace(trace_id="", span_id="")


def digest(value: object) -> str:
    """The digest of the canonical form."""
    return digest_of_bytes(canonical(value))


def digest_of_plain(value: object) -> str:
    """The digest of a value whose types rule out floats, and whose texts and integers were checked before.

    Searching for floats is most of the cost of the canonical form.
    """
    encoded = SORTED.encode(value)
    if not encoded.isascii():
        encoded = to_rfc8785(encoded, ()) or encoded
    return digest_of_bytes(encoded)


def digest_of_input(value: object, name: str) -> str:
    """The digest of an input."""
    return digest_of_bytes(canonical_input(value, name))


def canonical_input(value: object, name: str) -> bytes:
    """The canonical form of an input. An input that has none is refused with its place."""
    try:
        return canonical(value)
    except JsonRefused as error:
        # On the wire, further claims stand beside the others.
        place = f"{name}#{error.at or ''}".replace("#/user/further/", "#/user/", 1)
        raise InputInvalid(error.message, at=place, hint=error.hint or "correct it") from error


def digest_of_open_input(value: object, name: str, open_parts: list[object]) -> str:
    """The digest of an input whose floats are all in `open_parts`. Only these are searched for floats.

    Each part must be nested as deep as in the input, or deeper.
    """
    try:
        # The encoder goes first: unlike the search, it ends on a value that contains itself.
        text = SORTED.encode(value)
        floats = collect_floats(open_parts)
        encoded = None if floats is None else to_rfc8785(text, floats)
    except (TypeError, ValueError, OverflowError, RecursionError):
        encoded = None
    return digest_of_input(value, name) if encoded is None else digest_of_bytes(encoded)


def digest_of_plain_input(value: object, name: str) -> str:
    """The digest of an input without numbers and without open parts."""
    try:
        return digest_of_plain(value)
    except (TypeError, ValueError):
        return digest_of_input(value, name)


def normalize_numbers(part: dict[str, Any]) -> dict[str, Any]:
    """Rewrite the numbers of an open part as its canonical form has them: 1.0 becomes 1.

    So inputs with the same digest are the same to every reader, even one that formats a number as text.
    """
    floats = collect_floats(part) if part else None
    return msgspec.json.decode(canonical(part)) if floats and any(map(float.is_integer, floats)) else part


def text_digest(text: str) -> str:
    return digest_of_bytes(text.encode())


def digest_of_bytes(data: bytes) -> str:
    # As `str(Digest.of(data))`, whose check of the digits costs more than the hash of a short text.
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def strip_correlation_ids(value: D) -> D:
    """Remove the ids that only connect records: those of request, run, session and trace.

    The hash and the validity window of an identity claim are removed as well. The hash covers the id of the run, and
    both are new with every claim: the same request a minute later would compile to another hash. Who acts, for whom
    and how far, stays.
    """
    agent = _strip_claim_ids(value.agent)
    if isinstance(value, RunContext):
        return msgspec.structs.replace(value, run_id="", trace_id="", session_id=None, agent=agent)
    return msgspec.structs.replace(value, request_id="", session_id=None, trace=_NO_TRACE, agent=agent)


def _strip_claim_ids(agent: AgentIdentity) -> AgentIdentity:
    if agent.identity_claim is None:
        return agent
    claim = msgspec.structs.replace(agent.identity_claim, run_id="", session_id=None, claim_hash="", nbf=None, exp=None)
    return msgspec.structs.replace(agent, identity_claim=claim)
