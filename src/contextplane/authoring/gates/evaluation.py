"""The evaluation gate: every intent has targets, and policy and safety may not regress.

Also the replay gate, which needs golden cases: without them its law is `unknown`, never passed.
"""

from collections.abc import Iterator

from contextplane.authoring.law import Law, Violation
from contextplane.authoring.subject import Subject

__all__ = ["LAWS", "LEFT_TO_CASES"]

LEFT_TO_CASES = "golden_cases_unstable"
"""The law that golden cases decide, which are not compiled here."""

_FLOORS = ("policy", "safety")


def every_intent_has_targets(subject: Subject) -> Iterator[Violation]:
    """Every intent that the pack serves has an evaluator target."""
    targeted = {target.intent for target in subject.pack.evaluation_layer.eval_targets}
    for intent, at in subject.intents.items():
        if intent not in targeted:
            yield Violation(
                at=at,
                cause=f"the intent {intent!r} has no entry in eval_targets",
                cure="say what success is: policy, utility, latency_p99_ms, safety, economics_cents_per_decision",
            )


def every_target_is_served(subject: Subject) -> Iterator[Violation]:
    """Every evaluator target is for an intent that a rule or a task template serves."""
    served = {intent for placed in subject.rules for intent in placed.intents}
    served |= {template.intent for template in subject.pack.task_layer.task_templates}
    for n, target in enumerate(subject.pack.evaluation_layer.eval_targets):
        if target.intent not in served:
            yield Violation(
                at=f"/evaluation_layer/eval_targets/{n}/intent",
                cause=f"no rule and no task template serves the intent {target.intent!r}",
                cure="write a rule that applies to it, or remove the target",
            )


def release_gates_hold_the_floors(subject: Subject) -> Iterator[Violation]:
    """The release gates include policy and safety."""
    gated = {gate.metric for gate in subject.pack.evaluation_layer.release_gates}
    for metric in _FLOORS:
        if metric not in gated:
            yield Violation(
                at="/evaluation_layer/release_gates",
                cause=f"there is no release gate for {metric}",
                cure=f'add {{"metric": "{metric}", "max_delta": 0}}',
            )


def floors_give_no_ground(subject: Subject) -> Iterator[Violation]:
    """A release gate for policy or safety allows no regression."""
    for n, gate in enumerate(subject.pack.evaluation_layer.release_gates):
        if gate.metric in _FLOORS and gate.max_delta > 0:
            yield Violation(
                at=f"/evaluation_layer/release_gates/{n}/max_delta",
                cause=f"{gate.metric} may get worse by {gate.max_delta}",
                cure="set max_delta to 0",
            )


def targets_ask_for_something(subject: Subject) -> Iterator[Violation]:
    """No score that is asked for is 0, which every run reaches, and no cost, which no run does."""
    for n, target in enumerate(subject.pack.evaluation_layer.eval_targets):
        scores = (("policy", target.policy), ("utility", target.utility), ("safety", target.safety))
        if all(score for _, score in scores) and target.economics_cents_per_decision:
            continue
        at = f"/evaluation_layer/eval_targets/{n}"
        for name, score in scores:
            if not score:
                cause = f"a target of 0 for {name} asks for nothing: every run of {target.intent} reaches it"
                yield Violation(at=f"{at}/{name}", cause=cause, cure="write the least that is good enough")
        if not target.economics_cents_per_decision:
            cause = f"no run of {target.intent} costs nothing, so the target is never reached"
            yield Violation(at=f"{at}/economics_cents_per_decision", cause=cause, cure="write what a decision may cost")


_EVALUATION_LAWS: tuple[Law[Subject], ...] = (
    Law(gate="evaluation", code="intent_without_target", check=every_intent_has_targets),
    Law(gate="evaluation", code="target_without_intent", check=every_target_is_served),
    Law(gate="evaluation", code="release_gate_missing", check=release_gates_hold_the_floors),
    Law(gate="evaluation", code="target_idle", check=targets_ask_for_something),
    Law(gate="evaluation", code="release_gate_loose", check=floors_give_no_ground, severity="warning"),
)


def golden_cases_are_stable(subject: Subject) -> Iterator[Violation]:
    """Golden cases compile to stable manifests and budget reports."""
    if subject.intents:
        yield Violation(
            at="",
            cause="golden cases are not compiled here",
            cure="'ctx check PACK --golden DIR' compiles them, and 'ctx publish --golden DIR' refuses what drifted",
            unknown=True,
        )


_REPLAY_LAWS: tuple[Law[Subject], ...] = (Law(gate="replay", code=LEFT_TO_CASES, check=golden_cases_are_stable),)

LAWS: tuple[Law[Subject], ...] = (*_REPLAY_LAWS, *_EVALUATION_LAWS)
