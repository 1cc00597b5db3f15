"""What cannot be is refused with a problem document, on both databases alike, and changes nothing."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from farm.api.app import create_app
from farm.api.http.request_bodies import MAX_DOCUMENT_BYTES
from farm.api.routes.agents import MAX_REPORT_BYTES
from farm.config import FarmConfig
from farm.core.errors import Blame
from farm.wire.agents.protocol import ExchangeAnswer
from tests.api.routes.test_all_routes import matrix_spec, refused, register_variant
from tests.support.fake_clock import FakeClock
from tests.support.farm.http_farm import HttpAgent, HttpFarm, either_database, http_farm
from tests.support.farm.service_fixture import good_evidence, phone, report_body
from tests.support.invariants.invariants import check_engine

JSON = {"Content-Type": "application/json"}
NUL = "a\0b"
#: Half of a surrogate pair: JSON can write it, no text encoding can.
HALF = "\ud800"
LONG = "x" * 5000
TOO_BIG = 10**30
BEYOND_ROWS = 2**63


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def farm(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpFarm]:
    """One farm for all of these: what is refused leaves it as it was."""
    folder = tmp_path_factory.mktemp("farm")
    with either_database(request) as database, http_farm(folder, **database) as served:
        register_variant(served)
        yield served
        check_engine(served.context.database.engine)


@pytest.fixture(scope="module")
def agent(farm: HttpFarm) -> HttpAgent:
    return farm.enroll()


def unbounded_integers(schema: Any, schemas: dict[str, Any], place: str, seen: set[str]) -> Iterator[str]:
    """Yield where a request may hold a whole number of any size."""
    if isinstance(schema, list):
        for part in schema:
            yield from unbounded_integers(part, schemas, place, seen)
    if not isinstance(schema, dict):
        return
    name = schema.get("$ref", "").rpartition("/")[2]
    if name and name not in seen:
        seen.add(name)
        yield from unbounded_integers(schemas[name], schemas, name, seen)
    is_open = not schema.keys() & {"maximum", "exclusiveMaximum", "enum", "const"}
    if schema.get("type") == "integer" and is_open:
        yield place
    for key, part in schema.get("properties", {}).items():
        yield from unbounded_integers(part, schemas, f"{place}.{key}", seen)
    for key in ("anyOf", "oneOf", "allOf", "items", "prefixItems", "additionalProperties"):
        yield from unbounded_integers(schema.get(key), schemas, place, seen)


def test_no_number_of_a_request_is_greater_than_a_database_takes(tmp_path: Path) -> None:
    """Such a number was an error of the farm, which ended the connection."""
    document = create_app(FarmConfig(data_dir=tmp_path), FakeClock()).openapi()
    requests = [
        (f"{method} {path}", schema)
        for path, calls in document["paths"].items()
        for method, call in calls.items()
        for schema in (
            *(parameter["schema"] for parameter in call.get("parameters", ())),
            *(body.get("schema", {}) for body in call.get("requestBody", {}).get("content", {}).values()),
        )
    ]
    seen: set[str] = set()
    schemas = document["components"]["schemas"]
    found = {place for call, schema in requests for place in unbounded_integers(schema, schemas, call, seen)}
    # Its values are few, and checked one by one.
    assert found - {"ThermalStatus"} == set()
    assert "ReparseRequest" in seen


def problem(answer: httpx.Response) -> dict[str, Any]:
    """The document of a refusal, whatever is refused."""
    assert 400 <= answer.status_code < 500, f"{answer.status_code} {answer.text[:500]}"
    assert answer.headers["content-type"] == "application/problem+json"
    document: dict[str, Any] = answer.json()
    assert document["status"] == answer.status_code
    assert document["blame"] == Blame.USER
    assert document["code"]
    assert document["hint"]
    return document


def post(farm: HttpFarm, path: str, document: object) -> httpx.Response:
    # In ASCII, as JSON writes what no other encoding can.
    return farm.http.post(f"/api/v1{path}", content=json.dumps(document).encode(), headers=JSON)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b"\xff\xfe",
        b"\xef\xbb\xbf",
        '{"spec": {"é": 1}}'.encode("latin-1"),
        '{"spec": {}}'.encode("utf-16"),
        '{"spec": {"name": "a\\u0000b"}}'.encode("utf-16"),
        b'{"spec": ' + b"[" * 100_000,
        b'{"spec": {"axes": ' + b"[" * 100_000 + b"]" * 100_000 + b"}}",
        b'{"spec": {"axes": ' + b'{"a":' * 900 + b"1" + b"}" * 900 + b"}}",
        b'{"spec": {"seed": ' + b"9" * 5000 + b"}}",
        b'{"spec": {"a": NaN}}',
        b'{"spec": {"a\x00": 1}}',
    ],
    ids=lambda body: ascii(body[:24]),
)
@pytest.mark.parametrize("path", ["/matrices", "/matrices/plan"])
def test_a_body_that_is_no_document_of_ours_is_refused(farm: HttpFarm, path: str, body: bytes) -> None:
    problem(farm.http.post(f"/api/v1{path}", content=body, headers=JSON))


def test_where_a_body_stops_being_json_is_named(farm: HttpFarm) -> None:
    answer = farm.http.post("/api/v1/matrices/plan", content=b'{"spec": oops}', headers=JSON)
    assert problem(answer)["detail"] == "body: is not JSON at character 10: Expecting value"


@pytest.mark.parametrize(
    "content_type", ["text/plain", "application/xml", "multipart/form-data", "application/x-yaml", "json", ""]
)
def test_a_document_of_another_type_is_refused(farm: HttpFarm, content_type: str) -> None:
    body = json.dumps({"spec": matrix_spec()}).encode()
    answer = farm.http.post("/api/v1/matrices", content=body, headers={"Content-Type": content_type})
    refused(answer, 422, "input.invalid")


def matrices_that_cannot_be() -> list[object]:
    texts = [NUL, HALF, LONG, TOO_BIG, BEYOND_ROWS, -1, 1e300, float("nan"), float("inf"), [], {}, None, ""]
    changed = [{key: value} for key in matrix_spec() for value in texts]
    nested = [{"settings": {"iter": value}} for value in (TOO_BIG, BEYOND_ROWS, -1, float("nan"), NUL, HALF)]
    return [*changed, *nested, {NUL: 1}, {HALF: 1}, {LONG: 1}]


@pytest.mark.parametrize("change", matrices_that_cannot_be(), ids=lambda change: ascii(change)[:40])
def test_a_matrix_with_values_that_cannot_be_is_refused(farm: HttpFarm, change: dict[str, Any]) -> None:
    answer = post(farm, "/matrices", {"spec": {**matrix_spec(), **change}})
    # Some of them are optional, and none is as good as absent; there is no phone to run the rest.
    problem(answer)


@pytest.mark.parametrize("by", [NUL, HALF, "", " ", LONG, 1, None, "a\nb"])
def test_a_name_that_is_none_is_refused(farm: HttpFarm, agent: HttpAgent, by: object) -> None:
    agent.exchange(devices=(phone("phone-1"),))
    refused(post(farm, "/devices/phone-1/cordon", {"by": by}), 422, "input.invalid")
    refused(post(farm, "/access-tokens", {"name": by, "role": "viewer"}), 422, "input.invalid")


@pytest.mark.parametrize("reason", [NUL, HALF, "", LONG])
def test_a_reason_that_cannot_be_kept_is_refused(farm: HttpFarm, agent: HttpAgent, reason: str) -> None:
    agent.exchange(devices=(phone("phone-1"),))
    asked = {"by": "ann", "reason": reason}
    refused(post(farm, "/devices/phone-1/cordon", asked), 422, "input.invalid")
    assert farm.http.get("/api/v1/devices/phone-1").json()["admin"] == "active"


@pytest.mark.parametrize("role", ["agent", "root", "", NUL])
def test_no_token_is_made_for_a_role_that_people_do_not_have(farm: HttpFarm, role: str) -> None:
    refused(post(farm, "/access-tokens", {"name": "ann", "role": role}), 422, "input.invalid")


@pytest.mark.parametrize(
    "name", [HALF, LONG, TOO_BIG, "..", "../../etc/passwd", "/etc/passwd", "lib/../../x"]
)
def test_a_program_whose_file_has_no_place_is_refused(farm: HttpFarm, name: object) -> None:
    file = {"path": name, "digest": "0" * 64, "executable": True}
    registration = {"name": "speed_benchmark_torch", "abi": "x86_64", "files": [file], "entry": name}
    problem(post(farm, "/harnesses", registration))


@pytest.mark.parametrize("by", ["a%00b", "%00"])
@pytest.mark.parametrize(
    "path",
    [
        "/devices/{}",
        "/devices/{}/retirement",
        "/harnesses/{}",
        "/blobs/{}",
        "/speedups?device={}",
        "/speedups?model={}",
        "/placements?device={}",
        "/events?actor={}",
        "/devices/phone-1/adb?by={}",
    ],
)
def test_an_address_with_a_nul_in_it_is_refused(farm: HttpFarm, path: str, by: str) -> None:
    refused(farm.http.get(f"/api/v1{path.format(by)}"), 422, "input.invalid")


@pytest.mark.parametrize("name", ["..", "%2e%2e", "..%2f..%2fetc%2fpasswd", "%ff", "%ed%a0%80", LONG, "%0a"])
@pytest.mark.parametrize("path", ["/devices/{}", "/harnesses/{}", "/blobs/{}"])
def test_a_name_that_tries_to_get_out_finds_nothing(farm: HttpFarm, path: str, name: str) -> None:
    # As it stands: a client of good manners would tidy it up.
    answer = farm.http.send(httpx.Request("GET", f"{farm.url}/api/v1{path.format(name)}"))
    if answer.status_code != 200:
        problem(answer)
    else:
        # `..` of the collection is the folder above it: no name at all.
        assert name in ("..", "%2e%2e")


@pytest.mark.parametrize("number", [-1, 2**53, BEYOND_ROWS, TOO_BIG, "x", "1.5", "%31%00", "%EF%BC%91"])
@pytest.mark.parametrize(
    "path",
    [
        "/matrices/{}",
        "/matrices/{}/results",
        "/jobs/{}",
        "/jobs/{}/explanation",
        "/cells/{}/explanation",
        "/attempts/{}",
        "/device_actions/{}",
        "/jobs?matrix_id={}",
        "/speedups?matrix_id={}",
        "/placements?matrix_id={}",
    ],
)
def test_a_number_that_can_be_no_id_is_refused(farm: HttpFarm, path: str, number: object) -> None:
    refused(farm.http.get(f"/api/v1{path.format(number)}"), 422, "input.invalid")


@pytest.mark.parametrize("path", ["/matrices", "/devices/phone-1/cordon", "/agent/enroll", "/agent/sessions"])
def test_no_document_may_be_larger_than_documents_are(farm: HttpFarm, agent: HttpAgent, path: str) -> None:
    too_much = b" " * (MAX_DOCUMENT_BYTES + 1)
    headers = {**JSON, **agent.headers} if path.startswith("/agent") else JSON
    refused(farm.http.post(f"/api/v1{path}", content=too_much, headers=headers), 413, "input.too_large")

    def in_pieces() -> Iterator[bytes]:
        for at in range(0, len(too_much), 1024 * 1024):
            yield too_much[at : at + 1024 * 1024]

    answer = farm.http.post(f"/api/v1{path}", content=in_pieces(), headers=headers)
    refused(answer, 413, "input.too_large")


def test_a_report_may_be_larger_but_not_without_end(agent: HttpAgent) -> None:
    answer = agent.post("/attempts/1/report", content=b" " * (MAX_REPORT_BYTES + 1))
    refused(answer, 413, "input.too_large")


@pytest.mark.parametrize("token", ["x", "bfu_", "bfj_x", LONG, "ÿþ", "bfu_" + "a" * 43])
def test_a_token_that_is_none_is_refused_even_where_no_one_needs_one(farm: HttpFarm, token: str) -> None:
    headers = {b"Authorization": b"Bearer " + token.encode("latin-1")}
    refused(farm.http.get("/api/v1/devices", headers=headers), 401, "auth.invalid")


def sightings_that_cannot_be() -> list[dict[str, Any]]:
    look = {"taken_at": "2026-01-01T00:00:00Z"}
    return [
        {"device_id": ""},
        {"device_id": "a/b"},
        {"device_id": LONG},
        {"serial": LONG},
        {"presence": "somewhere"},
        {"cleaned_fence": "many"},
        {"condition": {**look, "battery_c": "warm"}},
        {"condition": {**look, "further": 1}},
        {"condition": {"taken_at": "99999-01-01"}},
    ]


@pytest.mark.parametrize("change", sightings_that_cannot_be(), ids=lambda change: ascii(change)[:60])
def test_an_agent_that_says_what_no_device_means_is_refused(agent: HttpAgent, change: dict[str, Any]) -> None:
    seen = {**phone("phone-1").model_dump(mode="json"), **change}
    agent.seq += 1
    body = json.dumps({"seq": agent.seq, "devices": [seen]}).encode()
    problem(agent.post(f"/sessions/{agent.session_id}/exchange", content=body))
    # And it goes on as if nothing had been said.
    assert agent.exchange(devices=(phone("phone-1"),)).status_code == 200


@pytest.mark.parametrize(
    "change",
    [
        {"detail": NUL},
        {"detail": HALF},
        {"serial": HALF},
        {"serial": NUL},
        {"detail": LONG * 20},
        {"facts": {"device_model": NUL, "api_level": TOO_BIG}},
        {"condition": {"taken_at": "2026-01-01T00:00:00Z", "memory_available_bytes": TOO_BIG}},
        {"condition": {"taken_at": "2026-01-01T00:00:00Z", "boot_id": NUL}},
    ],
    ids=lambda change: ascii(change)[:60],
)
def test_whatever_a_phone_prints_does_not_shut_its_host_out(agent: HttpAgent, change: dict[str, Any]) -> None:
    seen = phone("phone-1").model_dump(mode="json")
    facts = {**seen["facts"], **change.get("facts", {})}
    agent.seq += 1
    body = json.dumps({"seq": agent.seq, "devices": [{**seen, **change, "facts": facts}]}).encode()
    answer = agent.post(f"/sessions/{agent.session_id}/exchange", content=body)
    assert answer.status_code == 200, answer.text
    assert agent.farm.http.get("/api/v1/devices/phone-1").status_code == 200


@pytest.mark.parametrize(("name", "printed"), [("nul", NUL), ("half", f"a{HALF}b")])
def test_a_report_of_a_phone_that_printed_what_cannot_be_kept_is_settled_and_shown(
    farm: HttpFarm, name: str, printed: str
) -> None:
    agent = farm.enroll(f"bench-{name}")
    answer = agent.exchange(devices=(phone(f"phone-of-{name}"),))
    (check,) = ExchangeAnswer.model_validate_json(answer.content).assignments
    evidence = json.loads(report_body(good_evidence(check)))
    # Parts of what a check printed are kept as words, in the columns of the attempt.
    evidence["evidence"]["stdout"] = f"shell_exit {printed}\n"
    body = json.dumps(evidence).encode()
    answer = agent.post(f"/attempts/{check.attempt_id}/report", content=body)
    assert answer.status_code == 200, answer.text
    assert answer.json()["counted"]
    shown = farm.http.get(f"/api/v1/attempts/{check.attempt_id}").json()
    assert shown["evidence"]["stdout"] == "shell_exit a\ufffdb\n"


@pytest.mark.parametrize("attempt_id", [0, 2**53 - 1])
def test_an_attempt_that_never_was_is_not_found(agent: HttpAgent, attempt_id: int) -> None:
    refused(agent.post(f"/attempts/{attempt_id}/report", content=b"{}"), 404, "not_found")


def test_an_attempt_that_another_host_has_is_left_alone_by_an_exchange_that_names_it(farm: HttpFarm) -> None:
    owner, other = farm.enroll("bench-owner"), farm.enroll("bench-other")
    answer = owner.exchange(devices=(phone("phone-of-owner"),)).json()
    (assignment,) = answer["assignments"]
    said = {"attempt_id": assignment["attempt_id"], "fence": assignment["fence"], "phase": "returned"}
    other.seq += 1
    body = json.dumps({"seq": other.seq, "attempts": [said]}).encode()
    assert other.post(f"/sessions/{other.session_id}/exchange", content=body).json()["assignments"] == []
    attempt = farm.http.get(f"/api/v1/attempts/{assignment['attempt_id']}").json()
    assert attempt["state"] == "claimed"


def test_an_exchange_that_is_sent_again_or_late_changes_nothing(farm: HttpFarm) -> None:
    agent = farm.enroll("bench-replay")
    first = agent.exchange(devices=(phone("phone-replayed"),))
    absent = agent.exchange()
    assert absent.status_code == 200
    agent.seq = 0
    again = agent.exchange(devices=(phone("phone-replayed"),))
    assert again.json()["seq"] == first.json()["seq"] == 1
    assert farm.http.get("/api/v1/devices/phone-replayed").json()["presence"] == "absent"
