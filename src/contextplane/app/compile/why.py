"""Explains why an item is in or out of a compiled context, and what would flip it."""

from contextplane.audit.why import Explanation, explain

__all__ = ["Explanation", "explain"]
