"""People who ask for what they may not are in the event log, and a flood of them is one row a minute."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from farm.core.operations.role import Role
from farm.database.tables import events
from farm.database.transaction import bind_tx
from farm.services.access.refused_requests import RECORD_EVERY, record_caller_refusal
from farm.services.access.tokens import issue_access_token
from farm.wire.documents.access import AccessRequest
from tests.support.farm.http_farm import HttpFarm, http_farm


@pytest.fixture
def farm(tmp_path: Path) -> Iterator[HttpFarm]:
    with http_farm(tmp_path, require_tokens=True) as served:
        yield served


def bearer(farm: HttpFarm, name: str) -> dict[str, str]:
    context, request = farm.context, AccessRequest(name=name, role=Role.VIEWER)
    issued = context.database.write(
        bind_tx(issue_access_token, now=context.clock.now(), actor="user:root"), request
    )
    return {"Authorization": f"Bearer {issued.token}"}


def told(farm: HttpFarm) -> list[tuple[str, str]]:
    query = sa.select(events.c.actor, events.c.cause).where(events.c.kind == "access_refused")
    rows = farm.context.database.read(lambda connection: connection.execute(query).all())
    return [(row.actor, row.cause) for row in rows]


@pytest.mark.invariant("I19")
def test_each_person_who_is_refused_is_told_of_once(farm: HttpFarm) -> None:
    ann, bob = bearer(farm, "ann"), bearer(farm, "bob")
    for headers in (ann, ann, ann, bob):
        assert farm.http.post("/api/v1/storage/sweep", headers=headers).status_code == 403
    assert [actor for actor, _ in told(farm)] == ["user:ann", "user:bob"]
    assert told(farm)[0][1] == "POST /api/v1/storage/sweep: ann is a viewer, and this needs an operator"


@pytest.mark.invariant("I19")
def test_strangers_are_told_of_together_and_without_what_they_showed(farm: HttpFarm) -> None:
    for number in range(3):
        headers = {"Authorization": f"Bearer bfu_guess{number}"}
        assert farm.http.get("/api/v1/devices", headers=headers).status_code == 401
    assert farm.http.get("/api/v1/devices").status_code == 401
    ((actor, cause),) = told(farm)
    assert actor == "anonymous"
    assert "guess" not in cause


def test_who_is_let_in_is_not_told_of(farm: HttpFarm) -> None:
    assert farm.http.get("/api/v1/devices", headers=bearer(farm, "ann")).status_code == 200
    assert told(farm) == []


def test_another_process_of_the_farm_does_not_tell_it_again(farm: HttpFarm) -> None:
    database, now = farm.context.database, farm.context.clock.now()
    for at in (now, now + RECORD_EVERY / 2, now + RECORD_EVERY):
        database.write(bind_tx(record_caller_refusal, now=at, actor="user:ann"), "asked")
    assert [actor for actor, _ in told(farm)] == ["user:ann"] * 2
