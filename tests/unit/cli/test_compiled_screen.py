"""A printed compiled context: right in every verdict, and readable in a narrow terminal."""

import io
import re
from pathlib import Path
from typing import Any

import pytest

from contextplane.cli.output import CommandOutput
from contextplane.cli.render.compiled_context import one_line, print_compiled, print_override_effects
from contextplane.cli.render.wrapped_line import LineHead, print_wrapped
from contextplane.compiler.overrides import parse_override
from contextplane.compiler.prompt import prompt_controls
from contextplane.compiler.source import compile_case, list_all_items
from tests.unit.compiler.case_files import CLOSING, SHOWN, case_file, source_of
from tests.unit.compiler.scenario import put

LOW = {"/request/input/context/refund_amount": 20}
WORDS = "destructive; amount_inr at least 1, at most 50000; idempotency_key required"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(folder: Path, of: dict[str, Any], *knobs: str, out: io.StringIO | None = None, color: bool = False) -> str:
    out = out or io.StringIO()
    output = CommandOutput(out=out, color=color)
    source = source_of(folder)
    compiled = compile_case(source, case_file(folder, of=of), tuple(map(parse_override, knobs)))
    print_compiled(compiled, list_all_items(source, compiled.context), output)
    if knobs:
        print_override_effects(compiled, ", ".join(knobs), output)
    return out.getvalue()


@pytest.mark.parametrize(
    ("of", "line"),
    [
        (
            CLOSING,
            "decision  may be committed after GATE_FINANCE_APPROVAL; the evidence that it requires is sufficient",
        ),
        (put(CLOSING, LOW), "decision  may be committed; the evidence that it requires is sufficient"),
        (SHOWN, "decision  not yet; the evidence that it requires is obtainable"),
        (
            put(CLOSING, {"/request/input/context/fraud_signal_high": True}),
            "decision  denied by policy; the evidence that it requires is sufficient",
        ),
        (put(SHOWN, LOW), "gates     - GATE_FINANCE_APPROVAL  not active: its when does not hold"),
        (
            put(SHOWN, {"/request/input/context/signals": ["fraud"]}),
            'noticed   policy: the signal "fraud" names no guardrail',
        ),
        (
            put(SHOWN, {"/run_context/user/role": None}),
            "request   support.refund by a user without a role; the run's ceiling is destructive",
        ),
    ],
)
def test_a_decision_is_told_with_all_that_it_waits_for(tmp_path: Path, of: dict[str, Any], line: str) -> None:
    assert f"\n{line}\n" in shown(tmp_path, of)


def test_a_gate_of_a_denied_request_says_that_no_call_waits(tmp_path: Path) -> None:
    rules = "/policy_layer/policy_bundles/0/policy_dsl/rules/"
    gated = {"allow": False, "reason": "No.", "requires_approval_gate": "GATE_FINANCE_APPROVAL"}
    source = source_of(tmp_path, {f"{rules}0/then": gated, f"{rules}1/then": {"allow": False, "reason": "Never."}})
    out = io.StringIO()
    compiled = compile_case(source, case_file(tmp_path, of=SHOWN), ())
    print_compiled(compiled, list_all_items(source, compiled.context), CommandOutput(out=out))
    lines = out.getvalue().splitlines()
    assert "gates     + GATE_FINANCE_APPROVAL  active, and no tool is left whose calls would wait for it" in lines
    assert lines[0].endswith("denied, R_REFUND_REQUIRES_IDV: No; R_HIGH_VALUE_REQUIRES_APPROVAL: Never.")


def test_every_limit_of_a_tool_and_the_number_of_its_approvers_are_printed(tmp_path: Path) -> None:
    periods = [f"{days}d" for days in range(2, 12)]
    source = source_of(
        tmp_path,
        {
            "/policy_layer/approval_gates/0/approvers": 2,
            "/tooling_layer/permissions/2/arg_constraints/amount_inr": {
                "max": {"var": "request.context.refund_amount"}
            },
            "/tooling_layer/permissions/2/limits": [
                {"per": "user", "period": period, "max_calls": 3} for period in periods
            ],
        },
    )
    compiled, out = compile_case(source, case_file(tmp_path, of=SHOWN)), io.StringIO()
    print_compiled(compiled, list_all_items(source, compiled.context), CommandOutput(out=out))
    assert all(f"at most 3 calls per user in {period}" in out.getvalue() for period in periods)
    assert "amount_inr at most 4200 (request.context.refund_amount);" in out.getvalue()
    assert "adp_payments.issue_refund waits for 2 people in the role finance_lead" in out.getvalue()
    prompt = prompt_controls(compiled.context.compiled_prompt)
    assert "waits for approval by 2 people in the role finance_lead (GATE_FINANCE_APPROVAL)." in prompt


def test_what_was_noticed_of_a_gate_stands_in_its_line_alone(tmp_path: Path) -> None:
    assert "noticed" not in shown(tmp_path, put(SHOWN, LOW))
    many = shown(tmp_path, put(SHOWN, {"/request/input/context/signals": [f"s{n}" for n in range(20)]}))
    assert "and 8 more (--json lists them)\n" in many


def test_what_does_not_fit_is_told_with_its_size_and_with_what_is_left(tmp_path: Path) -> None:
    narrow = put(SHOWN, {"/run_context/run_budget/bucket_tokens/tool": 30})
    for of in (narrow, put(narrow, {"/run_context/run_budget/total_tokens": 0})):
        assert re.search(
            r"issue_refund +over_budget: takes \d+ tokens, and \d+ of 30 are left in tool\n", shown(tmp_path, of)
        )
    text = shown(tmp_path, put(SHOWN, {"/run_context/run_budget/total_tokens": 0}))
    assert re.search(
        r"issue_refund +over_total_budget: takes \d+ tokens, and all buckets together have no more\n", text
    )
    assert "R_REFUND_REQUIRES_IDV           took effect; its text does not fit\n" in text
    assert re.search(r"\n +total +#{20} +\d+ of 0\n", text)


def test_what_something_is_now_is_told_however_long_it_was_before(tmp_path: Path) -> None:
    text = shown(tmp_path, SHOWN, "request.context.refund_amount=20")
    assert re.search(r"R_HIGH_VALUE_REQUIRES_APPROVAL: .* -> no_else: its if is false, and it has no else\n", text)


@pytest.mark.parametrize("columns", [80, 110])
@pytest.mark.parametrize("color", [False, True])
def test_a_terminal_is_given_no_line_wider_than_it_is(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    columns: int,
    color: bool,  # noqa: FBT001  a row
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    text = shown(tmp_path, CLOSING, "request.context.refund_amount=20", out=Terminal(), color=color)
    lines = re.sub("\x1b\\[[0-9]*m", "", text).splitlines()
    assert [line for line in lines if len(line) > columns and not line.startswith("hash ")] == []
    whole = shown(tmp_path, CLOSING, "request.context.refund_amount=20")
    assert " ".join(" ".join(lines).split()) == " ".join(whole.split())


def test_words_go_on_below_themselves_or_below_their_head_when_there_is_no_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    out = Terminal()
    print_wrapped(LineHead("+ refund  ", 10, 4), WORDS, CommandOutput(out=out))
    print_wrapped(LineHead(f"+ {'x' * 40}  ", 44, 4), WORDS, CommandOutput(out=out))
    print_wrapped(LineHead("  ", 2, 4), WORDS, CommandOutput(out=out))
    assert out.getvalue().splitlines() == [
        "+ refund  destructive; amount_inr at least 1, at most 50000;",
        "          idempotency_key required",
        f"+ {'x' * 40}",
        "    destructive; amount_inr at least 1, at most 50000;",
        "    idempotency_key required",
        "  destructive; amount_inr at least 1, at most 50000;",
        "    idempotency_key required",
    ]


def test_a_long_text_is_cut_and_says_so() -> None:
    assert one_line("x" * 200) == "x" * 147 + "..."
    assert one_line("a\x1bb") == "a\\x1bb"
