"""The chapters of the demo about the contract: written and linted, compiled for a request, released.

Each chapter does what it prints, and stops if something did not happen as printed.
"""

import copy
import os
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, cast

from contextplane.adapters.ed25519 import temporary_signer
from contextplane.app.compile.sources import source_from_file
from contextplane.app.packs.files import read_case_file, read_pack_file
from contextplane.app.packs.lint import lint
from contextplane.app.packs.template import write_request_template, write_template
from contextplane.app.registry.audit import audit_registry
from contextplane.app.registry.pins import pin_version
from contextplane.app.registry.release import publish, record_draft, review, sign
from contextplane.app.registry.resolve import resolve_request
from contextplane.app.registry.session import RegistrySession, SignedBy
from contextplane.app.session import LocalPrincipal, open_session
from contextplane.app.settings import Settings
from contextplane.authoring.gates.table import GATES, judge_pack
from contextplane.compiler.case import read_case
from contextplane.errors import ContextPlaneError
from contextplane.model.compiled_context import CompiledContext
from contextplane.model.ids import PackRef
from contextplane.model.keys import LOG
from contextplane.ports.keys import Signer
from contextplane.registry.resolution import ResolveRequest
from contextplane.runtime.published_source import pack_source
from contextplane.trust.compatibility import RuntimeCapabilities

if TYPE_CHECKING:
    from contextplane.model.json.canonical import Json

__all__ = ["StoryUntrue", "compile_chapter", "contract_chapter", "refusal_code", "release_chapter", "require"]


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
_PASSPHRASE = b"only for the demo"
_REVIEWERS = {"architecture": (), "security": (), "data": (), "evaluation": ("support_ops",)}
"""The roles in which others review it. The last reviewer also speaks for the owners of the decision."""

_EXCERPTS = (("R_REFUND_REQUIRES_IDV", 5), ("p_issue_refund", 7))
"""The parts of the contract that are shown: a rule and a permission, by name, each with its number of lines."""

_PEOPLE = {"architecture": "carol", "security": "bob", "data": "dave", "evaluation": "erin"}


def contract_chapter(settings: Settings) -> Iterator[str]:
    """Write a contract and lint it; then show that one without its approval gate is refused."""
    pack, request = _file_paths(settings)
    write_template(pack)
    write_request_template(request)
    with open(pack, encoding="utf-8") as file:
        lines = file.read().splitlines()
    yield f"ctx new refunds.yaml writes a contract of {len(lines)} lines. Twelve of them:"
    for name, size in _EXCERPTS:
        yield from (f"  {line}" for line in _excerpt(lines, name, size))
    result = lint(read_pack_file(pack))
    yield require(result.report.passed, f"ctx lint refunds.yaml: passed {len(GATES)} gates")
    unsafe: Any = copy.deepcopy(result.value)
    for permission in unsafe["tooling_layer"]["permissions"]:
        permission.pop("requires_approval_gate", None)
    (first, *_) = [finding for finding in judge_pack(unsafe).findings if finding.severity == "error"]
    yield f"The same without its approval gate: refused by {first.gate}/{first.code}"


def compile_chapter(settings: Settings) -> Iterator[str]:
    """Compile the contract for one request; then show two changes of the request, one of them denied."""
    context = _compile_file(settings)
    rules = [rule for bundle in context.manifests.policy_manifest for rule in bundle.rule_ids]
    context_hash = context.context_ledger.compiled_context_hash
    yield f"ctx compile refunds.yaml --request request.yaml: {_case(settings)['request']['input']['message']}"
    yield f"  tools  {', '.join(_tool_names(context))}"
    yield f"  rules  {', '.join(rules)}"
    yield f"  gates  {', '.join(context.runtime_controls.approval_gates_active)}"
    same = _compile_file(settings).context_ledger.compiled_context_hash == context_hash
    yield require(same, f"  hash   {context_hash}")
    read_only = _compile_file(settings, safety_mode="read_only")
    (omission,) = [omission for omission in read_only.manifests.omission_manifest if omission.kind == "tool"]
    yield f"--safety-mode read_only: {omission.id} is omitted ({omission.reason})"
    verdict = _compile_file(settings, identity_verified=False).policy_decision
    denied = verdict is not None and not verdict.allowed
    reason = (verdict.reason or "").rstrip(".") if verdict is not None else ""
    yield require(denied, f"--set request.context.identity_verified=false: denied. {reason}")


def release_chapter(settings: Settings) -> Iterator[str]:
    """Release the contract with several people: none of them can do it alone."""
    value = _pack_value(settings)
    with _session(settings) as session:
        author, people = _people(session)
        yield "ctx keys new alice, ctx keys trust bob --role security, ...: who may sign, in which role"
        drafted = record_draft(session, value, author)
        target = str(drafted.digest)
        yield f"ctx lint refunds.yaml --record: {drafted.ref} needs reviews in {len(drafted.missing)} roles"
        own = refusal_code(lambda: review(session, target, "security", "approve", SignedBy(author, "looks fine to me")))
        yield f"ctx review by its author: refused, {own}"
        for role, signer in people.items():
            review(session, target, role, "approve", SignedBy(signer, "read, and in order"))
        sign(session, target, _act_of(author))
        done = publish(session, target, _act_of(author))
        pin_version(session, "prod", _REF, _act_of(author))
        people_names = ", ".join(_PEOPLE[role] for role in people)
        yield require(
            done.stage == "published",
            f"ctx review by {people_names}; then ctx sign, ctx publish, ctx pin prod: done",
        )
        other = cast("Json", _with_member(value, "business_context", "non_negotiables", ["something else"]))
        taken = refusal_code(lambda: record_draft(session, other, author))
        yield f"Another contract under the same version: refused, {taken}"
        audit = audit_registry(session, lambda _done, _all: None)
        yield require(not audit.problems, f"ctx verify --registry: {audit.entries} signed events, none changed")
        pinned = _compile_pinned(session, settings).context_ledger.compiled_context_hash
    same = pinned == _compile_file(settings).context_ledger.compiled_context_hash
    yield require(same, f"ctx compile {_REF} --environment prod --request request.yaml: the same hash")


def _excerpt(lines: Sequence[str], name: str, size: int) -> list[str]:
    """Return so many lines of the contract from the one with this name on, moved to the left."""
    (start,) = [number for number, line in enumerate(lines) if line.endswith(f"_id: {name}") and "- " in line]
    return textwrap.dedent("\n".join(lines[start : start + size])).split("\n")


def _compile_file(settings: Settings, *, safety_mode: str = "", identity_verified: bool = True) -> CompiledContext:
    """Compile the contract's file for the request, with changes to the request."""
    case = _case(settings)
    if safety_mode:
        case["run_context"]["safety_mode"] = safety_mode
    case["request"]["input"]["context"]["identity_verified"] = identity_verified
    return source_from_file(_file_paths(settings)[0]).compile(read_case(case))


def _compile_pinned(session: RegistrySession, settings: Settings) -> CompiledContext:
    """Compile the version that prod pins, proved by the registry, for the same request."""
    case = _case(settings)
    request = ResolveRequest(refs=(_REF,), tenant=_ISSUER, environment="prod", purpose="new_traffic")
    present = RuntimeCapabilities(ontologies=tuple(case["environment"]["ontologies"]))
    resolution = resolve_request(session, request, present, max_age=None)
    return pack_source(resolution.value).compile(read_case(case))


def _case(settings: Settings) -> Any:  # noqa: ANN401  a document
    return copy.deepcopy(read_case_file(_file_paths(settings)[1]).file.value)


def _tool_names(context: CompiledContext) -> list[str]:
    return [
        f"{adapter.adapter_id}.{name}" for adapter in context.manifests.tool_manifest for name in adapter.capabilities
    ]


@contextmanager
def _session(settings: Settings) -> Iterator[RegistrySession]:
    with open_session(settings, LocalPrincipal(passphrase=lambda: _PASSPHRASE)) as session:
        yield session.registry()


def _people(session: RegistrySession) -> tuple[Signer, dict[str, Signer]]:
    """Make the author, who owns the keyring, and one reviewer per role, whose private key is not stored."""
    session.keys.create_key("alice", _ISSUER)
    author = session.keys.signer("alice")
    people: dict[str, Signer] = {role: temporary_signer() for role in _REVIEWERS}
    changes = [
        session.keys.key_trust(signer.public_key, _ISSUER, roles=(role, LOG, *_REVIEWERS[role]), name=_PEOPLE[role])
        for role, signer in people.items()
    ]
    session.keys.change(changes, author)
    session.keys.__dict__.pop("keyring", None)
    return author, people


def _act_of(signer: Signer) -> SignedBy:
    return SignedBy(signer, "for the demo")


def _file_paths(settings: Settings) -> tuple[str, str]:
    return os.path.join(settings.cwd, "refunds.yaml"), os.path.join(settings.cwd, "request.yaml")


def _pack_value(settings: Settings) -> "Json":
    return read_pack_file(_file_paths(settings)[0]).file.value


def _with_member(value: Any, layer: str, name: str, changed: object) -> dict[str, Any]:  # noqa: ANN401  a document
    return {**value, layer: {**value[layer], name: changed}}
