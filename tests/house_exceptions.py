"""What may break a rule of the house, and why.

These lists may only shrink. An exception that is no longer needed is refused.
"""

__all__ = ["EXCEPTIONS"]

_IN_SCHEMA = "it is the description in a published schema, whose bytes stay"

EXCEPTIONS: dict[str, dict[str, str]] = {
    "oversized": {
        "cli.table::_load": "two lines for each verb: literal imports, which tools can read",
    },
    "undersized": {
        "adapters.files.syncfs": "loads ctypes; only large batches import it, late",
        "testing.proofs": "the mark `proves`, which every test module may use",
    },
    "module_names": {
        "trust.keyring": "a keyring is a thing, not a gerund",
    },
    "function_names": {},
    "class_names": {},
    "variable_names": {},
    "docstrings": {
        "model.artifact::DecisionCatalog": _IN_SCHEMA,
        "model.context_pack::ContextPack": _IN_SCHEMA,
        "model.context_pack::PackMeta": _IN_SCHEMA,
        "model.context_pack::TaskStep": _IN_SCHEMA,
        "model.evidence::EvidenceGate": _IN_SCHEMA,
        "model.pack_layers::Rule": _IN_SCHEMA,
    },
}
