"""A submitter's uploads take so many bytes at most; operators have no limit."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from farm.core.base.ids import digest_of
from farm.core.operations.role import Role
from farm.database.transaction import bind_tx
from farm.store.files.artifacts import expire_artifacts
from tests.api.routes.test_all_routes import refused
from tests.api.routes.test_names_of_others import as_caller
from tests.support.farm.http_farm import HttpFarm, http_farm

QUOTA_BYTES = 1000


@pytest.fixture
def farm(tmp_path: Path) -> Iterator[HttpFarm]:
    with http_farm(tmp_path, require_tokens=True, stored_bytes_per_person=QUOTA_BYTES) as served:
        as_caller(served, Role.SUBMITTER, "ann")
        yield served


def upload(farm: HttpFarm, content: bytes) -> httpx.Response:
    return farm.http.put(f"/api/v1/blobs/{digest_of(content)}", content=content)


def expire(farm: HttpFarm, content: bytes) -> None:
    """Let the bytes go, as a sweep does."""
    write = bind_tx(expire_artifacts, now=farm.context.clock.now(), actor="farm")
    assert farm.context.database.write(write, [digest_of(content)], cause="to free space")


def test_what_is_too_much_is_refused_before_it_is_read_with_figures_and_what_helps(farm: HttpFarm) -> None:
    assert upload(farm, b"a" * 600).status_code == 201
    answer = upload(farm, b"b" * 401)
    problem = refused(answer, 413, "quota.reached")
    assert "401 B more are too much" in problem["detail"]
    assert "take 600 B, and may take 1.00 kB" in problem["detail"]
    assert "FARM_STORED_BYTES_PER_PERSON" in problem["hint"]
    # Waiting does not help.
    assert problem["transient"] is False
    assert "Retry-After" not in answer.headers
    # No byte of it arrived, and what fits is still taken.
    assert not farm.context.blobs.path(digest_of(b"b" * 401)).exists()
    assert upload(farm, b"c" * 400).status_code == 201


def test_an_upload_of_unknown_length_is_counted_when_it_is_recorded(farm: HttpFarm) -> None:
    content = b"a" * (QUOTA_BYTES + 1)
    answer = farm.http.put(f"/api/v1/blobs/{digest_of(content)}", content=iter([content]))
    refused(answer, 413, "quota.reached")
    assert farm.http.head(f"/api/v1/blobs/{digest_of(content)}").status_code == 404


def test_of_two_uploads_at_once_that_do_not_fit_together_one_is_refused(farm: HttpFarm) -> None:
    with ThreadPoolExecutor(2) as threads:
        answers = threads.map(lambda content: upload(farm, content), (b"a" * 600, b"b" * 600))
    assert sorted(answer.status_code for answer in answers) == [201, 413]


def test_a_file_that_is_there_costs_nothing_more_whoever_sends_it(farm: HttpFarm) -> None:
    assert upload(farm, b"a" * QUOTA_BYTES).status_code == 201
    assert upload(farm, b"a" * QUOTA_BYTES).status_code == 201
    as_caller(farm, Role.SUBMITTER, "ben")
    assert upload(farm, b"b" * QUOTA_BYTES).status_code == 201
    assert upload(farm, b"a" * QUOTA_BYTES).status_code == 201


def test_what_expired_costs_nothing_until_someone_sends_it_again_who_has_it_then(
    farm: HttpFarm,
) -> None:
    assert upload(farm, b"a" * QUOTA_BYTES).status_code == 201
    expire(farm, b"a" * QUOTA_BYTES)
    as_caller(farm, Role.SUBMITTER, "ben")
    assert upload(farm, b"a" * QUOTA_BYTES).status_code == 201
    refused(upload(farm, b"b"), 413, "quota.reached")
    as_caller(farm, Role.SUBMITTER, "ann")
    assert upload(farm, b"c" * QUOTA_BYTES).status_code == 201


def test_an_operator_has_no_quota(farm: HttpFarm) -> None:
    as_caller(farm, Role.OPERATOR, "olga")
    assert upload(farm, b"a" * QUOTA_BYTES).status_code == 201
    assert upload(farm, b"b" * QUOTA_BYTES).status_code == 201
