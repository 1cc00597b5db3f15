"""The address of a PostgreSQL database, as people and providers write it."""

_SCHEMES = frozenset({"postgres", "postgresql", "postgresql+psycopg"})


def postgres_url(text: str) -> str:
    """Return the address for SQLAlchemy and psycopg.

    Raises:
        ValueError: it is none; the message repeats nothing of it, because a password may be inside.
    """
    scheme, separator, rest = text.strip().partition("://")
    if not separator or scheme.lower() not in _SCHEMES or not rest:
        raise ValueError("it is no address of a PostgreSQL database: postgresql://USER@HOST/DATABASE")
    return f"postgresql+psycopg://{rest}"
