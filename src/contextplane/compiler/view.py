"""What is compiled from: a resolved pack, with all that can be prepared once and used for every request.

Texts that only the pack decides: what the business does, and how the agent speaks.
"""

from collections.abc import Callable, Hashable
from functools import cached_property
from typing import Any, NamedTuple, TypeVar, cast

import msgspec

from contextplane.authoring.evidence import spelled
from contextplane.compiler.errors import invalid, said_by
from contextplane.compiler.hashing import canonical_input, digest_of_input, named
from contextplane.compiler.quoting import listed, quoted
from contextplane.model.compiled_context import Lineage
from contextplane.model.context_pack import Audience, BusinessContext, ContextPack, DecisionSpec, Rule, ToneAndComms
from contextplane.model.json.canonical import survey
from contextplane.policy.engine import PolicyProgram
from contextplane.policy.tool_surface import ToolProgram

__all__ = ["IntentView", "PackView", "business_text", "tone_text"]


def business_text(business: BusinessContext) -> str:
    """What the business does, for whom, and what it never does."""
    summary = business.summary
    lines = [f"What we do: {quoted(summary.what_we_do)}"]
    if summary.who_we_serve:
        lines.append(f"Whom we serve: {listed(summary.who_we_serve)}")
    if summary.differentiators:
        lines.append(f"What sets us apart: {listed(summary.differentiators)}")
    if business.non_negotiables:
        lines.append("Non-negotiable:")
        lines += [f"- {quoted(non_negotiable)}" for non_negotiable in business.non_negotiables]
    return "\n".join(lines)


def tone_text(tone: ToneAndComms) -> str:
    """How to speak. It never stands above policy, and says so."""
    lines = [f"Voice: {listed(tone.voice_attributes)}."] if tone.voice_attributes else []
    lines += _habits("", Audience(do=tone.do, dont=tone.dont))
    lines += _habits("To customers: ", tone.customer_facing)
    lines += _habits("To operators: ", tone.operator_facing)
    return "\n".join(["How you speak never overrides policy or controls.", *lines])


def _habits(whom: str, habits: Audience | None) -> list[str]:
    if habits is None:
        return []
    lines = [f"{whom}Do: {listed(habits.do)}."] if habits.do else []
    return lines + ([f"{whom}Do not: {listed(habits.dont)}."] if habits.dont else [])


T = TypeVar("T")

_KEPT = 256
_READ = msgspec.json.Decoder(ContextPack)


class IntentView(NamedTuple):
    """What the pack says of one intent: the decisions it may end in, and the evidence that these require."""

    decisions: tuple[DecisionSpec, ...]
    required_evidence: tuple[str, ...]


class PackView:
    """A pack with its overlays and catalogs merged in, and what is known of its environment.

    The pack is read back from its canonical form: so the order of the keys in its file shapes nothing, a pack that is
    not of its form is refused however it was made, and nobody else holds a part of it that could be changed.
    `lineage` names the documents that it was made from, the base pack first, the rest in the order in which they were
    applied. `ontologies` are the versions that are present (`ont.support@1.0.0`), `snapshot` is the one that the
    pack's rule leads to; None: nobody resolved it. A view never changes; what it prepares, it keeps.
    """

    def __init__(
        self,
        pack: ContextPack,
        *,
        ontologies: tuple[str, ...],
        snapshot: str | None = None,
        lineage: tuple[Lineage, ...] | None = None,
    ) -> None:
        self._given = pack
        self.ontologies = ontologies
        self._snapshot = snapshot
        self._lineage = lineage
        self._intents: dict[str, IntentView] = {}
        self._kept: dict[Hashable, object] = {}

    @cached_property
    def pack(self) -> ContextPack:
        try:
            return _READ.decode(self._written)
        except msgspec.ValidationError as error:
            raise invalid([said_by(error)], "pack") from error

    @cached_property
    def ref(self) -> str:
        return str(self.pack.ref)

    @cached_property
    def digest(self) -> str:
        """The digest of the resolved pack."""
        return named(self._written)

    @cached_property
    def is_plain(self) -> bool:
        """Whether no bound of an argument and no schema has a float, as is nearly always so."""
        return survey([self.pack.tooling_layer, self.pack.policy_layer]) == []

    @cached_property
    def lineage(self) -> tuple[Lineage, ...]:
        """Without any given, the pack stands for itself."""
        return self._lineage or (Lineage(ref=self.ref, digest=self.digest),)

    @cached_property
    def documents(self) -> frozenset[str]:
        """What it was made from, by name."""
        return frozenset({self.ref, *(lineage.ref for lineage in self.lineage)})

    @cached_property
    def surroundings_digest(self) -> str:
        """The digest of what is known besides the pack itself."""
        return digest_of_input([[*self.ontologies], self._snapshot, *self.lineage], "surroundings")

    @cached_property
    def snapshot(self) -> str | None:
        """The snapshot of the graph; a rule that names one needs nobody to resolve it."""
        kind, _, name = self.pack.intelligence_refs.knowledge_graph.snapshot_pin_rule.partition(":")
        return name if kind == "snapshot" else self._snapshot

    @cached_property
    def known_intents(self) -> frozenset[str]:
        """Every intent that a rule, an evaluator target or a task template names."""
        pack = self.pack
        named = {target.intent for target in pack.evaluation_layer.eval_targets}
        named |= {template.intent for template in pack.task_layer.task_templates}
        return frozenset(named.union(*(_intents(rule) for rule in self._rules)))

    @cached_property
    def producers(self) -> dict[str, tuple[str, ...]]:
        """The tools whose result is evidence of a name."""
        found: dict[str, list[str]] = {}
        for permission in self.pack.tooling_layer.permissions:
            tool = f"{permission.adapter_id}.{permission.capability}"
            for name in permission.produces or (spelled(permission.adapter_id, permission.capability),):
                found.setdefault(name, []).append(tool)
        return {name: tuple(tools) for name, tools in found.items()}

    @cached_property
    def given_by(self) -> dict[str, tuple[str, ...]]:
        """For each tool the names of evidence that its result is and that some decision or rule asks for, in order."""
        asked = {name for spec in self.pack.decision_layer.decision_specs for name in spec.required_evidence}
        for rule in self._rules:
            asked.update(rule.then.requires, rule.otherwise.requires if rule.otherwise is not None else ())
        found: dict[str, list[str]] = {}
        for name in sorted(asked):
            for tool in dict.fromkeys(self.producers.get(name, ())):
                found.setdefault(tool, []).append(name)
        return {tool: tuple(names) for tool, names in found.items()}

    @cached_property
    def business(self) -> str:
        """What the business does and never does."""
        return business_text(self.pack.business_context)

    @cached_property
    def tone(self) -> str:
        """How the agent speaks."""
        return tone_text(self.pack.tone_and_comms)

    @cached_property
    def policy(self) -> PolicyProgram:
        """The rules, compiled."""
        specs = self.pack.decision_layer.decision_specs
        return PolicyProgram.of(
            self.pack.policy_layer, maxima={spec.decision_key: spec.approval_mode for spec in specs}
        )

    @cached_property
    def tooling(self) -> ToolProgram:
        """Registry and permissions, joined."""
        return ToolProgram.of(self.pack.tooling_layer, self.policy)

    def kept(self, key: Hashable, make: Callable[[], T]) -> T:
        """What was made for this key before. The last few hundred are kept, because requests are much alike."""
        found = self._kept.get(key)
        if found is None:
            if len(self._kept) >= _KEPT:
                self._kept.clear()
            found = self._kept[key] = make()
        return cast("T", found)

    def rationale(self, bundle_id: str, rule_id: str) -> str | None:
        return self._rationales[bundle_id, rule_id]

    def input_schema(self, adapter_id: str, capability: str) -> dict[str, Any] | None:
        return self._schemas.get((adapter_id, capability))

    def intent(self, intent: str) -> IntentView:
        """The decisions that rules or templates bind to the intent, in the order of the document."""
        if intent not in self._intents:
            self._intents[intent] = self._looked_up(intent)
        return self._intents[intent]

    def _looked_up(self, intent: str) -> IntentView:
        rules = (rule for rule in self._rules if "intent" not in rule.applies_to or intent in _intents(rule))
        keys = {rule.decision_binding for rule in rules}
        keys |= {
            task_template.decision_key
            for task_template in self.pack.task_layer.task_templates
            if task_template.intent == intent
        }
        decisions = tuple(spec for spec in self.pack.decision_layer.decision_specs if spec.decision_key in keys)
        required = dict.fromkeys(name for spec in decisions for name in spec.required_evidence)
        return IntentView(decisions=decisions, required_evidence=tuple(required))

    @cached_property
    def _written(self) -> bytes:
        return canonical_input(self._given, "pack")

    @cached_property
    def _rationales(self) -> dict[tuple[str, str], str | None]:
        bundles = self.pack.policy_layer.policy_bundles
        return {
            (bundle.bundle_id, rule.rule_id): rule.rationale for bundle in bundles for rule in bundle.policy_dsl.rules
        }

    @cached_property
    def _schemas(self) -> dict[tuple[str, str], dict[str, Any]]:
        return {
            (adapter.adapter_id, name): spec.input_schema
            for adapter in self.pack.tooling_layer.adapter_registry
            for name, spec in adapter.capability_specs.items()
            if spec.input_schema is not None
        }

    @cached_property
    def _rules(self) -> tuple[Rule, ...]:
        bundles = self.pack.policy_layer.policy_bundles
        return tuple(rule for bundle in bundles for rule in bundle.policy_dsl.rules)


def _intents(rule: Rule) -> tuple[str, ...]:
    named = rule.applies_to.get("intent", ())
    return (named,) if isinstance(named, str) else named
