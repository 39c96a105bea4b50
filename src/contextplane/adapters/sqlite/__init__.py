"""Adapters on SQLite.

The catalog in one database file: plain SQL, numbered migrations, append-only streams as the truth and indexes that
can be rebuilt. Large bytes are objects, not rows. It may import `ports`, `policy`, `model` and `errors`.
"""
