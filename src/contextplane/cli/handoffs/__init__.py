"""Handoff packs for people: what `ctx handoff`, and the other verbs when they are given `pk_...`, print of them.

Loaded only for these, so that no other answer waits for it.
"""
