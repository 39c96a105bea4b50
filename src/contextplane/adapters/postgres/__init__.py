"""Adapters on PostgreSQL.

The catalog of a store as a schema of one database, for stores that several machines write to. It keeps no large bytes,
which are objects. It may import `ports`, `policy`, `model` and `errors`; nothing loads it unless a database is named.
"""
