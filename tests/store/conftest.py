"""Fixtures: a database with one row of most things."""

from tests.support.database.database_fixtures import database, filled, sqlite_database, sqlite_filled

__all__ = ["database", "filled", "sqlite_database", "sqlite_filled"]
