"""Alembic migrations: the schema's history, for SQLite and PostgreSQL alike."""
