"""The view of a resolved pack: everything that can be prepared once and used for every request.

It includes the texts that only the pack decides: what the business does, and how the agent speaks.
"""

from collections.abc import Callable, Hashable, Iterator
from functools import cached_property
from typing import NamedTuple, TypeVar, cast

import msgspec

from contextplane.authoring.evidence import EvidenceProducers
from contextplane.compiler.digests import canonical_input, digest, digest_of_bytes, digest_of_input, digest_of_plain
from contextplane.compiler.errors import input_error, type_problem
from contextplane.compiler.prompt import SYSTEM
from contextplane.compiler.quotation import inline, inline_list
from contextplane.model.compiled_context import Lineage
from contextplane.model.context_pack import (
    Audience,
    BusinessContext,
    ContextPack,
    DecisionSpec,
    EnvironmentDefaults,
    ToneAndComms,
)
from contextplane.model.json.canonical import collect_floats
from contextplane.model.pack_layers import Adapter, Guardrail, Rule
from contextplane.policy.bounds import permission_references, rule_references
from contextplane.policy.engine import PolicyProgram
from contextplane.policy.redaction.redactor import Redactor
from contextplane.policy.tool_surface import IntentReach, ToolProgram

__all__ = ["IntentView", "PackView", "business_text", "decisions_text", "tone_text"]


def business_text(business: BusinessContext) -> str:
    """The business text: what it does, for whom, and what it never does."""
    summary = business.summary
    lines = [f"What we do: {inline(summary.what_we_do)}"]
    if summary.who_we_serve:
        lines.append(f"For: {inline_list(summary.who_we_serve)}")
    if summary.differentiators:
        lines.append(f"Known for: {inline_list(summary.differentiators)}")
    if business.non_negotiables:
        lines.append("Non-negotiable:")
        lines += [f"- {inline(non_negotiable)}" for non_negotiable in business.non_negotiables]
    return "\n".join(lines)


def tone_text(tone: ToneAndComms) -> str:
    """The text on how the agent speaks. It says that policy overrides it."""
    lines = [f"Voice: {inline_list(tone.voice_attributes)}."] if tone.voice_attributes else []
    lines += _habits("", Audience(do=tone.do, dont=tone.dont))
    lines += _habits("To customers: ", tone.customer_facing)
    lines += _habits("To operators: ", tone.operator_facing)
    return "\n".join(["# How you speak, never above policy", *lines]) if lines else ""


def _habits(audience: str, habits: Audience | None) -> list[str]:
    if habits is None:
        return []
    lines = [f"{audience}Do: {inline_list(habits.do)}."] if habits.do else []
    return lines + ([f"{audience}Do not: {inline_list(habits.dont)}."] if habits.dont else [])


def decisions_text(pack: ContextPack) -> str:
    """The text on what every decision of the pack can end in, on its guardrails and on its defaults."""
    lines = [
        f"{spec.decision_key} ({spec.decision_right}): {' | '.join(spec.allowed_outcomes)}"
        for spec in pack.decision_layer.decision_specs
    ]
    guardrails, defaults = pack.policy_layer.guardrails, pack.pack_meta.environment_defaults
    for words, names in (
        ("Refuse on", [*map(_label, guardrails.must_refuse)]),
        ("Escalate on", [*map(_label, guardrails.must_escalate)]),
        ("Redact", [*guardrails.redaction_rules]),
        ("Unless told otherwise", [f"{name} {inline(value)}" for name, value in environment_values(defaults)]),
    ):
        if names:
            lines.append(f"{words}: {', '.join(names)}.")
    return "\n".join(["# Decisions", *lines])


def environment_values(defaults: EnvironmentDefaults) -> Iterator[tuple[str, str]]:
    """Yield the defaults that the pack states, by name."""
    for name, value in msgspec.structs.asdict(defaults).items():
        if isinstance(value, str):
            yield name, value


def _label(guardrail: str | Guardrail) -> str:
    """The label of a guardrail, and what to say where it is triggered."""
    if isinstance(guardrail, str) or guardrail.message is None:
        return guardrail if isinstance(guardrail, str) else guardrail.id
    return f"{guardrail.id} (say: {inline(guardrail.message)})"


T = TypeVar("T")

_MEMO_LIMIT = 256
_DECODER = msgspec.json.Decoder(ContextPack)


class IntentView(NamedTuple):
    """The decisions that an intent may end in, the evidence that they require, and the tools they can use."""

    decisions: tuple[DecisionSpec, ...]
    required_evidence: tuple[str, ...]
    reach: IntentReach


class PackView:
    """A pack with its overlays and catalogs merged in, and what is known of its environment.

    The pack is decoded from its canonical form. So the order of the keys in its file does not matter, a pack that is
    not of its form is refused however it was made, and no other code holds a part of it that could be changed.
    `lineage` names the documents that it was made from: the base pack, then the others in the order in which they were
    applied. `ontologies`: the versions that are present (`ont.support@1.0.0`). `snapshot`: the one that the pack's rule
    resolves to; None if it was not resolved. A view never changes, and memoizes what it prepares.
    """

    def __init__(
        self,
        pack: ContextPack,
        *,
        ontologies: tuple[str, ...],
        snapshot: str | None = None,
        lineage: tuple[Lineage, ...] | None = None,
    ) -> None:
        self._source_pack = pack
        self.ontologies = ontologies
        self._snapshot = snapshot
        self._lineage = lineage
        self._memo: dict[Hashable, object] = {}

    @cached_property
    def pack(self) -> ContextPack:
        try:
            return _DECODER.decode(self._canonical)
        except msgspec.ValidationError as error:
            raise input_error([type_problem(error)], "pack") from error

    @cached_property
    def ref(self) -> str:
        return str(self.pack.ref)

    @cached_property
    def digest(self) -> str:
        """The digest of the resolved pack."""
        return digest_of_bytes(self._canonical)

    @cached_property
    def is_plain(self) -> bool:
        """Whether no bound of an argument and no schema has a float, which is nearly always true.

        A bound that is the value of a fact may be one.
        """
        floats = collect_floats([self.pack.tooling_layer, self.pack.policy_layer])
        return floats == [] and not any(rule_references(self.pack.policy_layer)) and not self.policy.references

    @cached_property
    def may_read_run(self) -> bool:
        """Whether an expression of the pack may read a fact of the run. False is a proof."""
        return any(name in self._canonical for name in (b'"run.', b'"run"', b'""'))

    @cached_property
    def lineage(self) -> tuple[Lineage, ...]:
        """The lineage given, else the pack's own ref and digest."""
        return self._lineage or (Lineage(ref=self.ref, digest=self.digest),)

    @cached_property
    def documents(self) -> frozenset[str]:
        """The refs of the documents that the pack was made from, its own included."""
        return frozenset({self.ref, *(lineage.ref for lineage in self.lineage)})

    @cached_property
    def surroundings_digest(self) -> str:
        """The digest of the environment and the lineage, which are no part of the pack."""
        return digest_of_input([[*self.ontologies], self._snapshot, *self.lineage], "surroundings")

    @cached_property
    def snapshot(self) -> str | None:
        """The snapshot that the pin rule names, else the resolved one; None without a graph."""
        kind, _, name = (self.pack.intelligence_refs.snapshot_pin_rule or "").partition(":")
        return name if kind == "snapshot" else self._snapshot if kind else None

    @cached_property
    def known_intents(self) -> frozenset[str]:
        """Every intent that a rule, an evaluator target or a task template names."""
        pack = self.pack
        intents = {target.intent for target in pack.evaluation_layer.eval_targets}
        intents |= {template.intent for template in pack.task_layer.task_templates}
        return frozenset(intents.union(*(_intents(rule) for rule in self._rules)))

    @cached_property
    def evidence_producers(self) -> EvidenceProducers:
        """Who produces each name of evidence."""
        return EvidenceProducers.of_pack(self.pack)

    @cached_property
    def business(self) -> str:
        """The business text of the pack."""
        return business_text(self.pack.business_context)

    @cached_property
    def system(self) -> str:
        """The system text: who the model is, how it speaks, and what its decisions can end in."""
        return "\n\n".join(filter(None, (SYSTEM, tone_text(self.pack.tone_and_comms), decisions_text(self.pack))))

    @cached_property
    def policy(self) -> PolicyProgram:
        """The rules, compiled."""
        specs = self.pack.decision_layer.decision_specs
        return PolicyProgram.of(
            self.pack.policy_layer,
            maxima={spec.decision_key: spec.approval_mode for spec in specs},
            references=frozenset(permission_references(self.pack.tooling_layer)),
        )

    @cached_property
    def tooling(self) -> ToolProgram:
        """The adapter registry joined with the permissions."""
        return ToolProgram.of(self.pack.tooling_layer, self.policy)

    @cached_property
    def redactor(self) -> Redactor:
        """The redactor of the pack's rules."""
        return Redactor(self.pack.policy_layer.guardrails.redaction_rules)

    def memoize(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value made for this key before, else a new one. A few hundred are kept: requests are much alike."""
        value = self._memo.get(key)
        if value is None:
            if len(self._memo) >= _MEMO_LIMIT:
                self._memo.clear()
            value = self._memo[key] = make()
        return cast("T", value)

    def memoize_by(self, objects: tuple[object, ...], key: Hashable, make: Callable[[], T]) -> T:
        """As `memoize`, for what these objects decide as well. They are compared by identity.

        To hash them would take longer than to make the value. They are kept beside it, so that no other object can have
        the identity of one of them.
        """
        return self.memoize((key, *map(id, objects)), lambda: (make(), objects))[0]

    def share_part(self, objects: tuple[object, ...], key: Hashable, make: Callable[[], T]) -> T:
        """The part of a stage that these objects and the key decide, memoized together with its digest."""
        return self.memoize_by(objects, key, lambda: self._register_part(make()))

    def _register_part(self, part: T) -> T:
        self.memoize(("digest", id(part)), lambda: (self._hash_part(part), part))
        return part

    def digest_of_part(self, part: object) -> str:
        """The digest of the part of a stage."""
        shared = self._memo.get(("digest", id(part)))
        return self._hash_part(part) if shared is None else cast("tuple[str, object]", shared)[0]

    def _hash_part(self, part: object) -> str:
        return digest_of_plain(part) if self.is_plain else digest(part)

    def intent(self, intent: str) -> IntentView:
        """The decisions that rules or templates bind to the intent, in the order of the document."""
        return self.memoize(("intent", intent), lambda: self._build_intent(intent))

    def _build_intent(self, intent: str) -> IntentView:
        rules = (rule for rule in self._rules if "intent" not in rule.applies_to or intent in _intents(rule))
        keys = {rule.decision_binding for rule in rules}
        keys |= {template.decision_key for template in self.pack.task_layer.task_templates if template.intent == intent}
        decisions = tuple(spec for spec in self.pack.decision_layer.decision_specs if spec.decision_key in keys)
        required = dict.fromkeys(name for spec in decisions for name in spec.required_evidence)
        return IntentView(
            decisions=decisions, required_evidence=tuple(required), reach=IntentReach.of_decisions(decisions)
        )

    @cached_property
    def _canonical(self) -> bytes:
        return canonical_input(self._source_pack, "pack")

    @cached_property
    def rationales(self) -> dict[tuple[str, str], str | None]:
        """The rationale of each rule, by the ids of its bundle and the rule."""
        bundles = self.pack.policy_layer.policy_bundles
        return {
            (bundle.bundle_id, rule.rule_id): rule.rationale for bundle in bundles for rule in bundle.policy_dsl.rules
        }

    @cached_property
    def adapters(self) -> dict[str, Adapter]:
        return {adapter.adapter_id: adapter for adapter in self.pack.tooling_layer.adapter_registry}

    @cached_property
    def _rules(self) -> tuple[Rule, ...]:
        bundles = self.pack.policy_layer.policy_bundles
        return tuple(rule for bundle in bundles for rule in bundle.policy_dsl.rules)


def _intents(rule: Rule) -> tuple[str, ...]:
    intents = rule.applies_to.get("intent", ())
    return (intents,) if isinstance(intents, str) else intents
