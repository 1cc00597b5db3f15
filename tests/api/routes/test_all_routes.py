"""Every route over real HTTP: what it answers, and the problem documents it refuses with."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import TypeAdapter

from farm.core.base.ids import Digest, digest_of
from farm.core.errors import Blame
from farm.core.models.variant import Format, Manifest, Precision, Recipe, TensorSpec
from farm.wire.base import WIRE_VERSION
from tests.support.farm.http_farm import HttpAgent, HttpFarm, http_farm
from tests.support.farm.service_fixture import model_file, phone

_MAX_BLOB_BYTES = 3 * 1024 * 1024


@pytest.fixture
def farm(tmp_path: Path) -> Iterator[HttpFarm]:
    with http_farm(tmp_path / "data", max_blob_bytes=_MAX_BLOB_BYTES) as served:
        yield served


@pytest.fixture(scope="module")
def one_farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpFarm]:
    """For calls that are refused, or only read."""
    with http_farm(tmp_path_factory.mktemp("farm") / "data", max_blob_bytes=_MAX_BLOB_BYTES) as served:
        yield served


@pytest.fixture
def agent(farm: HttpFarm) -> HttpAgent:
    return farm.enroll()


def refused(answer: httpx.Response, status: int, code: str, blame: Blame = Blame.USER) -> dict[str, Any]:
    """The problem document of an answer that refuses."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem: dict[str, Any] = answer.json()
    assert (problem["status"], problem["code"], problem["blame"]) == (status, code, blame)
    assert problem["hint"]
    assert problem["title"]
    assert problem["detail"]
    return problem


def upload(farm: HttpFarm, content: bytes, digest: str | None = None) -> httpx.Response:
    return farm.http.put(f"/api/v1/blobs/{digest or digest_of(content)}", content=content)


def register_variant(farm: HttpFarm, **changes: Any) -> httpx.Response:
    content = model_file("torchscript", marker="mobilenet_v2/float32")
    upload(farm, content)
    values = {
        "model": "mobilenet_v2",
        "recipe": Recipe(precision=Precision.FLOAT32, format=Format.TORCHSCRIPT),
        "digest": digest_of(content),
        "size_bytes": len(content),
        "backends": ("cpu",),
        "inputs": (TensorSpec(shape=(1, 3, 224, 224), dtype="float32"),),
        "recipe_digest": digest_of(b"recipe"),
        **changes,
    }
    manifest = TypeAdapter(Manifest).dump_python(Manifest(**values), mode="json")
    return farm.http.post("/api/v1/variants", json={"manifest": manifest})


def matrix_spec(**changes: Any) -> dict[str, Any]:
    return {
        "name": "test",
        "harness": "speed_benchmark_torch",
        "axes": {"model": "mobilenet_v2", "precision": "float32", "format": "torchscript", "backend": "cpu"},
        "settings": {"iter": 5},
        "devices": {"virtual": True},
        "rounds": 5,
        "seed": 7,
        **changes,
    }


def test_a_farm_says_that_it_is_well_and_who_it_is(one_farm: HttpFarm) -> None:
    assert one_farm.http.get("/api/v1/health").json() == {"status": "ok"}
    assert one_farm.http.get("/api/v1/farm").json()["wire_version"] == WIRE_VERSION
    assert "/api/v1/matrices" in one_farm.http.get("/openapi.json").json()["paths"]


def test_an_artifact_comes_back_as_it_was_sent(farm: HttpFarm) -> None:
    content = b"\x00\xff" * 1000
    assert upload(farm, content).status_code == 201
    assert upload(farm, content).json() == {"size_bytes": 2000}
    path = f"/api/v1/blobs/{digest_of(content)}"
    assert farm.http.head(path).status_code == 200
    assert farm.http.get(path).content == content


def test_a_variant_is_registered_and_listed(farm: HttpFarm) -> None:
    answer = register_variant(farm)
    assert answer.status_code == 201, answer.text
    assert farm.http.get("/api/v1/variants").json() == [answer.json()]


def test_a_matrix_travels_from_submission_to_its_measurement(farm: HttpFarm, agent: HttpAgent) -> None:
    register_variant(farm)
    agent.exchange(devices=(phone("phone-1"),))
    answer = farm.http.post("/api/v1/matrices", json={"spec": matrix_spec()})
    assert answer.status_code == 201, answer.text
    matrix_id = answer.json()["matrix_id"]
    assert farm.http.get(f"/api/v1/matrices/{matrix_id}").json()["jobs"] == 5
    assert [row["matrix_id"] for row in farm.http.get("/api/v1/matrices").json()] == [matrix_id]
    jobs = farm.http.get("/api/v1/jobs", params={"matrix_id": matrix_id}).json()
    assert [job["state"] for job in jobs] == ["queued"] * 5
    assert farm.http.get("/api/v1/speedups", params={"matrix_id": matrix_id}).json() == []
    assert farm.http.get("/api/v1/devices").json()[0]["device_id"] == "phone-1"
    assert {row["name"] for row in farm.http.get("/api/v1/harnesses").json()} == {"speed_benchmark_torch"}
    assert farm.http.get("/api/v1/attempts/1").json()["plan"]["harness"] == "device_check"


@pytest.mark.parametrize(
    "path",
    ["/matrices/99", "/attempts/99", "/jobs?matrix_id=99", "/speedups?matrix_id=99", f"/blobs/{'0' * 64}"],
)
def test_what_does_not_exist_is_not_found(one_farm: HttpFarm, path: str) -> None:
    refused(one_farm.http.get(f"/api/v1{path}"), 404, "not_found")


def test_a_path_that_is_none_is_not_found_and_a_method_that_is_none_says_which_are(
    one_farm: HttpFarm,
) -> None:
    refused(one_farm.http.get("/api/v1/nothing"), 404, "not_found")
    answer = one_farm.http.delete("/api/v1/matrices")
    refused(answer, 405, "input.invalid")
    assert answer.headers["allow"]


@pytest.mark.parametrize(
    "path", ["/matrices/-1", f"/matrices/{10**30}", "/attempts/x", f"/jobs?matrix_id={2**63}", "/jobs"]
)
def test_a_number_that_can_be_no_id_is_refused(one_farm: HttpFarm, path: str) -> None:
    refused(one_farm.http.get(f"/api/v1{path}"), 422, "input.invalid")


@pytest.mark.parametrize("digest", ["0", "0" * 63, "0" * 65, "A" * 64, "g" * 64, "0" * 63 + "%0A"])
@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_a_digest_that_is_misspelt_is_refused(one_farm: HttpFarm, digest: str, method: str) -> None:
    refused(one_farm.http.request(method, f"/api/v1/blobs/{digest}", content=b""), 422, "input.invalid")


@pytest.mark.parametrize(
    "path", ["..%2f..%2ffarm.sqlite3", "%2e%2e/farm.sqlite3", "..%5cfarm.sqlite3", "%00", "incoming"]
)
def test_a_path_is_no_way_out_of_the_artifacts(one_farm: HttpFarm, path: str) -> None:
    answer = one_farm.http.send(httpx.Request("GET", f"{one_farm.url}/api/v1/blobs/{path}"))
    assert answer.status_code in (404, 422)
    assert answer.headers["content-type"] == "application/problem+json"


def test_bytes_with_another_digest_are_refused_and_nothing_is_kept(farm: HttpFarm, tmp_path: Path) -> None:
    announced = digest_of(b"other")
    refused(upload(farm, b"bytes", announced), 422, "artifact.digest_mismatch")
    assert farm.http.head(f"/api/v1/blobs/{announced}").status_code == 404
    assert list((tmp_path / "data" / "blobs" / "incoming").iterdir()) == []


def test_a_blob_over_the_limit_is_refused_and_nothing_is_kept(farm: HttpFarm, tmp_path: Path) -> None:
    content = bytes(_MAX_BLOB_BYTES + 1)
    refused(upload(farm, content), 413, "input.too_large")
    # Without a length, it shows only on the way.
    chunks = (content[at : at + 65536] for at in range(0, len(content), 65536))
    answer = farm.http.put(f"/api/v1/blobs/{digest_of(content)}", content=chunks)
    refused(answer, 413, "input.too_large")
    assert farm.http.head(f"/api/v1/blobs/{digest_of(content)}").status_code == 404
    assert list((tmp_path / "data" / "blobs" / "incoming").iterdir()) == []


def test_a_disk_that_takes_no_more_is_trouble_of_the_farm(farm: HttpFarm, tmp_path: Path) -> None:
    content = b"bytes"
    # The folder of the digest's first letters is in the way.
    (tmp_path / "data" / "blobs" / digest_of(content)[:2]).write_text("a file")
    answer = upload(farm, content)
    refused(answer, 503, "farm.fault", Blame.FARM)
    assert answer.headers["retry-after"]


@pytest.mark.parametrize(
    "body", ["", "{", "[]", '"x"', "[" * 100_000, "\ud800".encode("utf-8", "surrogatepass")]
)
def test_a_body_that_is_no_document_is_refused(one_farm: HttpFarm, body: bytes) -> None:
    answer = one_farm.http.post(
        "/api/v1/matrices", content=body, headers={"Content-Type": "application/json"}
    )
    assert answer.status_code in (400, 422)
    refused(answer, answer.status_code, "input.invalid")


@pytest.mark.parametrize("changes", [{"name": "\\ud800"}, {"settings": {"\\ud800": 1}}, {"seed": 10**30}])
def test_a_matrix_that_no_database_could_keep_is_refused(one_farm: HttpFarm, changes: dict[str, Any]) -> None:
    spec = httpx.Request("POST", one_farm.url, json={"spec": matrix_spec(**changes)}).content
    answer = one_farm.http.post(
        "/api/v1/matrices",
        content=spec.replace(b"\\\\ud800", b"\\ud800"),
        headers={"Content-Type": "application/json"},
    )
    assert answer.status_code == 422, answer.text


def test_a_matrix_of_no_device_says_where_it_is_wrong(farm: HttpFarm) -> None:
    register_variant(farm)
    problem = refused(
        farm.http.post("/api/v1/matrices", json={"spec": matrix_spec()}), 422, "matrix.selector_empty"
    )
    assert problem["places"] == [["devices"]]


def test_a_variant_without_its_file_is_refused(one_farm: HttpFarm) -> None:
    refused(register_variant(one_farm, digest=Digest("0" * 64)), 422, "artifact.missing")


@pytest.mark.parametrize(
    "changes",
    [
        {"model": ""},
        {"model": "a b"},
        {"model": "../x"},
        {"model": "x" * 65},
        {"backends": ()},
        {"recipe_digest": "borrowed"},
        {"recipe": Recipe(precision="W8A16", format=Format.TORCHSCRIPT)},
        {"recipe": Recipe(precision="x" * 33, format=Format.TORCHSCRIPT)},
    ],
)
def test_a_variant_that_no_matrix_could_name_is_refused(farm: HttpFarm, changes: dict[str, Any]) -> None:
    refused(register_variant(farm, **changes), 422, "input.invalid")


def test_a_variant_may_have_a_precision_of_its_own(farm: HttpFarm) -> None:
    answer = register_variant(farm, recipe=Recipe(precision="w8a16", format=Format.TORCHSCRIPT))
    assert answer.status_code == 201
    assert answer.json()["name"] == "mobilenet_v2/w8a16/torchscript"
    listed = farm.http.get("/api/v1/variants").json()
    assert "w8a16" in [each["manifest"]["recipe"]["precision"] for each in listed]


@pytest.mark.parametrize("content", [b"", b"not a model", b"PK\x03\x04 cut short"])
def test_a_file_that_is_no_model_is_refused_without_telling_where_the_farm_keeps_it(
    farm: HttpFarm, tmp_path: Path, content: bytes
) -> None:
    upload(farm, content)
    answer = register_variant(farm, digest=digest_of(content), size_bytes=len(content))
    problem = refused(answer, 422, "variant.invalid")
    assert "mobilenet_v2/float32/torchscript" in problem["detail"]
    assert str(tmp_path) not in problem["detail"]


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "127.0.0.1@evil.example", ""]
)
def test_a_request_made_for_another_name_is_refused(one_farm: HttpFarm, host: str) -> None:
    refused(one_farm.http.get("/api/v1/devices", headers={"Host": host}), 421, "input.invalid")


@pytest.mark.parametrize("host", ["localhost:1", "127.0.0.1", "[::1]:8470", "127.9.9.9"])
def test_every_name_of_loopback_is_served(one_farm: HttpFarm, host: str) -> None:
    assert one_farm.http.get("/api/v1/devices", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://localhost.evil.example"])
def test_a_page_from_elsewhere_is_refused(one_farm: HttpFarm, origin: str) -> None:
    answer = one_farm.http.post("/api/v1/matrices", json={"spec": {}}, headers={"Origin": origin})
    refused(answer, 421, "input.invalid")


def test_a_form_of_a_page_is_no_document(one_farm: HttpFarm) -> None:
    answer = one_farm.http.post(
        "/api/v1/matrices", content=b'{"spec": {}}', headers={"Content-Type": "text/plain"}
    )
    refused(answer, 422, "input.invalid")


def test_a_page_of_the_farms_own_is_served(one_farm: HttpFarm) -> None:
    assert one_farm.http.get("/api/v1/devices", headers={"Origin": one_farm.url}).status_code == 200
