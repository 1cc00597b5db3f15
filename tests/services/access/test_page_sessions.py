"""Sessions of browsers: a working day, longer for those who only look, and never longer than their token."""

from datetime import timedelta

import pytest

from farm.core.errors import AuthError
from farm.core.operations.role import Role
from farm.database.transaction import bind_tx
from farm.services.access.page_sessions import authenticate_session, sign_in
from farm.services.access.tokens import issue_access_token
from farm.wire.documents.access import AccessRequest
from tests.support.farm.service_fixture import FarmRig

HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    ("role", "token_lasts", "lasts"),
    [
        (Role.OPERATOR, timedelta(days=90), 12 * HOUR),
        (Role.VIEWER, timedelta(days=90), timedelta(days=30)),
        (Role.VIEWER, 12 * HOUR, 12 * HOUR),
    ],
)
def test_a_session_lasts_as_long_as_its_role_and_token_say(
    farm: FarmRig, role: Role, token_lasts: timedelta, lasts: timedelta
) -> None:
    request = AccessRequest(name="ann", role=role, valid_s=int(token_lasts.total_seconds()))
    made = farm.write(bind_tx(issue_access_token, now=farm.clock.now(), actor="user:root"), request)
    secret = farm.write(bind_tx(sign_in, now=farm.clock.now()), made.token)
    farm.clock.advance((lasts - HOUR / 60).total_seconds())
    assert farm.read(bind_tx(authenticate_session, now=farm.clock.now()), secret).role == role
    farm.clock.advance((HOUR / 30).total_seconds())
    with pytest.raises(AuthError):
        farm.read(bind_tx(authenticate_session, now=farm.clock.now()), secret)
