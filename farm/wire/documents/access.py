"""Documents about access tokens and callers."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, model_validator

from farm.core.operations.role import ROLES_BY_RANK, Role
from farm.wire.base import Wire
from farm.wire.documents.devices import Person

MIN_VALID_S, MAX_VALID_S = 60, 10 * 365 * 24 * 3600


class AccessState(StrEnum):
    """The state of an access token."""

    OPEN = "open"
    EXPIRED = "expired"
    REVOKED = "revoked"


class AccessRequest(Wire):
    """POST /api/v1/access-tokens: a token for a person or a script."""

    #: Whom it proves: what they do is recorded under this name.
    name: Person
    role: Role
    #: None: until it is revoked.
    valid_s: Annotated[int, Field(ge=MIN_VALID_S, le=MAX_VALID_S)] | None = None
    #: Drawn by the caller, who can send the same request again when its answer was lost: it is one token.
    #: None: the farm draws one.
    token: Annotated[str | None, Field(max_length=64, repr=False)] = None

    @model_validator(mode="after")
    def _is_for_people(self) -> Self:
        if self.role not in ROLES_BY_RANK:
            raise ValueError(f"{self.role} is no role of people's: agents join with a join token")
        return self


class AccessTokenView(Wire):
    """GET /api/v1/access-tokens: a token without what makes it one."""

    token_id: str
    state: AccessState
    role: Role
    name: str
    created_at: datetime
    created_by: str
    expires_at: datetime | None
    revoked_at: datetime | None


class NewAccessTokenView(AccessTokenView):
    """Said once; the farm keeps the token's hash only."""

    token: str


class CallerView(Wire):
    """GET /api/v1/caller: who the farm takes the caller for."""

    name: str
    role: Role
    #: By a token; else it is what they say of themselves, and being on the farm's machine is what counts.
    is_authenticated: bool
