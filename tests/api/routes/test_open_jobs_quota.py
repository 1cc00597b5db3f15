"""A submitter has so many unfinished jobs at most; operators have no limit."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from farm.core.operations.role import Role
from tests.api.routes.test_all_routes import matrix_spec, refused, register_variant
from tests.api.routes.test_names_of_others import as_caller
from tests.support.farm.http_farm import HttpFarm, http_farm
from tests.support.farm.service_fixture import phone


@pytest.fixture
def farm(tmp_path: Path) -> Iterator[HttpFarm]:
    with http_farm(tmp_path, require_tokens=True, open_jobs_per_person=10) as served:
        as_caller(served, Role.OPERATOR, "olga")
        assert register_variant(served).status_code == 201
        assert served.enroll().exchange(devices=[phone("phone-1")]).status_code == 200
        yield served


def submit(farm: HttpFarm, *, rounds: int, key: str | None = None, **changes: Any) -> httpx.Response:
    """A matrix of one cell, with a job for each round, unless changes say otherwise."""
    headers = {} if key is None else {"Idempotency-Key": key}
    spec = matrix_spec(rounds=rounds, aa=False, **changes)
    return farm.http.post("/api/v1/matrices", json={"spec": spec}, headers=headers)


def test_what_is_too_much_is_refused_and_stored_nowhere(farm: HttpFarm) -> None:
    as_caller(farm, Role.SUBMITTER, "ann")
    assert submit(farm, rounds=6).status_code == 201
    answer = submit(farm, rounds=5)
    problem = refused(answer, 429, "limit.reached")
    assert problem["detail"] == "5 jobs more are too many: you have 6 unfinished ones, and may have 10"
    assert "FARM_OPEN_JOBS_PER_PERSON" in problem["hint"]
    assert int(answer.headers["Retry-After"]) == 300
    assert len(farm.http.get("/api/v1/matrices").json()) == 1
    assert submit(farm, rounds=4).status_code == 201


def test_each_person_has_a_quota_and_an_operator_has_none(farm: HttpFarm) -> None:
    as_caller(farm, Role.SUBMITTER, "ann")
    assert submit(farm, rounds=10).status_code == 201
    as_caller(farm, Role.SUBMITTER, "ben")
    assert submit(farm, rounds=10).status_code == 201
    as_caller(farm, Role.OPERATOR, "olga")
    assert submit(farm, rounds=10).status_code == 201
    assert submit(farm, rounds=10).status_code == 201


def test_what_is_cancelled_makes_room(farm: HttpFarm) -> None:
    as_caller(farm, Role.SUBMITTER, "ann")
    matrix = submit(farm, rounds=10).json()
    refused(submit(farm, rounds=1), 429, "limit.reached")
    farm.http.post(f"/api/v1/matrices/{matrix['matrix_id']}/cancel", json={}).raise_for_status()
    assert submit(farm, rounds=10).status_code == 201


def test_jobs_that_are_still_to_be_queued_count(farm: HttpFarm) -> None:
    as_caller(farm, Role.SUBMITTER, "ann")
    # More than are queued at once.
    axes = {**matrix_spec()["axes"], "iter": list(range(1, 31))}
    problem = refused(submit(farm, rounds=100, axes=axes, settings={}), 429, "limit.reached")
    assert "3,000 jobs more" in problem["detail"]


def test_a_submission_that_is_sent_again_is_answered_although_the_quota_is_full(farm: HttpFarm) -> None:
    as_caller(farm, Role.SUBMITTER, "ann")
    first = submit(farm, rounds=10, key="once")
    assert submit(farm, rounds=10, key="once").json()["matrix_id"] == first.json()["matrix_id"]


def test_a_rerun_counts_like_a_submission(farm: HttpFarm) -> None:
    as_caller(farm, Role.SUBMITTER, "ann")
    matrix = submit(farm, rounds=6).json()
    again = farm.http.post(f"/api/v1/matrices/{matrix['matrix_id']}/rerun", json={})
    refused(again, 429, "limit.reached")
