"""The limit on the regular expressions of a definition, at its border."""

from collections.abc import Iterator

import pytest

from farm.core.base.ids import digest_of
from tests.support.farm.http_farm import HttpFarm, http_farm

_PATTERN_BYTES = 512


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpFarm]:
    with http_farm(tmp_path_factory.mktemp("farm")) as served:
        yield served


def registration(farm: HttpFarm, patterns_bytes: int, *, letter: str) -> dict[str, object]:
    """A registration whose definition has that many bytes of regular expressions."""
    content = b"#!/bin/sh\n"
    digest = digest_of(content)
    farm.http.put(f"/api/v1/blobs/{digest}", content=content).raise_for_status()
    samples = r"ms=(\d+)"
    rest = patterns_bytes - len(samples)
    unsupported = [letter * (_PATTERN_BYTES // len(letter.encode()))] * (rest // _PATTERN_BYTES)
    if rest % _PATTERN_BYTES:
        unsupported.append("b" * (rest % _PATTERN_BYTES))
    definition = {
        "name": "mine",
        "samples": {"pattern": samples, "unit": "ms"},
        "unsupported": unsupported,
    }
    files = [{"path": "bench", "digest": digest, "executable": True}]
    return {"name": "mine", "files": files, "entry": "bench", "definition": definition}


@pytest.mark.parametrize("letter", ["a", "\u00e9"])
def test_a_definition_may_have_16_kib_of_regular_expressions_and_no_byte_more(
    farm: HttpFarm, letter: str
) -> None:
    accepted, refused = (
        farm.http.post("/api/v1/harnesses", json=registration(farm, size, letter=letter))
        for size in (16 * 1024, 16 * 1024 + 1)
    )
    assert accepted.status_code == 201
    problem = refused.json()
    assert (refused.status_code, problem["code"], problem["blame"]) == (422, "harness.invalid", "user")
    assert problem["detail"] == "definition: its regular expressions have 16385 bytes, at most 16384"
    assert problem["hint"] == "read fewer numbers, or write shorter patterns"
    # What was refused replaced nothing.
    programs = farm.http.get("/api/v1/harnesses").json()
    in_use = [each["digest"] for each in programs if each["name"] == "mine" and each["in_use"]]
    assert in_use == [accepted.json()["program"]["digest"]]
