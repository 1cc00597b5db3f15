"""Submissions whose answers are lost on the way: one matrix, whoever sends them again."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from farm.client.farm_client import FarmClient
from farm.core.errors import FarmUnreachable
from farm.core.operations.role import Role
from farm.database.tables import events
from farm.wire.documents.access import AccessRequest, TokenRequest
from tests.api.routes.test_all_routes import matrix_spec, refused, register_variant
from tests.support.farm.http_farm import HttpFarm, either_database, http_farm
from tests.support.farm.service_fixture import phone
from tests.support.faults.network_faults import cut_line

#: Of an answer: nothing that could be read.
LOST = 1


@contextmanager
def furnished(folder: Path, **config: Any) -> Iterator[HttpFarm]:
    with http_farm(folder, **config) as served:
        assert register_variant(served).status_code == 201
        host = served.enroll()
        assert host.exchange(devices=[phone("phone-1")]).status_code == 200
        yield served


@pytest.fixture(params=["sqlite", "postgresql"])
def farm(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[HttpFarm]:
    with either_database(request) as database, furnished(tmp_path, **database) as served:
        yield served


def submissions(farm: HttpFarm) -> int:
    query = sa.select(sa.func.count()).where(events.c.kind == "matrix_submitted")
    return farm.context.database.read(lambda connection: connection.execute(query).scalar_one())


def post(farm: HttpFarm, key: str | None, path: str = "", **body: Any) -> Any:
    headers = {} if key is None else {"Idempotency-Key": key}
    return farm.http.post(f"/api/v1/matrices{path}", headers=headers, json=body)


@pytest.mark.invariant("I17")
@pytest.mark.fault(55)
def test_a_submission_whose_answer_is_lost_is_sent_again_and_is_one_matrix(farm: HttpFarm) -> None:
    with (
        cut_line(farm.url, LOST, None, cuts_answers=True) as (url, line),
        FarmClient(url) as client,
    ):
        view = client.submit_matrix(matrix_spec())
        assert line.cuts == []
        assert [each.matrix_id for each in client.matrices()] == [view.matrix_id]
    assert submissions(farm) == 1


@pytest.mark.fault(55)
def test_a_rerun_whose_answer_is_lost_is_one_matrix(farm: HttpFarm) -> None:
    first = post(farm, None, spec=matrix_spec()).json()["matrix_id"]
    with (
        cut_line(farm.url, LOST, None, cuts_answers=True) as (url, line),
        FarmClient(url) as client,
    ):
        again = client.rerun_matrix(first, failed=False)
        assert line.cuts == []
        assert sorted(each.matrix_id for each in client.matrices()) == sorted([first, again.matrix_id])


@pytest.mark.fault(55)
def test_a_client_that_loses_both_answers_says_that_it_may_exist(farm: HttpFarm) -> None:
    with (
        cut_line(farm.url, LOST, LOST, cuts_answers=True) as (url, line),
        FarmClient(url) as client,
    ):
        with pytest.raises(FarmUnreachable) as lost:
            client.submit_matrix(matrix_spec())
        assert line.cuts == []
    assert "farm matrix list" in lost.value.hint
    assert submissions(farm) == 1


@pytest.mark.fault(55)
def test_tokens_whose_answers_are_lost_are_one_each_and_let_someone_in(farm: HttpFarm) -> None:
    with cut_line(farm.url, LOST, None, LOST, None, cuts_answers=True) as (url, line):
        with FarmClient(url) as client:
            access = client.create_access_token(AccessRequest(name="ann", role=Role.VIEWER))
        with FarmClient(url) as client:
            join = client.create_token(TokenRequest())
            assert line.cuts == []
            assert [each.token_id for each in client.access_tokens()] == [access.token_id]
            unused = [each.token_id for each in client.tokens() if each.used_by is None]
            assert unused == [join.token_id]
    with FarmClient(farm.url, token=access.token) as client:
        assert client.caller().name == "ann"
    enrollment = {"host": "bench-9", "join_token": join.token}
    assert farm.http.post("/api/v1/agent/enroll", json=enrollment).status_code == 200


@pytest.mark.fault(55)
def test_a_client_that_loses_both_answers_says_how_to_end_the_token_that_may_be_there(farm: HttpFarm) -> None:
    with cut_line(farm.url, LOST, LOST, cuts_answers=True) as (url, _), FarmClient(url) as client:
        with pytest.raises(FarmUnreachable) as lost:
            client.create_access_token(AccessRequest(name="ann", role=Role.VIEWER))
        (there,) = client.access_tokens()
    assert f"farm token revoke {there.token_id}" in lost.value.hint


def test_one_key_is_one_request(farm: HttpFarm) -> None:
    first = post(farm, '"a-key"', spec=matrix_spec())
    again = post(farm, "a-key", spec=matrix_spec())
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json()["matrix_id"] == again.json()["matrix_id"]
    refused(post(farm, "a-key", spec=matrix_spec(rounds=6)), 409, "request.reused")
    refused(post(farm, "a-key", f"/{first.json()['matrix_id']}/rerun", failed=False), 409, "request.reused")
    refused(post(farm, "a key", spec=matrix_spec()), 422, "input.invalid")
    assert submissions(farm) == 1


def test_the_answer_is_there_though_the_same_could_not_be_submitted_any_more(farm: HttpFarm) -> None:
    first = post(farm, "a-key", spec=matrix_spec()).json()["matrix_id"]
    asked = {"by": "ann", "reason": "it fell"}
    assert farm.http.post("/api/v1/devices/phone-1/retire", json=asked).status_code == 200
    refused(post(farm, "other", spec=matrix_spec()), 422, "matrix.selector_empty")
    assert post(farm, "a-key", spec=matrix_spec()).json()["matrix_id"] == first
