"""Names of harnesses: one that all share, or one in the name space of a person (`ann/bench`)."""

import re

_SEPARATOR = "/"
_OWN = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
#: Of the names that people can have, those that need no quoting in a matrix or on a command line.
_PERSON = r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}"
HARNESS_NAME = rf"^(?:{_PERSON}{_SEPARATOR})?{_OWN}$"


def own_name(person: str, name: str) -> str | None:
    """Return a shared name in the name space of a person, or None where the person can have none."""
    named = f"{person}{_SEPARATOR}{base_name(name)}"
    return named if re.fullmatch(HARNESS_NAME, named) else None


def base_name(name: str) -> str:
    """Return a name without its name space: it selects the farm's adapter."""
    return name.rpartition(_SEPARATOR)[2]


def is_own_name(name: str, person: str) -> bool:
    """Tell whether a name is in the name space of a person."""
    return name.rpartition(_SEPARATOR)[0] == person
