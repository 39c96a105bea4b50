"""Stage `scope`: whose run it is, what gives things their meaning in it, and where it takes place.

Stage `intent`: what is asked, and the decisions that it may end in.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from contextplane.authoring.suggest import nearest
from contextplane.compiler.draft import Draft, Inputs, IntentPart, ScopePart
from contextplane.compiler.errors import (
    DocumentNotGiven,
    IntentMismatch,
    IntentUnknown,
    OntologyMissing,
    PackNotRequested,
    PrincipalMismatch,
    TenantMismatch,
)
from contextplane.model.compiled_context import EnvironmentValue, IntelligenceScope
from contextplane.model.ids import PackRef, UnpinnedRef

__all__ = ["intent", "scope"]

_FROM_CONTEXT = ("timezone", "currency", "region")


def scope(draft: Draft) -> Draft:
    """Request, run and pack belong together, the ontology is there, and each default has a source."""
    inputs = draft.inputs
    _refuse_other_tenants(inputs)
    _refuse_other_principals(inputs)
    _refuse_other_documents(inputs)
    refs = inputs.view.pack.intelligence_refs
    ontology = f"{refs.ontology.namespace}@{refs.ontology.version}"
    if ontology not in inputs.view.ontologies:
        raise OntologyMissing(
            f"{ontology} is not present in this environment",
            at="pack#/intelligence_refs/ontology",
            hint="publish it there, or pin a version that is present",
        )
    intelligence_scope = IntelligenceScope(
        ontology=ontology,
        snapshot=inputs.view.snapshot,
        snapshot_pin_rule=refs.knowledge_graph.snapshot_pin_rule,
        ceid_namespaces=refs.identity_layer.ceid_namespaces,
        embedding_keys=refs.embedding_keys,
    )
    notes = (
        ()
        if intelligence_scope.snapshot
        else (f"{intelligence_scope.snapshot_pin_rule} is not resolved to a snapshot",)
    )
    return replace(
        draft, scope=ScopePart(scope=intelligence_scope, environment=dict(_environment(inputs)), notes=notes)
    )


def _refuse_other_tenants(inputs: Inputs) -> None:
    run, request, pack = inputs.run_context, inputs.request, inputs.view.pack
    tenant = pack.pack_meta.tenant
    if request.tenant_id != run.tenant_id:
        raise TenantMismatch(
            f"the request is of {request.tenant_id}, the run of {run.tenant_id}",
            at="request#/tenant_id",
            hint="open the run for the tenant of the request",
        )
    if run.tenant_id != tenant.tenant_id and run.tenant_id not in tenant.shared_with:
        raise TenantMismatch(
            f"{inputs.view.ref} is of {tenant.tenant_id} and not shared with {run.tenant_id}",
            at="run_context#/tenant_id",
            hint="use a pack of this tenant",
        )
    for name, agent in (("request", request.agent), ("run_context", run.agent)):
        claim = agent.identity_claim
        if claim is not None and claim.tenant_id != run.tenant_id:
            raise TenantMismatch(
                f"the agent's identity claim is of {claim.tenant_id}, the run of {run.tenant_id}",
                at=f"{name}#/agent/identity_claim/tenant_id",
                hint="act under a claim for the tenant of the run",
            )


def _refuse_other_principals(inputs: Inputs) -> None:
    run, request = inputs.run_context, inputs.request
    for place, named, known in (
        ("/user/user_id", request.user.user_id, run.user.user_id),
        ("/agent/agent_id", request.agent.agent_id, run.agent.agent_id),
    ):
        if named != known:
            raise PrincipalMismatch(
                "the request names another one than the run",
                at=f"request#{place}",
                hint="send the request as those who were authenticated",
            )


def _refuse_other_documents(inputs: Inputs) -> None:
    request = inputs.request
    for n, ref in enumerate(request.context_pack_refs):
        try:
            PackRef.parse(ref)
        except UnpinnedRef as error:
            raise error.under(f"request#/context_pack_refs/{n}") from None
    if inputs.view.ref not in request.context_pack_refs:
        raise PackNotRequested(
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


def _environment(inputs: Inputs) -> Iterator[tuple[str, EnvironmentValue]]:
    """What the request says, else the run, else the defaults of the pack."""
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


def intent(draft: Draft) -> Draft:
    """The intent is one that the pack knows, and the one that the run was opened for."""
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
            hint=nearest(name, view.known_intents, "name an intent of the pack"),
        )
    found = view.intent(name)
    keys = tuple(spec.decision_key for spec in found.decisions)
    notes = () if keys else ("no decision is bound to this intent",)
    part = IntentPart(intent=name, decisions=keys, required_evidence=found.required_evidence, notes=notes)
    return replace(draft, intent=part)
