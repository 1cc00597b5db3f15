"""Pydantic's error about a person's request, in the words of the field that is wrong."""

from pydantic import ValidationError

from farm.core.errors import InvalidInput

_MAX_SHOWN = 80
_TAG_RULE = (
    "a tag",
    "tags are up to 64 letters, digits, `.`, `_`, `-`, the first a letter or digit; 32 at once",
)
#: Name and rule of each field of a request, for error messages.
RULE_BY_FIELD = {
    "by": ("your name (FARM_USER)", "a name has 1 to 64 characters without blanks"),
    "reason": ("a reason", "a reason has 1 to 500 characters"),
    "label": (
        "a label",
        "labels are up to 64 letters, digits, `.`, `_`, `-` and blanks, with a letter or digit at both ends",
    ),
    "add": _TAG_RULE,
    "remove": _TAG_RULE,
    "max_runs": ("the runs of a host", "from 1 to 10000, or --none"),
    "for_s": ("the seconds of a reservation", "a reservation lasts from 1s to 14d"),
}


def invalid_field(error: ValidationError) -> InvalidInput:
    """Return the first problem of a request, with its field, its value, and the rule as the hint."""
    first = error.errors(include_url=False)[0]
    if not first["loc"]:
        return InvalidInput(first["msg"].removeprefix("Value error, "), hint="correct it, and send it again")
    field, rule = RULE_BY_FIELD[str(first["loc"][0])]
    value = repr(first["input"])
    value = value if len(value) <= _MAX_SHOWN else f"{value[:_MAX_SHOWN]}..."
    return InvalidInput(f"{field} cannot be {value}", hint=rule)
