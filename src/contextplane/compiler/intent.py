"""Stage `intent`: what is asked, and the decisions that it may end in."""

from msgspec.structs import replace

from contextplane.authoring.nearest import nearest
from contextplane.compiler.draft import Draft, IntentPart
from contextplane.compiler.refusals import IntentMismatch, IntentUnknown

__all__ = ["intent"]


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
