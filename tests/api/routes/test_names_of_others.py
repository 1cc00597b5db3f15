"""Programs and variants by every role, on a farm with tokens: who replaces what others run."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import sqlalchemy as sa

from farm.core.base.ids import digest_of
from farm.core.models.variant import Format, Precision, Recipe
from farm.core.operations.role import ROLES_BY_RANK, Role
from farm.database.tables import events
from tests.api.routes.test_all_routes import refused, register_variant, upload
from tests.support.farm.http_farm import HttpFarm, http_farm
from tests.support.farm.service_fixture import model_file

HARNESS = "speed_benchmark_torch"
MAY_SHARE = {Role.OPERATOR, Role.ADMIN}


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpFarm]:
    with http_farm(tmp_path_factory.mktemp("farm"), require_tokens=True) as served:
        yield served


def as_caller(farm: HttpFarm, role: Role, name: str) -> None:
    farm.http.headers["Authorization"] = f"Bearer {farm.access_token(role, name)}"


def register(farm: HttpFarm, name: str, content: bytes = b"#!/bin/sh\n", **said: Any) -> httpx.Response:
    digest = digest_of(content)
    farm.http.put(f"/api/v1/blobs/{digest}", content=content)
    registration = {
        "name": name,
        "files": [{"path": "b", "digest": digest, "executable": True}],
        "entry": "b",
    }
    return farm.http.post("/api/v1/harnesses", json={**registration, **said})


@pytest.mark.parametrize("role", ROLES_BY_RANK)
@pytest.mark.parametrize("name", [HARNESS, "new", f"boss/{HARNESS}", "boss/new"])
def test_a_name_that_is_not_ones_own_takes_an_operator(farm: HttpFarm, role: Role, name: str) -> None:
    as_caller(farm, role, "ben")
    definition = None if name.endswith(HARNESS) else {"name": "new", "arguments": []}
    answer = register(farm, name, definition=definition)
    if role in MAY_SHARE:
        assert answer.status_code == 201, answer.text
        return
    problem = refused(answer, 403, "auth.forbidden")
    if role is Role.SUBMITTER:
        assert f"`ben/{name.rpartition('/')[2]}`" in problem["hint"]


def test_in_a_name_space_of_ones_own_one_replaces_and_reads(farm: HttpFarm) -> None:
    as_caller(farm, Role.OPERATOR, "olga")
    shared = register(farm, HARNESS, b"#!/bin/sh\n# shared\n").json()["program"]["digest"]
    as_caller(farm, Role.SUBMITTER, "ben")
    for edition in (b"1", b"2"):
        assert register(farm, f"ben/{HARNESS}", b"#!/bin/sh\n#" + edition).status_code == 201
    shown = farm.http.get(f"/api/v1/harnesses/ben%2F{HARNESS}").json()
    assert (shown["name"], len(shown["programs"])) == (f"ben/{HARNESS}", 2)
    in_use = {view["digest"] for view in farm.http.get("/api/v1/harnesses").json() if view["in_use"]}
    assert shared in in_use
    refused(farm.http.get("/api/v1/harnesses/ben%2Fnothing"), 404, "not_found")


def test_a_name_that_no_matrix_could_use_is_for_an_operator(farm: HttpFarm) -> None:
    as_caller(farm, Role.SUBMITTER, "ben/../olga")
    assert "operator" in refused(register(farm, HARNESS), 403, "auth.forbidden")["hint"]
    refused(register(farm, f"ben/../olga/{HARNESS}"), 422, "input.invalid")


def test_a_refused_name_is_in_the_event_log(farm: HttpFarm) -> None:
    as_caller(farm, Role.SUBMITTER, "eve")
    refused(register(farm, HARNESS), 403, "auth.forbidden")
    query = sa.select(events.c.actor, events.c.cause).where(events.c.kind == "access_refused")
    with farm.context.database.engine.connect() as connection:
        causes = {row.actor: row.cause for row in connection.execute(query)}
    assert causes["user:eve"].startswith(f"POST /api/v1/harnesses: `{HARNESS}` is not eve's")


def test_a_variant_is_replaced_by_its_registrant_and_by_operators(farm: HttpFarm) -> None:
    def registered(edition: str) -> httpx.Response:
        content = model_file("torchscript", marker=f"mine/float32/{edition}")
        upload(farm, content)
        recipe = Recipe(precision=Precision.FLOAT32, format=Format.TORCHSCRIPT)
        size = len(content)
        return register_variant(farm, model="mine", recipe=recipe, digest=digest_of(content), size_bytes=size)

    for role, name, status in (
        (Role.VIEWER, "vera", 403),
        (Role.SUBMITTER, "ben", 201),
        (Role.SUBMITTER, "cleo", 403),
        (Role.SUBMITTER, "ben", 201),
        (Role.OPERATOR, "olga", 201),
        (Role.SUBMITTER, "ben", 403),
        (Role.ADMIN, "ann", 201),
    ):
        as_caller(farm, role, name)
        answer = registered(f"{role}-{name}-{status}")
        assert answer.status_code == status, (role, name, answer.text)
    as_caller(farm, Role.VIEWER, "vera")
    assert [view["registered_by"] for view in farm.http.get("/api/v1/variants").json()] == [
        "ben",
        "olga",
        "ann",
    ]


def test_a_variant_is_changed_by_its_registrant_and_by_operators(farm: HttpFarm) -> None:
    as_caller(farm, Role.SUBMITTER, "ben")
    path = f"/api/v1/variants/{register_variant(farm).json()['variant_id']}/manifest"
    for role, name, change, status in (
        (Role.VIEWER, "vera", {"model": "veras"}, 403),
        (Role.SUBMITTER, "cleo", {"model": "cleos"}, 403),
        (Role.SUBMITTER, "ben", {"model": "bens"}, 200),
        (Role.OPERATOR, "olga", {"inputs": [{"shape": [1, 8], "dtype": "int64"}]}, 200),
        (Role.SUBMITTER, "ben", {"model": "no name"}, 422),
        (Role.SUBMITTER, "ben", {"backends": ["gpu"]}, 422),
    ):
        as_caller(farm, role, name)
        assert farm.http.post(path, json=change).status_code == status, (name, change)
    variant_id = int(path.split("/")[4])
    views = farm.http.get("/api/v1/variants").json()
    [view] = [view for view in views if view["variant_id"] == variant_id]
    assert view["name"] == "bens/float32/torchscript"
    assert view["manifest"]["inputs"] == [{"name": "", "shape": [1, 8], "dtype": "int64", "free": []}]
    missing = farm.http.post("/api/v1/variants/99/manifest", json={})
    assert missing.status_code == 404
