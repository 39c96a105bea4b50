"""Adapters on plain files.

Objects as files that are named by their digest, and the layout of a store on disk. It knows paths, modes, renames and
syncs, and nothing of what the bytes mean or of SQL. It may import `ports`, `policy`, `model` and `errors`.
"""
