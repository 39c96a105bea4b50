"""Rules in, verdicts out.

The room for rule evaluation, guardrails, gates, argument constraints and the detectors of secrets and personal data.
It is pure: it asks no port, no clock and no file, and it enforces nothing; the gateway and the compiler do that. It
may import `model` and `errors`.
"""
