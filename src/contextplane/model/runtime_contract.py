"""The contract between packs and this runtime: what `compatibility.requires` asks for under the name `runtime`."""

__all__ = ["RUNTIME_CONTRACT"]

RUNTIME_CONTRACT = "1.0.0"
"""It is no version of the package: that one changes more often."""
