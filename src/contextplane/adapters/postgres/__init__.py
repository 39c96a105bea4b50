"""Adapters on PostgreSQL.

The catalog of a store as a schema of one database, for stores that several machines write to. Large bytes are objects,
not rows. It may import `ports`, `policy`, `model` and `errors`; it is loaded only when a database is configured.
"""
