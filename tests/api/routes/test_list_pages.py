"""Lists of devices, hosts, variants and tokens come page by page, and the client returns all rows."""

from collections.abc import Iterator
from hashlib import sha256

import httpx
import pytest
from pydantic import TypeAdapter
from sqlalchemy.engine import Connection

from farm.client.farm_client import FarmClient
from farm.core.models.variant import Manifest
from farm.database import tables
from farm.wire.base import MAX_LIST_PAGE
from tests.support.database.sample_rows import ARTIFACT, DEVICE, DIGEST, NOW
from tests.support.farm.api_server import scripted_server
from tests.support.farm.http_farm import HttpFarm, http_farm

#: A full page, another, and one row.
ROWS = 2 * MAX_LIST_PAGE + 1
PATHS = {
    "/devices": "device_id",
    "/hosts": "host_id",
    "/variants": "variant_id",
    "/tokens": "token_id",
    "/access-tokens": "token_id",
}
MANIFEST = {
    "model": "net",
    "recipe": {"precision": "float32", "format": "torchscript"},
    "digest": DIGEST,
    "size_bytes": 1,
    "backends": ["cpu"],
    "inputs": [{"shape": [1, 3], "dtype": "float32"}],
    "recipe_digest": DIGEST,
}


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpFarm]:
    with http_farm(tmp_path_factory.mktemp("farm")) as made:
        made.context.database.write(fill)
        yield made


def fill(connection: Connection) -> None:
    TypeAdapter(Manifest).validate_python(MANIFEST)
    names = [f"row-{index:04}" for index in range(ROWS)]
    hashes = [sha256(name.encode()).hexdigest() for name in names]
    rows = {
        tables.artifacts: [ARTIFACT],
        tables.hosts: [
            {
                "host_id": name,
                "state": "active",
                "auto_admit": True,
                "credential_hash": name,
                "created_at": NOW,
            }
            for name in names
        ],
        tables.devices: [
            {**DEVICE, "device_id": name, "host_id": names[0], "serial": name} for name in names
        ],
        tables.variants: [
            {
                "name": name,
                "model": "net",
                "digest": DIGEST,
                "recipe_digest": DIGEST,
                "manifest": MANIFEST,
                "created_at": NOW,
            }
            for name in names
        ],
        tables.join_tokens: [
            {"token_hash": each, "auto_admit": True, "created_at": NOW, "expires_at": NOW} for each in hashes
        ],
        tables.access_tokens: [
            {"token_hash": each, "name": "ann", "role": "viewer", "created_at": NOW, "created_by": "test"}
            for each in hashes
        ],
    }
    for table, values in rows.items():
        connection.execute(table.insert(), values)


@pytest.mark.parametrize(("path", "key"), PATHS.items())
def test_a_list_is_answered_page_by_page_and_no_request_gets_it_whole(
    farm: HttpFarm, path: str, key: str
) -> None:
    names: list[str] = []
    sizes: list[int] = []
    while not sizes or sizes[-1] == MAX_LIST_PAGE:
        after = {"after": names[-1]} if names else {}
        page = farm.http.get(f"/api/v1{path}", params=after).json()
        sizes.append(len(page))
        names += [row[key] for row in page]
    assert sizes == [MAX_LIST_PAGE, MAX_LIST_PAGE, 1]
    assert len(set(names)) == ROWS
    assert len(farm.http.get(f"/api/v1{path}", params={"limit": 3}).json()) == 3
    assert farm.http.get(f"/api/v1{path}", params={"limit": MAX_LIST_PAGE + 1}).status_code == 422


def test_the_client_returns_every_row_once(farm: HttpFarm) -> None:
    with FarmClient(farm.url) as client:
        listed = (
            [device.device_id for device in client.devices()],
            [host.host_id for host in client.hosts()],
            [variant.variant_id for variant in client.variants()],
            [token.token_id for token in client.tokens()],
            [token.token_id for token in client.access_tokens()],
        )
    assert [len(set(names)) for names in listed] == [ROWS] * 5 == [len(names) for names in listed]


@pytest.mark.parametrize("rows", [MAX_LIST_PAGE - 1, MAX_LIST_PAGE, MAX_LIST_PAGE + 1])
def test_a_farm_without_pages_is_read_once(farm: HttpFarm, rows: int) -> None:
    tokens = httpx.get(f"{farm.url}/api/v1/tokens", params={"limit": 1}).json() * rows
    with scripted_server({"GET /api/v1/tokens": (200, tokens)}) as url, FarmClient(url) as client:
        assert len(client.tokens()) == rows
