"""Documents about join tokens."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from farm.core.base.ids import HostId
from farm.core.operations.role import Role
from farm.wire.base import Wire

#: A token travels by hand; nobody needs more than a month for that.
MIN_VALID_S, MAX_VALID_S = 60, 30 * 24 * 3600


class TokenState(StrEnum):
    """The state of a join token."""

    OPEN = "open"
    USED = "used"
    EXPIRED = "expired"


class TokenRequest(Wire):
    """POST /api/v1/tokens: a single-use token for the agent of one host."""

    #: Whether phones of that host join the pool without an operator.
    auto_admit: bool = False
    valid_s: Annotated[int, Field(ge=MIN_VALID_S, le=MAX_VALID_S)] = 24 * 3600
    #: Drawn by the caller, who can send the same request again when its answer was lost: it is one token.
    #: None: the farm draws one.
    token: Annotated[str | None, Field(max_length=64, repr=False)] = None


class TokenView(Wire):
    """GET /api/v1/tokens: a token without what makes it one."""

    token_id: str
    state: TokenState
    role: Literal[Role.AGENT] = Role.AGENT
    auto_admit: bool
    created_at: datetime
    expires_at: datetime
    used_at: datetime | None = None
    used_by: HostId | None = None


class NewTokenView(TokenView):
    """Said once; the farm keeps the token's hash only."""

    token: str
    #: Where agents on other machines call; None when this farm serves none.
    agents_url: str | None = None
