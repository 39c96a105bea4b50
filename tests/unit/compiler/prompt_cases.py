"""Packs and the requests that are drawn over them, to measure what their prompts share and cost."""

import hashlib
import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from msgspec.structs import replace

from contextplane.compiler.compile import compile_draft
from contextplane.compiler.inputs import read_evidence, read_request, read_run_context
from contextplane.compiler.view import PackView
from contextplane.evaluation.case_run import run_table
from contextplane.model.compiled_context import CompiledContext
from contextplane.model.evidence import Evidence, EvidenceFreshness
from contextplane.model.timestamp import Timestamp
from tests.support.pack_tables import pack_table, source_of
from tests.unit.compiler.scenario import CASE, NOW, compile_scenario, inputs, put, view_of

__all__ = [
    "HELPDESK",
    "PROMPTS",
    "cached_shares",
    "common_length",
    "compile_request",
    "compiled_prompts",
    "draw_helpdesk",
    "draw_refunds",
    "draw_team",
    "helpdesk_view",
    "piece",
    "refund_view",
]

PROMPTS = Path(__file__).resolve().parents[2] / "cases" / "prompts"
HELPDESK: dict[str, Any] = json.loads((PROMPTS / "helpdesk.json").read_bytes())
_NAMES = ("Ada", "Bo", "Chen", "Dilnoza", "Emre", "Fatou")
_PROBLEMS = (
    "My laptop does not start since this morning.",
    "I cannot log in from home, it says that my account is locked.",
    "I need to read the sales dashboard for the report of this quarter.",
    "What became of my ticket? I have not heard anything for a week.",
)


def refund_view() -> PackView:
    return view_of(inputs())


def helpdesk_view() -> PackView:
    return view_of({**inputs(), "pack": HELPDESK, "ontologies": ["ont.helpdesk@1.0.0"]})


def compile_request(
    view: PackView, request: dict[str, Any], evidence: list[Any], *, run: dict[str, Any] | None = None
) -> CompiledContext:
    return compile_draft(
        view,
        read_run_context(put(CASE["run_context"], {"/run_budget": _ROOMY, **(run or {})})),
        read_request(put(CASE["request"], request)),
        read_evidence(evidence),
        as_of=Timestamp.parse(NOW),
    ).seal


_ROOMY = {
    **CASE["run_context"]["run_budget"],
    "total_tokens": 90_000,
    "bucket_tokens": dict.fromkeys(CASE["run_context"]["run_budget"]["bucket_tokens"], 9_000),
}


T = TypeVar("T")


class Draw:
    """Draws the same for the same seed, whatever the version of Python."""

    def __init__(self, seed: int) -> None:
        self._digest = hashlib.sha256(str(seed).encode()).digest()

    def choice(self, options: Sequence[T]) -> T:
        self._digest = hashlib.sha256(self._digest).digest()
        return options[int.from_bytes(self._digest[:8], "big") % len(options)]


def piece(kind: str, n: int, content: str) -> dict[str, Any]:
    """A piece of verified evidence that is current."""
    return {
        "evidence_ref": f"tool:{kind}:tc_{n}",
        "type": kind.removeprefix("adp_").replace(".", "_"),
        "tenant_id": "tenant_acme_prod",
        "source": kind.partition(".")[0],
        "trust": "verified",
        "content": content,
        "freshness": {"observed_at": "2026-05-04T09:30:00Z"},
    }


def draw_refunds(count: int, seed: int) -> list[CompiledContext]:
    """Refunds of the shipped pack: other orders, amounts and messages; one in six is denied."""
    draw, view = Draw(seed), refund_view()
    compiled = []
    for n in range(count):
        order, amount = f"ord_{draw.choice(range(100, 999))}", draw.choice([250, 1200, 2500, 2900, 4200])
        content = json.dumps({"order_id": order, "total": amount, "status": "delivered"}, separators=(",", ":"))
        message = draw.choice([f"Refund order {order}.", f"{order} arrived broken.", "Where is my money?"])
        context = {"refund_amount": amount, "identity_verified": draw.choice(range(6)) < 5}
        request = {"/input/message": message, "/input/context": context}
        compiled.append(compile_request(view, request, [piece("adp_orders.lookup", n, content)]))
    return compiled


def draw_helpdesk(count: int, seed: int) -> list[CompiledContext]:
    """Requests of four intents to a helpdesk with 19 tools; about one in six is denied."""
    draw, view = Draw(seed), helpdesk_view()
    intents = ("account.reset", "access.request", "device.replace", "ticket.status")
    compiled = []
    for n in range(count):
        employee = "usr_771"
        context = {
            "employee_id": employee,
            "employment": "active" if draw.choice(range(6)) < 5 else "left",
            "identity_verified": draw.choice(range(6)) < 5,
            "device_age_months": draw.choice(range(30, 48)),
            "device_broken": draw.choice([True, False]),
            "environment": draw.choice(["production", "test"]),
        }
        content = json.dumps({"employee_id": employee, "name": draw.choice(_NAMES), "office": draw.choice(range(1, 9))})
        request = {
            "/input/message": draw.choice(_PROBLEMS),
            "/input/context": context,
            "/input/intent": draw.choice(intents),
            "/context_pack_refs": ["ctxpack.helpdesk@1.0.0"],
        }
        run = {"/intent": request["/input/intent"], "/safety_mode": "delegated"}
        compiled.append(compile_request(view, request, [piece("adp_directory.lookup", n, content)], run=run))
    return compiled


def draw_team(name: str, count: int, seed: int) -> list[CompiledContext]:
    """Requests of a pack of a team: of any case of its table, with other messages, and results of its tools."""
    draw, table = Draw(seed), pack_table(name)
    outcomes = run_table(source_of(table.file.file.value), table.table_file, table.table, None)
    drafts = {outcome.name: outcome.draft for outcome in outcomes if outcome.draft is not None}
    compiled = []
    for n in range(count):
        case = draw.choice(list(drafts))
        inputs = drafts[case].inputs
        request = replace(inputs.request.input, message=f"{draw.choice(_PROBLEMS)} ({n})")
        results = [result for result in table.checks.results if result.case == case and draw.choice(range(2))]
        evidence = [
            Evidence(
                evidence_ref=f"tool:{result.tool}:tc_{n}#{result.answers}",
                type=result.answers,
                tenant_id=inputs.run_context.tenant_id,
                source=result.tool,
                trust="verified",
                content=json.dumps({**result.content, "call": n}),
                freshness=EvidenceFreshness(observed_at="2026-05-04T09:30:00Z"),
            )
            for result in results
        ]
        draft = compile_draft(
            inputs.view,
            inputs.run_context,
            replace(inputs.request, input=request),
            evidence,
            inputs.memories,
            as_of=inputs.as_of,
        )
        compiled.append(draft.seal)
    return compiled


@cache
def compiled_prompts() -> dict[str, CompiledContext]:
    """The contexts whose facts a person wrote as prompts, by the names of those."""
    many = json.loads((PROMPTS / "evidence.json").read_bytes())
    request = {
        "/input/message": "My laptop does not start since this morning.",
        "/input/intent": "device.replace",
        "/input/context": {"device_age_months": 40, "device_broken": True, "employee_id": "usr_771"},
        "/context_pack_refs": ["ctxpack.helpdesk@1.0.0"],
    }
    looked_up = piece("adp_directory.lookup", 0, '{"employee_id":"usr_771","name":"Ada","office":3}')
    run = {"/intent": "device.replace", "/safety_mode": "delegated"}
    return {
        "refund": compile_scenario(),
        "evidence": compile_request(
            refund_view(), {}, [piece(kind, n, content) for n, (kind, content) in enumerate(many)]
        ),
        "tools": compile_request(helpdesk_view(), request, [looked_up], run=run),
    }


def cached_shares(texts: list[str]) -> list[float]:
    """How much of each text an earlier one begins with, as a prompt cache would hold it."""
    return [max(common_length(earlier, text) for earlier in texts[:n]) / len(text) for n, text in enumerate(texts) if n]


def common_length(first: str, second: str) -> int:
    """How many characters the two begin with in common, by halving."""
    least, most = 0, min(len(first), len(second))
    while least < most:
        middle = (least + most + 1) // 2
        least, most = (middle, most) if second.startswith(first[:middle]) else (least, middle - 1)
    return least
