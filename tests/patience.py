"""How long a test waits for another process. One that waits for ever is a failure, a busy machine is none."""

__all__ = ["PATIENCE"]

PATIENCE = 180  # seconds
