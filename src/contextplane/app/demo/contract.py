"""The chapters about the contract: linted, released by several people, compiled for one request.

Each chapter does what it tells, and stops if something did not happen as told.
"""

import copy
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, cast

from contextplane.adapters.ed25519 import Ed25519Signer, generate_key
from contextplane.app.packs.files import read_case_file, read_pack_file
from contextplane.app.packs.lint import lint
from contextplane.app.packs.template import write_request_template, write_template
from contextplane.app.platform import open_platform
from contextplane.app.registry.audit import audit_registry
from contextplane.app.registry.keys import KeyStore
from contextplane.app.registry.pins import pin_version
from contextplane.app.registry.release import publish, record_draft, review, sign
from contextplane.app.registry.resolve import resolve_request
from contextplane.app.registry.session import RegistrySession, SignedBy
from contextplane.app.settings import Settings
from contextplane.authoring.gates.table import judge_pack
from contextplane.compiler.case import read_case
from contextplane.errors import ContextPlaneError
from contextplane.model.compiled_context import CompiledContext
from contextplane.model.ids import PackRef
from contextplane.registry.resolution import ResolveRequest
from contextplane.runtime.published_source import pack_source
from contextplane.trust.compatibility import RuntimeCapabilities

if TYPE_CHECKING:
    from contextplane.model.json.canonical import Json

__all__ = ["StoryUntrue", "authoring_chapter", "compile_chapter", "refusal_code", "release_chapter", "require"]


class StoryUntrue(ContextPlaneError):
    """The demo was about to tell something that did not happen."""

    code: ClassVar[str] = "demo_untrue"


def require(claim: bool, line: str) -> str:  # noqa: FBT001  the claim stands beside its line
    """Return the line; refuse to tell it if its claim does not hold."""
    if not claim:
        raise StoryUntrue(f"this did not happen: {line}")
    return line


def refusal_code(attempt: Callable[[], object]) -> str:
    """Return the error code with which an attempt is refused."""
    try:
        attempt()
    except ContextPlaneError as error:
        return error.code
    raise StoryUntrue("this was not refused")


_ISSUER = "tenant_acme_prod"
_REF = PackRef.parse("ctxpack.support@1.0.0")
_PASSPHRASE = b"of the demo"
_REVIEWERS = {"architecture": (), "security": (), "data": (), "evaluation": ("support_ops",)}
"""The roles in which others review it. The last reviewer also speaks for the owners of the decision."""

_PEOPLE = {"architecture": "carol", "security": "bob", "data": "dave", "evaluation": "erin"}


def authoring_chapter(settings: Settings) -> Iterator[str]:
    """Write a pack and lint it; then show the findings of an unsafe one."""
    pack, request = _file_paths(settings)
    write_template(pack)
    write_request_template(request)
    yield "ctx new refunds.yaml; ctx new --request request.yaml: a pack to begin from, and a request for it"
    result = lint(read_pack_file(pack))
    yield require(result.report.passed, "ctx lint refunds.yaml: eight gates, and no error")
    unsafe: Any = copy.deepcopy(result.value)
    for permission in unsafe["tooling_layer"]["permissions"]:
        permission.pop("requires_approval_gate", None)
    yield "someone takes the approval gate off the refund; ctx lint refunds.yaml:"
    (first, *_) = [finding for finding in judge_pack(unsafe).findings if finding.severity == "error"]
    yield f"  {first.gate}/{first.code} at {first.at}"
    yield f"  {first.cause}"
    yield f"  {first.cure}"


def release_chapter(settings: Settings) -> Iterator[str]:
    """Release the pack with several people; none of them can do it alone."""
    value = _pack_value(settings)
    with _session(settings) as session:
        author, people = _people(session)
        yield "ctx keys new alice, ctx keys trust bob --role security, ...: who may sign, and in which role"
        drafted = record_draft(session, value, author)
        target = str(drafted.digest)
        yield f"ctx lint refunds.yaml --record: {drafted.ref} {target[:19]}..., reviews needed: {len(drafted.missing)}"
        own = refusal_code(lambda: review(session, target, "security", "approve", SignedBy(author, "looks fine to me")))
        yield f"its author reviews it: refused, {own}"
        early = refusal_code(lambda: sign(session, target, _act_of(author)))
        yield f"it is signed before others have seen it: refused, {early}"
        for role, signer in people.items():
            review(session, target, role, "approve", SignedBy(signer, "read, and in order"))
        yield f"ctx review, by {len(people)} others: {', '.join(people)}"
        sign(session, target, _act_of(author))
        done = publish(session, target, _act_of(author))
        yield require(
            done.stage == "published",
            "ctx sign, ctx publish: all gates once more over the stored bytes, then published",
        )
        other = cast("Json", _with_member(value, "business_context", "non_negotiables", ["something else"]))
        taken = refusal_code(lambda: record_draft(session, other, author))
        yield f"other bytes under the same version: refused, {taken}"
        pin_version(session, "prod", _REF, _act_of(author))
        yield f"ctx pin prod {_REF}: only what is pinned takes traffic"
        audit = audit_registry(session, lambda _done, _all: None)
        yield require(
            not audit.problems,
            f"ctx verify --registry: {audit.entries} events, each signed, in one log; nothing was rewritten",
        )


def compile_chapter(settings: Settings) -> Iterator[str]:
    """Compile the pack for one request, and show what a change of the request changes."""
    case: Any = read_case_file(_file_paths(settings)[1]).file.value
    with _session(settings) as session:
        request = ResolveRequest(refs=(_REF,), tenant=_ISSUER, environment="prod", purpose="new_traffic")
        present = RuntimeCapabilities(ontologies=tuple(case["environment"]["ontologies"]))
        resolution = resolve_request(session, request, present, max_age=None)
    source = pack_source(resolution.value)
    yield f"resolved for prod: signed, reviewed, published, pinned, with {len(resolution.proof.events)} proofs"

    def compile_with(*changes: tuple[str, str, object]) -> CompiledContext:
        changed = copy.deepcopy(case)
        for part, name, value in changes:
            (changed["run_context"] if part == "run" else changed["request"]["input"]["context"])[name] = value
        return source.compile(read_case(changed))

    context = compile_with()
    yield f"ctx compile {_REF} --environment prod --request request.yaml: {case['request']['input']['message']}"
    yield from _summary_lines(context)
    same = compile_with().context_ledger.compiled_context_hash == context.context_ledger.compiled_context_hash
    yield require(same, "compiled again: the same bytes, the same hash")
    low = compile_with(("run", "safety_mode", "read_only"))
    yield "--safety-mode read_only: " + require(
        _tool_names(low) != _tool_names(context), f"only {', '.join(_tool_names(low))} are left"
    )
    yield from (
        f"  left out: {omission.id}, {omission.reason}"
        for omission in low.manifests.omission_manifest
        if omission.kind == "tool"
    )
    unverified = compile_with(("context", "identity_verified", False))
    verdict = unverified.policy_decision
    denied = verdict is not None and not verdict.allowed
    yield "--set request.context.identity_verified=false: " + require(denied, f"denied, {verdict and verdict.reason}")


def _summary_lines(context: CompiledContext) -> Iterator[str]:
    rules = [rule for bundle in context.manifests.policy_manifest for rule in bundle.rule_ids]
    yield f"  tools: {', '.join(_tool_names(context))}"
    yield f"  rules: {', '.join(rules)}"
    yield f"  gates: {', '.join(context.runtime_controls.approval_gates_active)}"
    yield f"  {context.budget_report.tokens_used_at_compile} tokens, {context.context_ledger.compiled_context_hash}"


def _tool_names(context: CompiledContext) -> list[str]:
    return [
        f"{adapter.adapter_id}.{name}" for adapter in context.manifests.tool_manifest for name in adapter.capabilities
    ]


@contextmanager
def _session(settings: Settings) -> Iterator[RegistrySession]:
    with open_platform(settings) as platform:
        yield RegistrySession(KeyStore(platform, lambda: _PASSPHRASE))


def _people(session: RegistrySession) -> tuple[Ed25519Signer, dict[str, Ed25519Signer]]:
    """Make the author, who owns the keyring, and one reviewer per role, whose private key is not stored."""
    session.keys.create_key("alice", _ISSUER)
    author = session.keys.signer("alice")
    people = {role: generate_key(_PASSPHRASE)[1] for role in _REVIEWERS}
    changes = [
        session.keys.key_trust(signer.public_key, _ISSUER, roles=(role, *_REVIEWERS[role]), name=_PEOPLE[role])
        for role, signer in people.items()
    ]
    session.keys.change(changes, author)
    session.keys.__dict__.pop("keyring", None)
    return author, people


def _act_of(signer: Ed25519Signer) -> SignedBy:
    return SignedBy(signer, "for the demo")


def _file_paths(settings: Settings) -> tuple[str, str]:
    return os.path.join(settings.cwd, "refunds.yaml"), os.path.join(settings.cwd, "request.yaml")


def _pack_value(settings: Settings) -> "Json":
    return read_pack_file(_file_paths(settings)[0]).file.value


def _with_member(value: Any, layer: str, name: str, changed: object) -> dict[str, Any]:  # noqa: ANN401  a document
    return {**value, layer: {**value[layer], name: changed}}
