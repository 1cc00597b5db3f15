"""A farm whose people sign in by an identity provider."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.security.sign_in.provider import CLIENT, ROLES, SECRET, Provider, running_provider
from tests.support.farm.http_farm import HttpFarm, http_farm


@pytest.fixture
def provider() -> Iterator[Provider]:
    with running_provider() as provider:
        yield provider


@pytest.fixture
def farm(tmp_path: Path, provider: Provider) -> Iterator[HttpFarm]:
    secret = tmp_path / "secret"
    secret.write_text(f"{SECRET}\n")
    with http_farm(
        tmp_path / "farm",
        require_tokens=True,
        oidc_issuer=provider.url,
        oidc_client_id=CLIENT,
        oidc_client_secret_file=secret,
        oidc_roles=ROLES,
    ) as farm:
        yield farm
