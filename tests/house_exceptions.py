"""What may break a rule of the house, and why.

These lists may only shrink. An exception that is no longer needed is refused.
"""

__all__ = ["EXCEPTIONS"]

EXCEPTIONS: dict[str, dict[str, str]] = {
    "oversized": {},
    "undersized": {},
    "module_names": {},
    "function_names": {},
    "class_names": {},
    "variable_names": {},
    "docstrings": {},
}
