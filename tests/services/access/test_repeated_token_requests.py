"""Whoever asks for a token again, because the answer was lost, has one token and not two."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from farm.core.errors import IdempotencyKeyReused, InvalidInput
from farm.core.operations.role import Role
from farm.database.transaction import bind_tx
from farm.services.access.enrollment import issue_join_token, revoke_join_token
from farm.services.access.tokens import authenticate_caller, issue_access_token, revoke_access_token
from farm.wire.documents.access import (
    AccessRequest,
    AccessState,
    NewAccessToken,
    NewJoinToken,
    TokenRequest,
    TokenState,
)
from farm.wire.tokens import TokenKind, derive_secret, new_secret
from tests.support.farm.service_fixture import FarmRig

USER = "bfu_Zk3vQm8aTn0YxWc5LrJd7EhPgUo1BsKi_9fNbV2e-4t"[:47]
JOIN = USER.replace("bfu", "bfj")


def access(farm: FarmRig, actor: str = "user:root", **asked: object) -> NewAccessToken:
    request = AccessRequest.model_validate({"name": "ann", "role": "viewer", "token": USER, **asked})
    return farm.write(bind_tx(issue_access_token, now=farm.clock.now(), actor=actor), request)


def join(farm: FarmRig, **asked: object) -> NewJoinToken:
    request = TokenRequest.model_validate({"token": JOIN, **asked})
    return farm.write(bind_tx(issue_join_token, now=farm.clock.now(), actor="user:root"), request)


def told(farm: FarmRig, kind: str) -> int:
    return len(farm.rows(f"SELECT event_id FROM events WHERE kind = '{kind}'"))


@pytest.mark.invariant("I17")
@pytest.mark.fault(55)
def test_an_access_token_that_is_asked_for_again_is_one_token_with_one_event(farm: FarmRig) -> None:
    first = access(farm, valid_s=600)
    farm.clock.advance(60)
    again = access(farm, valid_s=600)
    assert again == first
    assert again.token == USER
    assert told(farm, "access_token_created") == 1
    caller = farm.read(bind_tx(authenticate_caller, now=farm.clock.now()), USER)
    assert (caller.name, caller.role) == ("ann", Role.VIEWER)


@pytest.mark.invariant("I17")
@pytest.mark.fault(55)
def test_a_join_token_that_is_asked_for_again_is_one_token_with_one_event(farm: FarmRig) -> None:
    first = join(farm, auto_admit=True, valid_s=600)
    farm.clock.advance(60)
    assert join(farm, auto_admit=True, valid_s=600) == first
    assert told(farm, "join_token_created") == 1


@pytest.mark.invariant("I19")
@pytest.mark.parametrize("change", [{"role": "admin"}, {"name": "bob"}, {"valid_s": 60}, {"actor": "user:b"}])
def test_an_access_token_is_no_other_ones_too(farm: FarmRig, change: dict[str, str]) -> None:
    access(farm)
    with pytest.raises(IdempotencyKeyReused) as refused:
        access(farm, **change)
    assert USER not in refused.value.message + refused.value.hint
    assert farm.read(bind_tx(authenticate_caller, now=farm.clock.now()), USER).role is Role.VIEWER


@pytest.mark.invariant("I19")
@pytest.mark.parametrize("change", [{"auto_admit": True}, {"valid_s": 60}, {"valid_s": 1200}])
def test_a_join_token_is_no_other_one_too(farm: FarmRig, change: dict[str, object]) -> None:
    join(farm, valid_s=600)
    with pytest.raises(IdempotencyKeyReused):
        join(farm, **{"valid_s": 600, **change})


def test_asking_again_for_what_was_revoked_brings_it_not_back(farm: FarmRig) -> None:
    now = farm.clock.now()
    farm.write(bind_tx(revoke_access_token, now=now, actor="user:root"), access(farm).token_id)
    assert access(farm).state is AccessState.REVOKED
    farm.write(bind_tx(revoke_join_token, now=now, actor="user:root"), join(farm).token_id)
    assert join(farm).state is TokenState.EXPIRED


@pytest.mark.fault(55)
def test_of_many_that_ask_at_once_all_get_the_same(farm: FarmRig) -> None:
    with ThreadPoolExecutor(max_workers=4) as threads:
        made = [threads.submit(access, farm) for _ in range(4)]
        assert len({each.result().token_id for each in made}) == 1
    assert told(farm, "access_token_created") == 1


def test_without_one_that_the_caller_drew_each_request_is_another_token(farm: FarmRig) -> None:
    assert access(farm, token=None).token != access(farm, token=None).token


@pytest.mark.parametrize(
    "said",
    [
        "",
        "bfu_",
        "secret",
        JOIN,
        USER[:-1],
        f"{USER}x",
        f"bfu_{'a' * 43}",
        f"bfu_{'correct-horse' * 4}"[:47],
        USER.replace("Z", "="),
        f" {USER}"[:47],
    ],
)
def test_what_no_one_drew_at_random_is_no_token(farm: FarmRig, said: str) -> None:
    with pytest.raises(InvalidInput, match="256 random bits"):
        access(farm, token=said)
    assert told(farm, "access_token_created") == 0


@pytest.mark.parametrize("kind", TokenKind)
def test_what_we_draw_is_taken(kind: TokenKind) -> None:
    for _ in range(500):
        secret = new_secret(kind)
        assert derive_secret(kind, secret) == secret


def test_a_request_does_not_show_its_token_where_it_is_printed() -> None:
    assert USER not in repr(AccessRequest(name="ann", role=Role.VIEWER, token=USER))
    assert JOIN not in repr(TokenRequest(token=JOIN))


def test_an_old_token_is_still_the_one_that_was_asked_for(farm: FarmRig) -> None:
    first = join(farm, valid_s=600)
    farm.clock.advance(timedelta(hours=1).total_seconds())
    again = join(farm, valid_s=600)
    assert (again.token_id, again.state) == (first.token_id, TokenState.EXPIRED)
