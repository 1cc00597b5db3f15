"""Names of people whom an identity provider knows: each has one, which no other person or token has."""

from datetime import timedelta

import pytest

from farm.core.errors import AuthError
from farm.core.operations.role import Role
from farm.core.operations.sign_in import Identity
from farm.database.transaction import bind_tx
from farm.services.access.people import sign_in_person
from farm.services.access.tokens import authenticate_caller, issue_access_token
from farm.store.operations.access_tokens import list_access_tokens
from farm.wire.documents.access import AccessRequest, AccessToken, NewAccessToken
from tests.support.farm.service_fixture import FarmRig


def person(subject: str, called: str = "ann", issuer: str = "https://sso.lab") -> Identity:
    return Identity(issuer=issuer, subject=subject, called=called, role=Role.SUBMITTER)


def sign_in(farm: FarmRig, who: Identity) -> NewAccessToken:
    return farm.write(bind_tx(sign_in_person, now=farm.clock.now()), who)


def local_token(farm: FarmRig, name: str) -> None:
    request = AccessRequest(name=name, role=Role.VIEWER)
    farm.write(bind_tx(issue_access_token, now=farm.clock.now(), actor="user:root"), request)


def listed(farm: FarmRig) -> list[AccessToken]:
    return farm.read(bind_tx(list_access_tokens, now=farm.clock.now()), after="", limit=100)


def test_who_is_called_the_same_gets_another_name(farm: FarmRig) -> None:
    local_token(farm, "Ann")
    assert sign_in(farm, person("1")).name == "ann.2"
    assert sign_in(farm, person("2")).name == "ann.3"
    assert sign_in(farm, person("1", issuer="https://other.lab")).name == "ann.4"
    assert sign_in(farm, person("3", called="ann.2")).name == "ann.2.2"


def test_a_person_keeps_their_name_however_they_are_called_later(farm: FarmRig) -> None:
    assert sign_in(farm, person("1")).name == "ann"
    local_token(farm, "ann")
    farm.clock.advance(timedelta(days=400).total_seconds())
    assert sign_in(farm, person("1", called="ben")).name == "ann"
    assert sign_in(farm, person("2")).name == "ann.2"


def test_a_token_ends_after_a_working_day_and_says_how_to_get_the_next(farm: FarmRig) -> None:
    token = sign_in(farm, person("1"))
    local_token(farm, "root")
    assert {each.name for each in listed(farm)} == {"ann", "root"}
    farm.clock.advance(timedelta(hours=12).total_seconds())
    with pytest.raises(AuthError, match="expired") as refused:
        farm.read(bind_tx(authenticate_caller, now=farm.clock.now()), token.token)
    assert "farm login URL" in refused.value.hint
    # One a day would hide the others.
    assert {each.name for each in listed(farm)} == {"root"}
