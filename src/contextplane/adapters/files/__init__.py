"""Adapters on plain files.

Objects as files named by their digest, and the layout of a store on disk. It handles paths, modes, renames and syncs,
and knows neither the meaning of the bytes nor SQL. It may import `ports`, `policy`, `model` and `errors`.
"""
