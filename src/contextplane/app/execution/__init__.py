"""Execution packs as commands use them: pack, record, fork, verify, replay, archive."""
