"""The texts around the blocks: what the model must honor, and what it is asked."""

from collections.abc import Iterator

from contextplane.compiler.draft import Draft
from contextplane.compiler.quoting import quoted
from contextplane.model.compiled_context import RuntimeControls

__all__ = ["developer_text", "task_text"]

_HONOR = "Honor the policy_manifest, tool_manifest, runtime_controls, and required_evidence at every step."


def developer_text(draft: Draft, controls: RuntimeControls) -> str:
    """What holds for this run: the verdict, the controls, the evidence that is needed, and how to speak."""
    controlled = _controls(controls, may_wait=draft.policy.verdict.allowed)
    return "\n".join([_HONOR, *_verdict(draft), *controlled, *_decisions(draft), draft.inputs.view.tone])


def task_text(draft: Draft) -> str:
    """What is asked, quoted, and its intent."""
    return f"Handle: {quoted(draft.inputs.request.input.message)} (intent={draft.intent.intent})."


def _verdict(draft: Draft) -> Iterator[str]:
    verdict = draft.policy.verdict
    if verdict.allowed:
        yield "Policy: allowed, within the controls below."
    else:
        why = f": {quoted(verdict.reason)}" if verdict.reason else ""
        yield f"Policy: denied{why}. Do not carry it out; explain, or escalate."


def _controls(controls: RuntimeControls, *, may_wait: bool) -> Iterator[str]:
    """For what is denied there is nothing to wait for."""
    for words, names in (
        ("Refuse on", controls.must_refuse),
        ("Escalate on", controls.must_escalate),
        ("Wait for approval of", controls.approval_gates_active if may_wait else ()),
        ("Redact", controls.redaction_rules_active),
    ):
        if names:
            yield f"{words}: {', '.join(names)}."


def _decisions(draft: Draft) -> Iterator[str]:
    for spec in draft.inputs.view.intent(draft.intent.intent).decisions:
        yield f"Decision {spec.decision_key} ({spec.decision_right}): {' | '.join(spec.allowed_outcomes)}."
    if draft.evidence.required:
        yield f"Required evidence: {', '.join(draft.evidence.required)}."
