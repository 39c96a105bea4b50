"""Completes a bare invokeAgent envelope to a compile case, and lists what was assumed.

In production the run context comes from authentication, and the budget from the environment. Here the user and the
agent of the envelope count as authenticated, and everything else has a default that an override can replace.
"""

from collections.abc import Iterator, Sequence

from contextplane.authoring.positions import Place
from contextplane.authoring.source_file import AuthorFile, NamedFile
from contextplane.compiler.errors import InputInvalid
from contextplane.compiler.inputs import read_request
from contextplane.compiler.overrides import ABSENT, Override, put_value, value_at
from contextplane.model.context_pack import ContextPack
from contextplane.model.document_kind import is_envelope
from contextplane.model.ids import Digest, PackRef
from contextplane.model.invoke import InvokeRequest
from contextplane.model.json.canonical import Json, canonical
from contextplane.model.value import Value

__all__ = ["Assumption", "CompletedCase", "complete_case", "is_envelope", "pin_request"]

_BUCKET_TOKENS: dict[str, Json] = {
    "business": 1500,
    "policy": 1800,
    "tool": 1500,
    "evidence": 3500,
    "memory": 1500,
    "session": 2200,
}
"""The tokens of each bucket where nothing allots them, as in the example of a run context."""

_RUN_DIGITS = 16
_BUDGET = "/run_context/run_budget"
_TOTAL = f"{_BUDGET}/total_tokens"
_COPIED = ("tenant_id", "user", "agent", "session_id")
"""The members that the run context takes from the envelope."""


class Assumption(Value, frozen=True):
    """A value that the envelope does not have: its place in the completed case, and the reason in words."""

    at: str
    value: Json
    words: str


class CompletedCase(Value, frozen=True):
    """A compile case, and what was assumed to complete it. `overrides`: those still to be applied."""

    file: NamedFile
    assumptions: tuple[Assumption, ...] = ()
    overrides: tuple[Override, ...] = ()


class _EnvelopeFile(AuthorFile):
    """A completed case whose places are those of the envelope in its file."""

    def __init__(self, value: Json, source: AuthorFile) -> None:
        super().__init__(value, source.canonical, {})
        self._envelope = source

    def place(self, at: str) -> Place:
        return self._envelope.place(self.pointer(at))

    def pointer(self, at: str) -> str:
        """Return the place in the envelope of a place in the case; the envelope itself where it has none."""
        document, _, inner = at.removeprefix("/").partition("/")
        if document == "request" or (document == "run_context" and inner.partition("/")[0] in _COPIED):
            return f"/{inner}" if inner else ""
        return ""


def complete_case(file: NamedFile, pack: ContextPack, overrides: Sequence[Override] = ()) -> CompletedCase:
    """Return the case of a file; complete a bare envelope to one.

    With an envelope, the overrides of the run context are values of it, not changes: they replace the defaults, and are
    not among the overrides that are left.
    """
    value = file.file.value
    if not isinstance(value, dict) or not is_envelope(value):
        return CompletedCase(file=file, overrides=tuple(overrides))
    own = [override for override in overrides if override.at.startswith("/run_context/")]
    request = _request(value)
    surroundings: Json = {"ontologies": _ontologies(pack)}
    case: Json = {"request": value, "run_context": _run_context(value, request), "environment": surroundings}
    for override in own:
        case = put_value(case, override.at, override.value, name=override.name)
    named = {override.at for override in own}
    if _TOTAL not in named:
        buckets = value_at(case, f"{_BUDGET}/bucket_tokens")
        tokens = [size for size in buckets.values() if isinstance(size, int)] if isinstance(buckets, dict) else []
        case = put_value(case, _TOTAL, sum(tokens))
    return CompletedCase(
        file=NamedFile(path=file.path, file=_EnvelopeFile(case, file.file)),
        assumptions=tuple(assumption for assumption in _assumptions(case) if assumption.at not in named)
        if request is not None
        else (),
        overrides=tuple(override for override in overrides if override not in own),
    )


def _request(value: Json) -> InvokeRequest | None:
    """Return the request in an envelope; None if its form is wrong, which is reported with the case."""
    try:
        return read_request(value)
    except InputInvalid:
        return None


def _run_context(value: dict[str, Json], request: InvokeRequest | None) -> Json:
    """Return the run context for an envelope. The problems of a wrong envelope are not repeated in it."""
    limits: dict[str, Json] = {}
    if request is None:
        run: dict[str, Json] = {"tenant_id": "t", "user": {"user_id": "u"}, "agent": {"agent_id": "a"}}
        run |= {"run_id": "run_0", "trace_id": "0"}
    else:
        run = {name: value[name] for name in _COPIED if value.get(name) is not None}
        run |= {"run_id": _run_id(request), "trace_id": request.trace.trace_id, "intent": request.input.intent}
        hints = {
            "max_tool_calls": request.runtime.max_tool_calls,
            "wall_clock_ms": request.runtime.plan_timeout_ms,
            "max_cost_cents": request.runtime.max_cost_cents,
        }
        limits = {name: limit for name, limit in hints.items() if limit is not None}
    budget: dict[str, Json] = {"total_tokens": 0, "bucket_tokens": dict(_BUCKET_TOKENS), **limits}
    return {**run, "safety_mode": "read_only", "run_budget": budget}


def _run_id(request: InvokeRequest) -> str:
    """Return the run that the agent's claim is for; without a claim, the run of tenant and request."""
    claim = request.agent.identity_claim
    if claim is not None:
        return claim.run_id
    return f"run_{Digest.of(canonical([request.tenant_id, request.request_id])).hex[:_RUN_DIGITS]}"


def _ontologies(pack: ContextPack) -> list[Json]:
    name = pack.intelligence_refs.pinned_ontology
    return [] if name is None else [name]


def _assumptions(case: Json) -> Iterator[Assumption]:
    """Yield what the envelope does not say and the compile depends on."""

    def assume(at: str, words: str) -> Assumption:
        value = value_at(case, at)
        return Assumption(at=at, value=None if value is ABSENT else value, words=words)  # type: ignore[arg-type]

    role = value_at(case, "/run_context/user/role")
    words = "user and agent of the envelope count as authenticated"
    yield assume("/run_context/user", f"{words}; the user has no role, --role names one" if role is ABSENT else words)
    yield assume("/run_context/safety_mode", "the ceiling is read_only; --safety-mode sets another")
    total = value_at(case, _TOTAL)
    yield assume(_BUDGET, f"the budget is {total:,} tokens; --bucket NAME=TOKENS changes a bucket")
    names = value_at(case, "/environment/ontologies")
    present = ", ".join(map(str, names)) if isinstance(names, list) and names else "none"
    yield assume("/environment/ontologies", f"the ontologies that are present: {present}, as the pack pins them")
    yield assume("/evidence", "no evidence, no memories and no moment; write a whole request to give them")


def pin_request(file: NamedFile, ref: PackRef) -> NamedFile:
    """Return the file with the exact version where its request names the pack by its id alone."""
    at = "/context_pack_refs" if is_envelope(file.file.value) else "/request/context_pack_refs"
    refs = value_at(file.file.value, at)
    if not isinstance(refs, list) or ref.pack_id not in refs:
        return file
    pinned = [str(ref) if name == ref.pack_id else name for name in refs]
    return NamedFile(path=file.path, file=file.file.with_value(put_value(file.file.value, at, pinned)))
