"""Access tokens: a name and a role, proven until they expire or are revoked, on both databases."""

from datetime import timedelta

import pytest
import sqlalchemy as sa
from pydantic import ValidationError

from farm.core.errors import AuthError, Conflict, FarmBusy, InvalidInput, NotFound, TokenExpired
from farm.core.operations.event import AccessEvent
from farm.core.operations.role import ROLES_BY_RANK, Caller, Role
from farm.database.tables import access_tokens, events
from farm.database.transaction import bind_tx
from farm.services.access.refused_requests import RECORD_EVERY, record_refusal
from farm.services.access.token_uses import TokenUses
from farm.services.access.tokens import (
    authenticate_caller,
    check_an_admin_has_a_token,
    issue_access_token,
    revoke_access_token,
    rotate_access_token,
)
from farm.store.operations.access_tokens import list_access_tokens, store_token_uses
from farm.wire.documents.access import AccessRequest, NewAccessToken, RotationRequest
from farm.wire.tokens import TokenKind, hash_of, new_secret
from tests.support.farm.service_fixture import FarmRig, HostRig


def issue(
    farm: FarmRig, role: Role = Role.SUBMITTER, *, name: str = "ann", valid_s: int | None = None
) -> NewAccessToken:
    request = AccessRequest(name=name, role=role, valid_s=valid_s)
    return farm.write(bind_tx(issue_access_token, now=farm.clock.now(), actor="user:root"), request)


def caller(farm: FarmRig, token: str) -> Caller:
    return farm.read(bind_tx(authenticate_caller, now=farm.clock.now()), token)


def revoke(farm: FarmRig, token_id: str) -> None:
    farm.write(bind_tx(revoke_access_token, now=farm.clock.now(), actor="user:root"), token_id)


@pytest.mark.parametrize("role", ROLES_BY_RANK)
def test_a_token_proves_its_name_and_role(farm: FarmRig, role: Role) -> None:
    token = issue(farm, role).token
    assert token.startswith("bfu_")
    assert caller(farm, token) == Caller(name="ann", role=role, is_authenticated=True)


@pytest.mark.parametrize("change", ["x{}", "{}x", "{:.20}", ""])
def test_nothing_but_the_token_itself_gets_anybody_in(farm: FarmRig, change: str) -> None:
    token = issue(farm).token
    with pytest.raises(AuthError):
        caller(farm, change.format(token))


def test_only_the_hash_of_a_token_is_kept(farm: FarmRig) -> None:
    made = issue(farm)
    rows = farm.read(lambda connection: connection.execute(sa.select(access_tokens)).all())
    told = farm.read(lambda connection: connection.execute(sa.select(events)).all())
    assert made.token not in repr(rows)
    assert made.token.removeprefix("bfu_") not in repr([*rows, *told])
    # Nor does what names it in listings get anybody in.
    with pytest.raises(AuthError):
        caller(farm, made.token_id)


def test_a_token_ends_at_its_time_and_not_before(farm: FarmRig) -> None:
    token = issue(farm, valid_s=60).token
    farm.clock.advance(59)
    caller(farm, token)
    farm.clock.advance(1)
    with pytest.raises(AuthError):
        caller(farm, token)


def test_a_revoked_token_is_good_for_nothing_from_then_on(farm: FarmRig) -> None:
    made, other = issue(farm), issue(farm)
    revoke(farm, made.token_id)
    with pytest.raises(AuthError):
        caller(farm, made.token)
    assert caller(farm, other.token).name == "ann"
    with pytest.raises(Conflict):
        revoke(farm, made.token_id)
    with pytest.raises(NotFound):
        revoke(farm, "never made")


def test_an_expired_token_is_not_revoked_once_more(farm: FarmRig) -> None:
    made = issue(farm, valid_s=60)
    farm.clock.advance(61)
    with pytest.raises(Conflict, match="expired"):
        revoke(farm, made.token_id)


def test_the_listing_says_who_may_what_and_until_when(farm: FarmRig) -> None:
    revoked = issue(farm, Role.VIEWER)
    farm.clock.advance(1)
    issue(farm, Role.OPERATOR, name="ben", valid_s=60)
    farm.clock.advance(1)
    issue(farm, Role.ADMIN, name="cid")
    revoke(farm, revoked.token_id)
    farm.clock.advance(60)
    listed = farm.read(bind_tx(list_access_tokens, now=farm.clock.now()), after="", limit=4)
    assert {(view.name, view.role, view.state) for view in listed} == {
        ("cid", "admin", "open"),
        ("ben", "operator", "expired"),
        ("ann", "viewer", "revoked"),
    }


@pytest.mark.invariant("I17")
def test_making_and_revoking_are_events_with_their_actor(farm: FarmRig) -> None:
    made = issue(farm)
    revoke(farm, made.token_id)
    query = sa.select(events.c.kind, events.c.actor, events.c.cause).where(
        events.c.subject == "access_token", events.c.subject_id == made.token_id
    )
    told = farm.read(lambda connection: connection.execute(query.order_by(events.c.event_id)).all())
    assert [tuple(row) for row in told] == [
        ("access_token_created", "user:root", "submitter ann"),
        ("access_token_revoked", "user:root", None),
    ]


@pytest.mark.parametrize("role", [Role.VIEWER, Role.SUBMITTER, Role.OPERATOR])
def test_others_may_call_only_once_there_is_an_admin(farm: FarmRig, role: Role) -> None:
    issue(farm, role)
    with pytest.raises(InvalidInput) as refused:
        farm.read(bind_tx(check_an_admin_has_a_token, now=farm.clock.now()))
    assert "farm token create --role admin" in refused.value.hint
    admin = issue(farm, Role.ADMIN, valid_s=60)
    farm.read(bind_tx(check_an_admin_has_a_token, now=farm.clock.now()))
    # It has expired: the farm still starts, for all the others.
    farm.clock.advance(60)
    farm.read(bind_tx(check_an_admin_has_a_token, now=farm.clock.now()))
    again = issue(farm, Role.ADMIN)
    revoke(farm, again.token_id)
    farm.read(bind_tx(check_an_admin_has_a_token, now=farm.clock.now()))
    assert admin.role is Role.ADMIN


def test_a_token_expires_after_90_days_unless_another_time_is_asked_for() -> None:
    assert AccessRequest(name="ann", role=Role.VIEWER).valid_s == 90 * 24 * 3600
    assert AccessRequest(name="ann", role=Role.VIEWER, valid_s=None).valid_s is None


def test_who_has_an_expired_token_is_told_so_and_no_one_else(farm: FarmRig) -> None:
    made = issue(farm, valid_s=60)
    revoked = issue(farm)
    revoke(farm, revoked.token_id)
    farm.clock.advance(60)
    with pytest.raises(TokenExpired, match=f"access token {made.token_id} of ann expired at 20"):
        caller(farm, made.token)
    for secret in (revoked.token, made.token + "x"):
        with pytest.raises(AuthError, match="unknown, too old or revoked") as refusal:
            caller(farm, secret)
        assert refusal.value.code == "auth.invalid"


def rotate(farm: FarmRig, token_id: str, **values: object) -> NewAccessToken:
    request = RotationRequest.model_validate(values)
    return farm.write(
        bind_tx(rotate_access_token, now=farm.clock.now(), actor="user:root"), token_id, request
    )


def test_a_rotated_token_has_the_name_and_role_of_the_old_one_which_expires(farm: FarmRig) -> None:
    old = issue(farm, Role.OPERATOR)
    new = rotate(farm, old.token_id, grace_s=600)
    assert caller(farm, new.token) == caller(farm, old.token)
    farm.clock.advance(599)
    assert caller(farm, old.token).name == "ann"
    farm.clock.advance(1)
    with pytest.raises(AuthError, match="expired"):
        caller(farm, old.token)
    assert caller(farm, new.token).role is Role.OPERATOR
    told = farm.read(lambda connection: connection.execute(sa.select(events.c.cause)).scalars().all())
    assert f"operator ann, in place of {old.token_id}" in told


def test_a_rotation_makes_no_token_live_longer_and_without_grace_ends_it_at_once(farm: FarmRig) -> None:
    soon = issue(farm, valid_s=60)
    rotate(farm, soon.token_id, grace_s=600)
    farm.clock.advance(60)
    with pytest.raises(AuthError):
        caller(farm, soon.token)
    leaked = issue(farm)
    rotate(farm, leaked.token_id, grace_s=0)
    with pytest.raises(AuthError):
        caller(farm, leaked.token)
    with pytest.raises(Conflict, match="expired already"):
        rotate(farm, leaked.token_id)
    with pytest.raises(NotFound):
        rotate(farm, "nothing")


def test_a_rotation_whose_answer_was_lost_is_asked_for_again(farm: FarmRig) -> None:
    old, drawn = issue(farm), new_secret(TokenKind.USER)
    first = rotate(farm, old.token_id, token=drawn)
    farm.clock.advance(60)
    assert rotate(farm, old.token_id, token=drawn).token_id == first.token_id
    farm.clock.advance(24 * 3600 - 60)
    with pytest.raises(AuthError):
        caller(farm, old.token)


def test_uses_are_stored_together_the_newest_of_each_token(farm: FarmRig) -> None:
    first, second = issue(farm, name="ann"), issue(farm, name="ben")
    uses = TokenUses(farm.database, farm.clock)
    uses.note(hash_of(first.token))
    farm.clock.advance(30)
    used_at = farm.clock.now()
    uses.note(hash_of(first.token))
    uses.note(hash_of("of no token"))
    uses()

    def last_uses() -> list[object]:
        tokens = farm.read(bind_tx(list_access_tokens, now=farm.clock.now()), after="", limit=10)
        return [next(each.last_used_at for each in tokens if each.name == name) for name in ("ann", "ben")]

    assert last_uses() == [used_at, None]
    # What was stored is not written again, and an earlier time does not take its place.
    farm.write(
        bind_tx(store_token_uses, now=farm.clock.now()),
        {hash_of(first.token): used_at - timedelta(seconds=5)},
    )
    assert last_uses() == [used_at, None]
    assert second.last_used_at is None


def test_uses_that_could_not_be_stored_are_stored_later(
    farm: FarmRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = issue(farm)
    uses = TokenUses(farm.database, farm.clock)
    uses.note(hash_of(token.token))

    def fails(*_: object) -> None:
        raise FarmBusy("locked")

    with monkeypatch.context() as broken:
        broken.setattr(farm.database, "write", fails)
        with pytest.raises(FarmBusy):
            uses()
    uses()
    (listed,) = farm.read(bind_tx(list_access_tokens, now=farm.clock.now()), after="", limit=10)
    assert listed.last_used_at == farm.clock.now()


@pytest.mark.parametrize("values", [{"role": "agent"}, {"name": "a b"}, {"name": ""}, {"valid_s": 59}])
def test_a_token_that_makes_no_sense_is_not_asked_for(values: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        AccessRequest.model_validate({"name": "ann", "role": "viewer", **values})


@pytest.mark.invariant("I19")
def test_a_flood_of_refusals_is_told_once_a_minute_for_each_host(farm: FarmRig) -> None:
    def refused(host: HostRig) -> None:
        farm.write(bind_tx(record_refusal, now=farm.clock.now()), host.host_id, "attempt 7 is another's")

    first, second = farm.host("bench-1"), farm.host("bench-2")
    for _ in range(3):
        refused(first)
        refused(second)
        farm.clock.advance(RECORD_EVERY / timedelta(seconds=1) / 3)
    refused(first)
    query = sa.select(events.c.actor).where(events.c.kind == AccessEvent.ACCESS_REFUSED)
    told = farm.read(lambda connection: connection.execute(query).scalars().all())
    assert sorted(told) == ["agent:bench-1", "agent:bench-1", "agent:bench-2"]
