"""Handoff packs: findings that one agent passes on to another, anchored to lines of code.

Write, finalize, read profiles, paging and freshness. It does not run agents and is no general document store. It may
import `authoring`, `trust`, `policy`, `ports`, `model` and `errors`, and none of its sibling packages.
"""
