"""Adapters on SQLite.

The catalog in one database file: plain SQL, numbered migrations, append-only streams as the truth and indexes that
can be built again. It keeps no large bytes, which are objects. It may import `ports`, `policy`, `model` and `errors`.
"""
