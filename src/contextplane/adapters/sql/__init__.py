"""SQL that the SQLite and PostgreSQL catalogs share, with `?` for values.

Where the two differ, a class here leaves a method or a clause abstract; `adapters/sqlite` and `adapters/postgres`
implement it. This package opens no database.
"""
