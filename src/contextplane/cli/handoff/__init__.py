"""What the verbs print of handoff packs."""
