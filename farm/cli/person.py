"""Who types, and requests in that name."""

import getpass
import os
from typing import TYPE_CHECKING, TypeVar

from farm.core.errors import InvalidInput

if TYPE_CHECKING:
    from farm.wire.device_views import Asked

A = TypeVar("A", bound="Asked")


def me() -> str:
    """FARM_USER, else the name one is logged in with. Nobody is asked to prove it."""
    return os.environ.get("FARM_USER") or getpass.getuser()


def asked(kind: type[A], **what: object) -> A:
    """A request of this person's.

    Raises:
        InvalidInput: the farm would refuse a value as it is written.
    """
    from pydantic import ValidationError

    try:
        return kind.model_validate({"by": me(), **what})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = " ".join(str(part) for part in first["loc"]) or "the request"
        raise InvalidInput(
            f"{where} makes no sense: {first['msg']}",
            hint="names are letters, digits, `.`, `_`, `-`, in labels blanks too; a hold lasts up to 14d",
        ) from error
