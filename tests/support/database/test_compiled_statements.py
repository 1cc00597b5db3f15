"""Engines of tests share what was compiled for another one of their kind, and for no other kind."""

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from tests.support.database.compiled_statements import CompiledStatements


def test_a_statement_is_compiled_once_for_each_kind_of_database() -> None:
    statements = CompiledStatements(10)
    first, second, other = sqlite.dialect(), sqlite.dialect(), postgresql.dialect()
    compiled = sa.select(sa.literal(1)).compile(dialect=first)
    statements[first, "statement"] = compiled
    assert statements[second, "statement"] is compiled
    assert (other, "statement") not in statements
    assert len(statements) == 1
