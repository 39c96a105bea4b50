"""Stages `scope` and `intent`.

`scope` checks that request, run and pack belong together, and resolves ontology, snapshot and environment. `intent`
resolves what is requested, and the decisions that it may end in.
"""

from collections.abc import Iterator, Sequence

import msgspec
from msgspec.structs import replace

from contextplane.compiler.draft import Draft, Inputs, IntentPart, ScopePart
from contextplane.compiler.errors import (
    CompileOntologyMissing,
    CompileTenantMismatch,
    DocumentNotGiven,
    IntentMismatch,
    IntentUnknown,
    PackNotRequested,
    PrincipalMismatch,
    RequestIncomplete,
)
from contextplane.compiler.identity import check_identity
from contextplane.compiler.view import PackView
from contextplane.model.compiled_context import EnvironmentValue, IntelligenceScope
from contextplane.model.ids import PackRef, UnpinnedRef
from contextplane.model.suggestion import did_you_mean
from contextplane.policy.request_facts import request_facts_by_intent, request_problems

__all__ = ["other_version_error", "resolve_intent", "resolve_scope"]

_FROM_CONTEXT = ("timezone", "currency", "region")


def resolve_scope(draft: Draft) -> Draft:
    """Check that request, run and pack belong together, and resolve the ontology and the environment."""
    inputs = draft.inputs
    _refuse_other_tenants(inputs)
    _refuse_other_principals(inputs)
    check_identity(inputs.run_context, inputs.request)
    _refuse_other_documents(inputs)
    ontology = inputs.view.pack.intelligence_refs.pinned_ontology
    if ontology is not None and ontology not in inputs.view.ontologies:
        raise CompileOntologyMissing(
            f"{ontology} is not present in this environment",
            at="pack#/intelligence_refs/ontology",
            hint="publish it there, or pin a version that is present",
        )
    view = inputs.view
    intelligence_scope, notes = view.memoize("scope", lambda: (_intelligence_scope(view), (*_scope_notes(view),)))
    part = ScopePart(scope=intelligence_scope, environment=dict(_environment(draft.shown)), notes=notes)
    return replace(draft, scope=part)


def _intelligence_scope(view: PackView) -> IntelligenceScope:
    refs = view.pack.intelligence_refs
    return IntelligenceScope(
        ontology=refs.pinned_ontology,
        snapshot=view.snapshot,
        snapshot_pin_rule=refs.snapshot_pin_rule,
        ceid_namespaces=refs.ceid_namespaces,
        embedding_keys=refs.embedding_keys,
    )


def _scope_notes(view: PackView) -> Iterator[str]:
    """Yield which optional parts the pack leaves out, and whether its snapshot is unknown."""
    rule = view.pack.intelligence_refs.snapshot_pin_rule
    if rule is not None and not view.snapshot:
        yield f"{rule} is not resolved to a snapshot"
    for name in view.pack.absent_parts:
        yield f"the pack has no {name}"


def _refuse_other_tenants(inputs: Inputs) -> None:
    run, request, pack = inputs.run_context, inputs.request, inputs.view.pack
    tenant = pack.pack_meta.tenant
    if request.tenant_id != run.tenant_id:
        raise CompileTenantMismatch(
            f"the request is of {request.tenant_id}, the run of {run.tenant_id}",
            at="request#/tenant_id",
            hint="open the run for the tenant of the request",
        )
    if run.tenant_id != tenant.tenant_id and run.tenant_id not in tenant.shared_with:
        raise CompileTenantMismatch(
            f"{inputs.view.ref} is of {tenant.tenant_id} and not shared with {run.tenant_id}",
            at="run_context#/tenant_id",
            hint="use a pack of this tenant",
        )


def _refuse_other_principals(inputs: Inputs) -> None:
    run, request = inputs.run_context, inputs.request
    for place, requested, authenticated in (
        ("/user/user_id", request.user.user_id, run.user.user_id),
        ("/agent/agent_id", request.agent.agent_id, run.agent.agent_id),
        ("/agent/agent_urn", request.agent.agent_urn, run.agent.agent_urn),
    ):
        if requested is not None and requested != authenticated:
            raise PrincipalMismatch(
                "the request names another one than the run",
                at=f"request#{place}",
                hint="send the request as those who were authenticated",
            )


def _refuse_other_documents(inputs: Inputs) -> None:
    request = inputs.request
    for n, ref in enumerate(request.context_pack_refs):
        if ref == inputs.view.ref:
            continue
        try:
            PackRef.parse(ref)
        except UnpinnedRef as error:
            raise error.under(f"request#/context_pack_refs/{n}") from None
    if inputs.view.ref not in request.context_pack_refs:
        raise other_version_error(inputs.view.ref, request.context_pack_refs) or PackNotRequested(
            f"the request does not name {inputs.view.ref}",
            at="request#/context_pack_refs",
            hint="name the pinned version that is to be used",
        )
    for n, ref in enumerate(request.context_pack_refs):
        if ref not in inputs.view.documents:
            raise DocumentNotGiven(
                f"the request names {ref}, which is not here",
                at=f"request#/context_pack_refs/{n}",
                hint="give it with the pack: --catalog, with a file",
            )


def other_version_error(ref: str, requested: Sequence[str], chosen_by: str = "the pack is") -> PackNotRequested | None:
    """Return the error for a request that names another version of this pack; None if it names none.

    `chosen_by`: what chose this version, as the words before it.
    """
    pack_id = ref.partition("@")[0]
    for n, name in enumerate(requested):
        if name != ref and name.partition("@")[0] == pack_id:
            return PackNotRequested(
                f"the request names {name}, and {chosen_by} {ref}",
                at=f"request#/context_pack_refs/{n}",
                hint=f"write {ref} in the request, or compile {name}",
            )
    return None


def _environment(inputs: Inputs) -> Iterator[tuple[str, EnvironmentValue]]:
    """Yield each environment value: from the request, else from the run, else from the pack's defaults."""
    invoke_input, defaults = inputs.request.input, inputs.view.pack.pack_meta.environment_defaults
    if invoke_input.locale is not None:
        yield "language", EnvironmentValue(value=invoke_input.locale, source="request")
    elif inputs.run_context.locale is not None:
        yield "language", EnvironmentValue(value=inputs.run_context.locale, source="run_context")
    else:
        yield "language", EnvironmentValue(value=defaults.language, source="pack")
    for name in _FROM_CONTEXT:
        value = invoke_input.context.get(name)
        if isinstance(value, str) and value:
            yield name, EnvironmentValue(value=value, source="request")
        else:
            yield name, EnvironmentValue(value=getattr(defaults, name), source="pack")


def _refuse_incomplete_request(draft: Draft) -> None:
    """Refuse a request without the facts that the pack declares for its intent, naming all of them."""
    view, intent = draft.inputs.view, draft.inputs.request.input.intent
    by_intent = view.memoize("request_facts", lambda: request_facts_by_intent(view.pack.policy_layer))
    if intent not in by_intent:
        return
    problems = tuple(request_problems(by_intent[intent], msgspec.to_builtins(draft.inputs.request.input)))
    if problems:
        raise RequestIncomplete(intent, problems)


def resolve_intent(draft: Draft) -> Draft:
    """Check that the pack knows the intent and that the run was opened for it; look up its decisions."""
    view, name = draft.inputs.view, draft.inputs.request.input.intent
    opened_for = draft.inputs.run_context.intent
    if opened_for is not None and opened_for != name:
        raise IntentMismatch(
            f"the run is for {opened_for}, the request for {name}",
            at="request#/input/intent",
            hint="open a run for each intent",
        )
    if name not in view.known_intents:
        raise IntentUnknown(
            f"{view.ref} knows no intent {name}",
            at="request#/input/intent",
            hint=did_you_mean(name, view.known_intents, "name an intent of the pack"),
        )
    _refuse_incomplete_request(draft)
    return replace(draft, intent=view.share_part((), ("intent_part", name), lambda: _intent_part(view, name)))


def _intent_part(view: PackView, name: str) -> IntentPart:
    intent_view = view.intent(name)
    keys = tuple(spec.decision_key for spec in intent_view.decisions)
    notes = () if keys else ("no decision is bound to this intent",)
    return IntentPart(intent=name, decisions=keys, required_evidence=intent_view.required_evidence, notes=notes)
