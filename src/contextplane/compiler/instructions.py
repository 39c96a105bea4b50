"""The texts of a prompt that the request decides: verdict, decision, approvals, and task."""

from collections.abc import Collection, Iterator

from contextplane.compiler.draft import Draft
from contextplane.compiler.prompt import FRAME, count_repeated
from contextplane.compiler.quotation import inline, quote
from contextplane.model.compiled_context import CompiledPrompt, RequiredApproval
from contextplane.model.tokens import Tokens

__all__ = ["count_fixed_tokens", "write_prompt"]

_HONOR = "Honor the policy_manifest, tool_manifest, runtime_controls, and required_evidence at every step."


def write_prompt(draft: Draft, hidden: Collection[str] = ()) -> CompiledPrompt:
    """Write the prompt without its blocks.

    `hidden`: the tools that are surfaced but not shown, because they do not fit.
    """
    return CompiledPrompt(
        system=draft.inputs.view.system, developer=_developer(draft, hidden), task=_task(draft), context_blocks=()
    )


def _developer(draft: Draft, hidden: Collection[str]) -> str:
    """The developer message: what to honor; then the decision, the verdict, and what waits for whom.

    An empty line ends what is the same for every request.
    """
    allowed = draft.policy.verdict.allowed
    # A denied request has no approval to wait for.
    waits = [_wait(approval, hidden) for approval in draft.tools.approvals if allowed]
    return "\n".join([_HONOR, "", *_decisions(draft), _verdict(draft), *filter(None, waits)])


def _task(draft: Draft) -> str:
    """The task: the message of the request, quoted, and its intent."""
    return f"Handle: {quote(draft.shown.request.input.message)} (intent={draft.intent.intent})."


def count_fixed_tokens(prompt: CompiledPrompt, tokens: Tokens) -> int:
    """Count the tokens that stand in no bucket: system, developer, task, and the frame of the blocks."""
    repeated = (prompt.system, FRAME, prompt.developer)
    return sum(count_repeated(tokens, text) for text in repeated) + tokens.count(prompt.task)


def _verdict(draft: Draft) -> str:
    verdict = draft.policy.verdict
    if verdict.allowed:
        return "This request is allowed."
    why = f": {inline(verdict.reason).removesuffix('.')}" if verdict.reason else ""
    return f"This request is denied{why}. Do not carry it out; explain, or escalate."


def _decisions(draft: Draft) -> Iterator[str]:
    decisions = ", ".join(draft.intent.decisions)
    required = ", ".join(draft.evidence.required)
    if decisions and required:
        yield f"Decide {decisions}; required evidence: {required}."
    elif decisions:
        yield f"Decide {decisions}."
    elif required:
        yield f"Required evidence: {required}."


def _wait(approval: RequiredApproval, hidden: Collection[str]) -> str:
    """Say which calls wait for whom; nothing if the model sees none of them."""
    calls = sorted(name for name in approval.capabilities if name not in hidden)
    who = approval.required_approver_role
    who = f"{approval.approvers} people in the role {who}" if approval.approvers > 1 else who
    verb = "waits" if len(calls) == 1 else "wait"
    return f"{', '.join(calls)} {verb} for approval by {who} ({approval.gate_id})." if calls else ""
