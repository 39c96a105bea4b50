"""What a decision catalog is held to: what holds for decisions and plans anywhere, and what its intents say of both."""

from collections.abc import Iterator

from contextplane.authoring.finding import Broken, Law
from contextplane.authoring.gates import integrity, misplaced_content, policy, risk, security, tenancy
from contextplane.authoring.subject import CatalogSubject

__all__ = ["LAWS"]


def templates_serve_an_intent_of_the_catalog(subject: CatalogSubject) -> Iterator[Broken]:
    """Every task template is for an intent of the catalog."""
    for at, template in subject.templates:
        if template.intent not in subject.intents:
            yield integrity.unknown(f"{at}/intent", "the intent", template.intent, subject.intents)


def eligible_templates_are_its_own(subject: CatalogSubject) -> Iterator[Broken]:
    """Every task template that an intent lists is one of the catalog, and is for that intent."""
    intents = {template.template_id: template.intent for _, template in subject.templates}
    for at, intent in subject.intents.values():
        for n, name in enumerate(intent.eligible_task_templates):
            place = f"{at}/eligible_task_templates/{n}"
            if name not in intents:
                yield integrity.unknown(place, "the task template", name, intents)
            elif intents[name] != intent.intent_id:
                cause = f"{name} is a plan for {intents[name]}, not for {intent.intent_id}"
                yield Broken(at=place, cause=cause, cure="list it there, or write one for this intent")


LAWS: tuple[Law[CatalogSubject], ...] = (
    *integrity.DECIDING_LAWS,
    Law(gate="integrity", code="template_intent_unknown", check=templates_serve_an_intent_of_the_catalog),
    Law(gate="integrity", code="eligible_template_unknown", check=eligible_templates_are_its_own),
    *risk.DECIDING_LAWS,
    *policy.DECIDING_LAWS,
    *tenancy.DECIDING_LAWS,
    *security.TEXT_LAWS,
    *misplaced_content.TEXT_LAWS,
)
