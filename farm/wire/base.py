"""Base of all wire types: unknown keys are refused, values are frozen."""

from functools import cache
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field

from farm.core.errors import WireVersionUnsupported

#: Raised when an older agent could no longer talk to the farm; the one before is served too.
WIRE_VERSION = 1
WIRE_VERSIONS_SERVED = (1,)

#: The name of a caller without a token, percent-encoded; used only where no token is needed.
CALLER_HEADER = "Farm-User"

#: In answers to who bears an access token: when it expires, in ISO 8601, from two weeks before.
EXPIRY_HEADER = "Farm-Access-Expires"

#: A submission that is sent again with the same key is not repeated.
REQUEST_KEY_HEADER = "Idempotency-Key"

#: What every database and every JSON reader holds exactly, as a number of things or of a row.
WholeNumber = Field(ge=0, lt=2**53)
Count = Annotated[int, WholeNumber]

#: Rows of a page of devices, hosts, variants or tokens; a page that is not full is the last.
MAX_LIST_PAGE = 200
#: Selectors of a request, and their length: an address of 64 kB is refused.
MAX_SELECTORS, MAX_SELECTOR_CHARS = 50, 400


def check_served(version: object) -> None:
    """Refuse an agent of an unsupported wire version.

    Raises:
        WireVersionUnsupported: naming the versions that are served.
    """
    if version not in WIRE_VERSIONS_SERVED:
        served = ", ".join(map(str, WIRE_VERSIONS_SERVED))
        text = repr(version)[:20]
        raise WireVersionUnsupported(f"wire version {text} is not served; this farm serves {served}")


class Wire(BaseModel):
    """A message, or a part of one."""

    # JSON has no word for infinity, and PostgreSQL keeps none in it.
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @classmethod
    def of(cls, *records: object, **values: object) -> Self:
        """Return the message with these values; other fields are those of the first record that has them."""
        for name, place in _sources(cls, tuple(map(type, records)), frozenset(values)):
            values[name] = getattr(records[place], name)
        return cls.model_validate(values)


@cache
def _sources(message: type[Wire], kinds: tuple[type, ...], given: frozenset[str]) -> list[tuple[str, int]]:
    """Return each field with the first record whose type has it: to ask each record would take longer."""
    fields = ("__dataclass_fields__", "model_fields")
    known = [{*dir(kind), *(name for own in fields for name in getattr(kind, own, ()))} for kind in kinds]
    places = {name: [at for at, names in enumerate(known) if name in names] for name in message.model_fields}
    return [(name, found[0]) for name, found in places.items() if found and name not in given]


class Problem(BaseModel):
    """RFC 9457 problem document, with our code, blame and hint."""

    model_config = ConfigDict(frozen=True, extra="allow")

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    code: str
    blame: str
    transient: bool
    hint: str
    #: Places in the request's document: keys and list positions, from its root.
    places: tuple[tuple[str | int, ...], ...] = ()
