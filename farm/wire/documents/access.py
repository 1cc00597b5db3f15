"""Documents about access tokens, callers and join tokens."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from farm.core.base.ids import HostId
from farm.core.operations.role import ROLES_BY_RANK, Role
from farm.wire.base import Wire
from farm.wire.documents.devices import Person

MIN_VALID_S = 60
#: Long enough to be no burden, short enough that a forgotten token ends.
ACCESS_VALID_S = 90 * 24 * 3600
MAX_ACCESS_VALID_S = 10 * 365 * 24 * 3600
#: A join token is copied by hand; a month is long enough for that.
MAX_JOIN_VALID_S = 30 * 24 * 3600


class AccessState(StrEnum):
    """The state of an access token."""

    OPEN = "open"
    EXPIRED = "expired"
    REVOKED = "revoked"


class AccessRequest(Wire):
    """POST /api/v1/access-tokens: a token for a person or a script."""

    #: The person that it authenticates: their actions are recorded under this name.
    name: Person
    role: Role
    #: None: until it is revoked.
    valid_s: Annotated[int, Field(ge=MIN_VALID_S, le=MAX_ACCESS_VALID_S)] | None = ACCESS_VALID_S
    #: Drawn by the caller, who can send the same request again when its answer was lost: it is one token.
    #: None: the farm draws one.
    token: Annotated[str | None, Field(max_length=64, repr=False)] = None

    @model_validator(mode="after")
    def _is_for_people(self) -> Self:
        if self.role not in ROLES_BY_RANK:
            raise ValueError(f"{self.role} is no role of people's: agents join with a join token")
        return self


class RotationRequest(Wire):
    """POST /api/v1/access-tokens/{token_id}/rotation: a new secret in place of an old one."""

    #: How long the old secret stays valid, at most.
    grace_s: Annotated[int, Field(ge=0, le=MAX_JOIN_VALID_S)] = 24 * 3600
    #: How long the new one is valid; None: until it is revoked.
    valid_s: Annotated[int, Field(ge=MIN_VALID_S, le=MAX_ACCESS_VALID_S)] | None = ACCESS_VALID_S
    #: As that of an `AccessRequest`.
    token: Annotated[str | None, Field(max_length=64, repr=False)] = None


class AccessToken(Wire):
    """GET /api/v1/access-tokens: a token without its secret."""

    token_id: str
    state: AccessState
    role: Role
    name: str
    created_at: datetime
    created_by: str
    expires_at: datetime | None
    revoked_at: datetime | None
    #: To the minute; None: not since the farm records it.
    last_used_at: datetime | None = None


class NewAccessToken(AccessToken):
    """A token with its secret, shown once; the farm keeps the hash only."""

    token: str


class DeviceCode(Wire):
    """POST /api/v1/sign-in/device: what a person enters at the identity provider of the farm."""

    #: What the program asks with in between.
    device_code: Annotated[str, Field(repr=False)]
    user_code: str
    #: Where it is entered; `complete_address` has it entered already.
    address: str
    complete_address: str | None = None
    valid_s: int
    #: The least time between two questions.
    interval_s: int


class DeviceCodeRequest(Wire):
    """POST /api/v1/sign-in/device/token: has the person entered the code?"""

    device_code: Annotated[str, Field(min_length=1, max_length=3000, repr=False)]


class DeviceSignIn(Wire):
    """The answer: a token, once; without one the person has not entered the code yet."""

    token: NewAccessToken | None = None
    #: The program asks too often: 5 s are added to its interval.
    is_too_fast: bool = False


class SignInEnd(Wire):
    """DELETE /api/v1/sign-in: what became of the token of the call."""

    #: False: it is not of a sign-in, and others may use it.
    is_revoked: bool


class CallerView(Wire):
    """GET /api/v1/caller: the caller as the farm identifies it."""

    name: str
    role: Role
    #: By a token; else the name is the caller's own claim, and the farm trusts its own machine.
    is_authenticated: bool


class TokenState(StrEnum):
    """The state of a join token."""

    OPEN = "open"
    USED = "used"
    EXPIRED = "expired"


class TokenRequest(Wire):
    """POST /api/v1/tokens: a single-use token for the agent of one host."""

    #: True if devices of that host are admitted automatically.
    auto_admit: bool = False
    valid_s: Annotated[int, Field(ge=MIN_VALID_S, le=MAX_JOIN_VALID_S)] = 24 * 3600
    #: The name of the only host that may join with it; None: any.
    host: HostId | None = None
    #: Drawn by the caller, who can send the same request again when its answer was lost: it is one token.
    #: None: the farm draws one.
    token: Annotated[str | None, Field(max_length=64, repr=False)] = None


class JoinToken(Wire):
    """GET /api/v1/tokens: a token without its secret."""

    token_id: str
    state: TokenState
    role: Literal[Role.AGENT] = Role.AGENT
    auto_admit: bool
    #: The only host that may join with it; None: any.
    host: HostId | None = None
    created_at: datetime
    expires_at: datetime
    used_at: datetime | None = None
    used_by: HostId | None = None


class NewJoinToken(JoinToken):
    """A token with its secret, shown once; the farm keeps the hash only."""

    token: str
    #: URL for agents on other machines; None when this farm serves none.
    agents_url: str | None = None
