"""A person sees and removes the files that they uploaded, which frees their quota; others' take an admin."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa

from farm.core.base.ids import digest_of
from farm.core.operations.role import Role
from farm.database.tables import events
from farm.services.files.builtin_programs import builtin_digests
from tests.api.routes.test_all_routes import matrix_spec, refused, register_variant, upload
from tests.api.routes.test_names_of_others import as_caller, register
from tests.support.farm.http_farm import HttpFarm, http_farm
from tests.support.farm.service_fixture import model_file, phone

QUOTA_BYTES = 100_000
CONTENT = b"a" * 600


@pytest.fixture
def farm(tmp_path: Path) -> Iterator[HttpFarm]:
    with http_farm(tmp_path, require_tokens=True, stored_bytes_per_person=QUOTA_BYTES) as served:
        as_caller(served, Role.SUBMITTER, "ann")
        yield served


def remove(farm: HttpFarm, content: bytes) -> httpx.Response:
    return farm.http.delete(f"/api/v1/storage/files/{digest_of(content)}")


def listed(farm: HttpFarm, **query: Any) -> dict[str, Any]:
    answer = farm.http.get("/api/v1/storage/files", params=query)
    assert answer.status_code == 200, answer.text
    view: dict[str, Any] = answer.json()
    return view


def send_part(farm: HttpFarm, content: bytes, total_bytes: int) -> httpx.Response:
    headers = {"Content-Range": f"bytes 0-{len(content) - 1}/{total_bytes}"}
    whole = content + b"\0" * (total_bytes - len(content))
    return farm.http.put(f"/api/v1/blobs/{digest_of(whole)}", content=content, headers=headers)


def test_files_are_listed_by_size_with_names_use_and_quota_and_only_those_of_the_person(
    farm: HttpFarm,
) -> None:
    upload(farm, b"b")
    upload(farm, CONTENT)
    register_variant(farm).raise_for_status()
    as_caller(farm, Role.SUBMITTER, "ben")
    upload(farm, b"c")
    assert [file["digest"] for file in listed(farm)["largest"]] == [digest_of(b"c")]
    view = listed(farm, person="ann")
    model = model_file("torchscript", marker="mobilenet_v2/float32")
    assert (view["person"], view["files"], view["quota_bytes"]) == ("ann", 3, QUOTA_BYTES)
    assert view["size_bytes"] == 1 + len(CONTENT) + len(model)
    sizes = [file["size_bytes"] for file in view["largest"]]
    assert sizes == sorted(sizes, reverse=True)
    (named,) = (file for file in view["largest"] if file["names"])
    assert named["names"] == ["mobilenet_v2/float32/torchscript"]
    assert {file["use"] for file in view["largest"]} == {"unused"}
    assert len(listed(farm, person="ann", limit=1)["largest"]) == 1


def test_a_removed_file_frees_the_quota_at_once_and_can_be_sent_again(farm: HttpFarm) -> None:
    whole = b"a" * QUOTA_BYTES
    assert upload(farm, whole).status_code == 201
    hint = refused(upload(farm, b"b"), 413, "quota.reached")["hint"]
    assert "farm storage files" in hint
    assert "farm storage remove" in hint
    assert remove(farm, whole).json() == {
        "digest": digest_of(whole),
        "size_bytes": QUOTA_BYTES,
        "names": [],
    }
    assert farm.http.get(f"/api/v1/blobs/{digest_of(whole)}").status_code == 410
    assert not farm.context.blobs.path(digest_of(whole)).exists()
    assert upload(farm, b"b").status_code == 201
    assert remove(farm, b"b").status_code == 200
    assert upload(farm, whole).status_code == 201
    assert farm.http.get(f"/api/v1/blobs/{digest_of(whole)}").content == whole
    removed = sa.select(events.c.actor, events.c.subject_id).where(events.c.kind == "artifact_removed")
    rows = farm.context.database.read(lambda connection: connection.execute(removed).all())
    assert list(map(tuple, rows)) == [("user:ann", digest_of(whole)), ("user:ann", digest_of(b"b"))]


def test_what_an_unfinished_matrix_needs_is_kept_until_it_is_cancelled(farm: HttpFarm) -> None:
    host = farm.enroll()
    host.exchange(devices=(phone("phone-1"),))
    as_caller(farm, Role.OPERATOR, "olga")
    register(farm, "speed_benchmark_torch").raise_for_status()
    as_caller(farm, Role.SUBMITTER, "ann")
    register_variant(farm).raise_for_status()
    matrix = farm.http.post("/api/v1/matrices", json={"spec": matrix_spec()})
    matrix.raise_for_status()
    model = model_file("torchscript", marker="mobilenet_v2/float32")
    (file,) = listed(farm)["largest"]
    assert file["use"] == "needed"
    assert "cancel" in refused(remove(farm, model), 409, "conflict")["hint"]
    matrix_id = matrix.json()["matrix_id"]
    farm.http.post(f"/api/v1/matrices/{matrix_id}/cancel", json={}).raise_for_status()
    assert remove(farm, model).json()["names"] == ["mobilenet_v2/float32/torchscript"]


def test_the_file_of_someone_else_takes_an_admin(farm: HttpFarm) -> None:
    upload(farm, CONTENT)
    for role in (Role.SUBMITTER, Role.OPERATOR):
        as_caller(farm, role, f"the-{role}")
        refused(remove(farm, CONTENT), 403, "auth.forbidden")
    as_caller(farm, Role.VIEWER, "vic")
    refused(remove(farm, CONTENT), 403, "auth.forbidden")
    as_caller(farm, Role.ADMIN, "ada")
    assert remove(farm, CONTENT).status_code == 200
    refused(remove(farm, CONTENT), 410, "artifact.expired")


def test_a_file_that_a_name_of_someone_else_means_is_kept(farm: HttpFarm) -> None:
    model = model_file("torchscript", marker="mobilenet_v2/float32")
    upload(farm, model)
    program = b"#!/bin/sh\n# of both\n"
    upload(farm, program)
    as_caller(farm, Role.SUBMITTER, "ben")
    register_variant(farm).raise_for_status()
    as_caller(farm, Role.OPERATOR, "olga")
    register(farm, "speed_benchmark_torch", program).raise_for_status()
    as_caller(farm, Role.SUBMITTER, "ann")
    for content, name in ((model, "mobilenet_v2/float32"), (program, "speed_benchmark_torch for")):
        assert name in refused(remove(farm, content), 409, "conflict")["detail"]


def test_the_farm_keeps_its_own_files(farm: HttpFarm) -> None:
    as_caller(farm, Role.ADMIN, "ada")
    for digest in builtin_digests():
        refused(farm.http.delete(f"/api/v1/storage/files/{digest}"), 409, "conflict")


def test_what_has_arrived_of_an_upload_counts_is_listed_and_can_be_removed(farm: HttpFarm) -> None:
    content = b"a" * 60_000
    assert send_part(farm, content, QUOTA_BYTES).status_code == 202
    whole = content + b"\0" * (QUOTA_BYTES - len(content))
    assert listed(farm)["arriving"] == {digest_of(whole): len(content)}
    refused(upload(farm, b"b" * 40_001), 413, "quota.reached")
    assert upload(farm, b"b" * 40_000).status_code == 201
    # Nor does it fit any more itself.
    refused(send_part(farm, content, QUOTA_BYTES), 413, "quota.reached")
    as_caller(farm, Role.SUBMITTER, "ben")
    assert upload(farm, b"c" * QUOTA_BYTES).status_code == 201
    assert remove(farm, whole).status_code == 404
    as_caller(farm, Role.SUBMITTER, "ann")
    assert remove(farm, whole).json()["size_bytes"] == len(content)
    assert listed(farm)["arriving"] == {}
    assert upload(farm, b"d" * 60_000).status_code == 201


def test_an_upload_goes_on_for_who_began_it_alone(farm: HttpFarm) -> None:
    content = b"a" * 100
    send_part(farm, content, 200)
    path = f"/api/v1/blobs/{digest_of(content + bytes(100))}"
    assert farm.http.head(path).headers["Upload-Offset"] == "100"
    as_caller(farm, Role.SUBMITTER, "ben")
    assert farm.http.head(path).headers["Upload-Offset"] == "0"
    as_caller(farm, Role.SUBMITTER, "ann")
    rest = farm.http.put(path, content=bytes(100), headers={"Content-Range": "bytes 100-199/200"})
    assert rest.status_code == 201
