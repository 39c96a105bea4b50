"""Redacts what looks like a secret from text that a surface prints, because messages end in logs."""

from contextplane.policy.detect.secrets import redact_shapes

__all__ = ["redact_shapes"]
