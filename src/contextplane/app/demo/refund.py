"""The world of the demo: one refund, as a support agent handled it. Made up, and the same on every machine."""

__all__ = ["CONTENTS", "MODEL", "TOOLS"]

MODEL = "model-of-the-demo-1"
TOOLS = {"adp_orders": "2026-04-15", "adp_policy": "2026-04-15"}

CONTENTS: dict[str, bytes] = {
    "system_prompt": b"You handle refunds. Never promise one before the policy is verified.",
    "request": b"Refund order ord_881 for INR 4200.",
    "order": b'{"amount_inr":4200,"ceid":"order:ord_881","customer":"customer:cus_77","status":"delivered"}',
    "lookup": b'{"amount_inr":4200,"ceid":"order:ord_881","customer":"customer:cus_77","status":"delivered"}',
    "policy": b'{"allow":true,"gate":"GATE_FINANCE_APPROVAL","rule":"R_HIGH_VALUE_REQUIRES_APPROVAL"}',
    "decision": b'{"amount_inr":4200,"decision_key":"support.refund.execute","outcome":"escalated"}',
}
"""What the run saw and made, by name. The order and what its lookup returned are the same bytes."""
