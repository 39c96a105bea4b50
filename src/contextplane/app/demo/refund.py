"""The world of the demo: one refund, as a support agent handled it twice. Made up, and the same on every machine."""

from contextplane.model.canonical import Json

__all__ = ["DECISION", "ORDER", "later_log", "refund_log"]

ORDER = '{"amount_inr":4200,"ceid":"order:ord_881","customer":"customer:cus_77","status":"delivered"}'
DECISION = '{"amount_inr":4200,"decision_key":"support.refund.execute","outcome":"escalated"}'
_PAID = '{"amount_inr":4200,"decision_key":"support.refund.execute","outcome":"executed"}'
_POLICY = '{"allow":true,"gate":"GATE_FINANCE_APPROVAL","rule":"R_HIGH_VALUE_REQUIRES_APPROVAL"}'
_LATER_POLICY = '{"allow":true,"rule":"R_WITHIN_LIMIT"}'


def refund_log() -> dict[str, Json]:
    """The run as its agent logged it. The order and what its lookup returned are the same bytes."""
    return {
        "model": {"identifier": "model-of-the-demo-1", "parameters": {"temperature": 0}},
        "system_prompt": "You handle refunds. Never promise one before the policy is verified.",
        "prompts": [{"role": "user", "content": "Refund order ord_881 for INR 4200."}],
        "inputs": [{"name": "order.json", "content": ORDER}],
        "steps": [
            _call("adp_orders.lookup", ORDER, "2026-05-04T09:31:40Z"),
            _call("adp_policy.eval", _POLICY, "2026-05-04T09:31:41Z"),
            {"type": "reasoning", "output": "Over the limit: finance decides.", "timestamp": "2026-05-04T09:31:42Z"},
        ],
        "outputs": [{"name": "decision.json", "content": DECISION}],
        "environment": {"os": "linux", "runtime": "demo", "tool_versions": {"adp_orders": "2026-04-15"}},
    }


def later_log() -> dict[str, Json]:
    """The same refund under a policy that was changed in between: nobody has to be asked, and it is paid."""
    return {
        **refund_log(),
        "steps": [
            _call("adp_orders.lookup", ORDER, "2026-05-11T09:31:40Z"),
            _call("adp_policy.eval", _LATER_POLICY, "2026-05-11T09:31:41Z"),
            _call("adp_payments.refund", '{"status":"paid"}', "2026-05-11T09:31:42Z"),
            {"type": "reasoning", "output": "Within the limit: paid.", "timestamp": "2026-05-11T09:31:43Z"},
        ],
        "outputs": [{"name": "decision.json", "content": _PAID}],
    }


def _call(tool: str, output: str, timestamp: str) -> dict[str, Json]:
    return {
        "type": "tool_call",
        "tool": tool,
        "parameters": {"order_id": "ord_881"},
        "output": output,
        "deterministic": True,
        "timestamp": timestamp,
    }
