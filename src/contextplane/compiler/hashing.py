"""Digests of inputs and of what stages produce."""

import hashlib
from typing import Any, TypeVar

import msgspec

from contextplane.compiler.errors import InputInvalid
from contextplane.model.invoke import AgentIdentity, InvokeRequest, RunContext, Trace
from contextplane.model.json.canonical import SORTED, canonical, settled, survey
from contextplane.model.json.errors import JsonRefused

__all__ = [
    "canonical_input",
    "digest",
    "digest_of_input",
    "digest_of_open_input",
    "digest_of_plain",
    "digest_of_plain_input",
    "named",
    "spelled",
    "text_digest",
    "without_correlation",
]

D = TypeVar("D", RunContext, InvokeRequest)

_NO_TRACE = Trace(trace_id="", span_id="")


def digest(value: object) -> str:
    """The digest of the canonical form."""
    return named(canonical(value))


def digest_of_plain(value: object) -> str:
    """The same, of a value whose types rule out floats and whose texts and integers were checked before.

    Looking for floats is most of what the canonical form costs.
    """
    encoded = settled(SORTED.encode(value), ())
    return digest(value) if encoded is None else named(encoded)


def digest_of_input(value: object, name: str) -> str:
    """The digest of an input."""
    return named(canonical_input(value, name))


def canonical_input(value: object, name: str) -> bytes:
    """The canonical form of an input; one without any is refused with its place."""
    try:
        return canonical(value)
    except JsonRefused as error:
        # On the wire, further claims stand beside the others.
        place = f"{name}#{error.at or ''}".replace("#/user/further/", "#/user/", 1)
        raise InputInvalid(error.message, at=place, hint=error.hint or "correct it") from error


def digest_of_open_input(value: object, name: str, open_parts: list[object]) -> str:
    """The digest of an input whose floats all stand in these parts of it. Only they are looked through.

    Each is given as deep as it stands in the input, or deeper.
    """
    try:
        # The encoder goes first: unlike the survey, it ends on a value that contains itself.
        written = SORTED.encode(value)
        floats = survey(open_parts)
        encoded = None if floats is None else settled(written, floats)
    except (TypeError, ValueError, OverflowError, RecursionError):
        encoded = None
    return digest_of_input(value, name) if encoded is None else named(encoded)


def digest_of_plain_input(value: object, name: str) -> str:
    """The digest of an input without any number or open part."""
    try:
        return digest_of_plain(value)
    except (TypeError, ValueError):
        return digest_of_input(value, name)


def spelled(part: dict[str, Any]) -> dict[str, Any]:
    """An open part of an input that has a digest, as its canonical form has it: 1.0 and 1 are one number.

    So what has the same digest is the same for everybody who reads it, also for one who makes a text of a number.
    """
    floats = survey(part) if part else None
    return msgspec.json.decode(canonical(part)) if floats and any(map(float.is_integer, floats)) else part


def text_digest(text: str) -> str:
    return named(text.encode())


def named(data: bytes) -> str:
    # As `str(Digest.of(data))`, whose check of the digits costs more than the hash of a short text.
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def without_correlation(value: D) -> D:
    """An input without the ids that only connect records: those of request, run, session and trace.

    Of an identity claim its hash and its window go as well. The hash covers the id of the run, and both are new with
    every claim: the same request a minute later would compile to another hash. Who acts, for whom and how far, stays.
    """
    agent = _unbound(value.agent)
    if isinstance(value, RunContext):
        return msgspec.structs.replace(value, run_id="", trace_id="", session_id=None, agent=agent)
    return msgspec.structs.replace(value, request_id="", session_id=None, trace=_NO_TRACE, agent=agent)


def _unbound(agent: AgentIdentity) -> AgentIdentity:
    if agent.identity_claim is None:
        return agent
    claim = msgspec.structs.replace(agent.identity_claim, run_id="", session_id=None, claim_hash="", nbf=None, exp=None)
    return msgspec.structs.replace(agent, identity_claim=claim)
