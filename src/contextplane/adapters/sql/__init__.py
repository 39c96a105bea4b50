"""What the catalogs on SQLite and on PostgreSQL have in common: statements that both understand.

Values stand in them as `?`. Where the two differ, the classes here leave a part open, and `adapters/sqlite` and
`adapters/postgres` fill it in. It opens no database.
"""
