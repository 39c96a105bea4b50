"""The chapters about the contract: written and judged, released by several people, compiled for one request.

Telling only what happened.
"""

import copy
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, cast

from contextplane.adapters.ed25519 import Ed25519Signer, generated
from contextplane.app.packs.files import case_from, pack_from
from contextplane.app.packs.lint import linted
from contextplane.app.packs.template import begin_pack, begin_request
from contextplane.app.platform import opened
from contextplane.app.registry.audit import verified
from contextplane.app.registry.keys import KeyDesk
from contextplane.app.registry.pins import pinned
from contextplane.app.registry.release import published, recorded, reviewed, signed
from contextplane.app.registry.resolve import resolved
from contextplane.app.registry.session import By, RegistryDesk
from contextplane.app.settings import Settings
from contextplane.authoring.gates.table import judged
from contextplane.compiler.case import read_case
from contextplane.errors import ContextPlaneError
from contextplane.model.compiled_context import CompiledContext
from contextplane.model.ids import PackRef
from contextplane.registry.resolution import Asked
from contextplane.runtime.published_source import from_value
from contextplane.trust.compatibility import Present

if TYPE_CHECKING:
    from contextplane.model.json.canonical import Json

__all__ = ["StoryUntrue", "compiled", "judged_first", "refusal", "released", "true"]


class StoryUntrue(ContextPlaneError):
    """The demo was about to tell something that did not happen."""

    code: ClassVar[str] = "demo_untrue"


def true(claim: bool, told: str) -> str:  # noqa: FBT001  reads as what it is
    if not claim:
        raise StoryUntrue(f"this did not happen: {told}")
    return told


def refusal(attempt: Callable[[], object]) -> str:
    """The code with which an attempt is refused."""
    try:
        attempt()
    except ContextPlaneError as error:
        return error.code
    raise StoryUntrue("this was not refused")


_ISSUER = "tenant_acme_prod"
_REF = PackRef.parse("ctxpack.support@1.0.0")
_PASSPHRASE = b"of the demo"
_REVIEWERS = {"architecture": (), "security": (), "data": (), "evaluation": ("support_ops",)}
"""In which roles others look at it. The last one also speaks for those who own the decision."""

_PEOPLE = {"architecture": "carol", "security": "bob", "data": "dave", "evaluation": "erin"}


def judged_first(settings: Settings) -> Iterator[str]:
    """A pack is written, and judged; and what an unsafe one would be told."""
    pack, request = _files(settings)
    begin_pack(pack)
    begin_request(request)
    yield "ctx new refunds.yaml; ctx new --request request.yaml: a pack to begin from, and a request for it"
    result = linted(pack_from(pack))
    told = "ctx lint refunds.yaml: eight gates, and no error"
    yield true(result.report.passed, told)
    unsafe: Any = copy.deepcopy(result.value)
    for permission in unsafe["tooling_layer"]["permissions"]:
        permission.pop("requires_approval_gate", None)
    yield "someone takes the approval gate off the refund; ctx lint refunds.yaml:"
    (first, *_) = [finding for finding in judged(unsafe).findings if finding.severity == "error"]
    yield f"  {first.gate}/{first.code} at {first.at}"
    yield f"  {first.cause}"
    yield f"  {first.cure}"


def released(settings: Settings) -> Iterator[str]:
    """Several people release it, and none of them alone."""
    value = _value(settings)
    with _desk(settings) as desk:
        author, people = _people(desk)
        yield "ctx keys new alice, ctx keys trust bob --role security, ...: who may sign, and in which role"
        drafted = recorded(desk, value, author)
        target = str(drafted.digest)
        yield f"ctx lint refunds.yaml --record: {drafted.ref} {target[:19]}..., reviews needed: {len(drafted.missing)}"
        own = refusal(lambda: reviewed(desk, target, "security", "approve", By(author, "looks fine to me")))
        yield f"its author reviews it: refused, {own}"
        yield f"it is signed before others have seen it: refused, {refusal(lambda: signed(desk, target, _why(author)))}"
        for role, signer in people.items():
            reviewed(desk, target, role, "approve", By(signer, "read, and in order"))
        yield f"ctx review, by {len(people)} others: {', '.join(people)}"
        signed(desk, target, _why(author))
        done = published(desk, target, _why(author))
        yield true(
            done.stage == "published",
            "ctx sign, ctx publish: all gates once more over the stored bytes, then published",
        )
        other = cast("Json", _with(value, "business_context", "non_negotiables", ["something else"]))
        yield f"other bytes under the same version: refused, {refusal(lambda: recorded(desk, other, author))}"
        pinned(desk, "prod", _REF, _why(author))
        yield f"ctx pin prod {_REF}: only what is pinned takes traffic"
        audit = verified(desk, lambda _done, _all: None)
        yield true(
            not audit.troubles,
            f"ctx verify --registry: {audit.entries} events, each signed, in one log; nothing was rewritten",
        )


def compiled(settings: Settings) -> Iterator[str]:
    """What an agent gets for one request, and what moves when the request does."""
    case: Any = case_from(_files(settings)[1]).file.value
    with _desk(settings) as desk:
        asked = Asked(refs=(_REF,), tenant=_ISSUER, environment="prod", purpose="new_traffic")
        present = Present(ontologies=tuple(case["environment"]["ontologies"]))
        found = resolved(desk, asked, present, max_age=None)
    source = from_value(found.value)
    yield f"resolved for prod: signed, reviewed, published, pinned, with {len(found.proof.events)} proofs"

    def compile_with(*changes: tuple[str, str, object]) -> CompiledContext:
        changed = copy.deepcopy(case)
        for part, name, value in changes:
            (changed["run_context"] if part == "run" else changed["request"]["input"]["context"])[name] = value
        return source.compile(read_case(changed))

    context = compile_with()
    yield f"ctx compile {_REF} --environment prod --request request.yaml: {case['request']['input']['message']}"
    yield from _told(context)
    same = compile_with().context_ledger.compiled_context_hash == context.context_ledger.compiled_context_hash
    yield true(same, "compiled again: the same bytes, the same hash")
    low = compile_with(("run", "safety_mode", "read_only"))
    yield "--safety-mode read_only: " + true(_tools(low) != _tools(context), f"only {', '.join(_tools(low))} are left")
    yield from (
        f"  left out: {omission.id}, {omission.reason}"
        for omission in low.manifests.omission_manifest
        if omission.kind == "tool"
    )
    unverified = compile_with(("context", "identity_verified", False))
    verdict = unverified.policy_decision
    denied = verdict is not None and not verdict.allowed
    yield "--set request.context.identity_verified=false: " + true(denied, f"denied, {verdict and verdict.reason}")


def _told(context: CompiledContext) -> Iterator[str]:
    rules = [rule for manifest_entry in context.manifests.policy_manifest for rule in manifest_entry.rule_ids]
    yield f"  tools: {', '.join(_tools(context))}"
    yield f"  rules: {', '.join(rules)}"
    yield f"  gates: {', '.join(context.runtime_controls.approval_gates_active)}"
    yield f"  {context.budget_report.tokens_used_at_compile} tokens, {context.context_ledger.compiled_context_hash}"


def _tools(context: CompiledContext) -> list[str]:
    return [
        f"{manifest_entry.adapter_id}.{name}"
        for manifest_entry in context.manifests.tool_manifest
        for name in manifest_entry.capabilities
    ]


@contextmanager
def _desk(settings: Settings) -> Iterator[RegistryDesk]:
    with opened(settings) as platform:
        yield RegistryDesk(KeyDesk(platform, lambda: _PASSPHRASE))


def _people(desk: RegistryDesk) -> tuple[Ed25519Signer, dict[str, Ed25519Signer]]:
    """The author, who owns the keyring, and one reviewer for each role, whose private keys nobody keeps."""
    desk.keys.make("alice", _ISSUER)
    author = desk.keys.signer("alice")
    people = {role: generated(_PASSPHRASE)[1] for role in _REVIEWERS}
    trusting = [
        desk.keys.trusting(signer.public_key, _ISSUER, roles=(role, *_REVIEWERS[role]), name=_PEOPLE[role])
        for role, signer in people.items()
    ]
    desk.keys.change(trusting, author)
    desk.keys.__dict__.pop("keyring", None)
    return author, people


def _why(signer: Ed25519Signer) -> By:
    return By(signer, "for the demo")


def _files(settings: Settings) -> tuple[str, str]:
    return os.path.join(settings.cwd, "refunds.yaml"), os.path.join(settings.cwd, "request.yaml")


def _value(settings: Settings) -> "Json":
    return pack_from(_files(settings)[0]).file.value


def _with(value: Any, layer: str, name: str, changed: object) -> dict[str, Any]:  # noqa: ANN401  a document
    return {**value, layer: {**value[layer], name: changed}}
