"""A person at a terminal is told that their token expires soon; scripts and pages are not."""

import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from farm.core.operations.role import Role
from farm.database.transaction import bind_tx
from farm.services.access.tokens import issue_access_token
from farm.wire.base import EXPIRY_HEADER
from farm.wire.documents.access import AccessRequest
from farm.wire.tokens import token_id_of
from tests.support.farm.http_farm import HttpFarm, http_farm

_DAY_S = 24 * 3600


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpFarm]:
    with http_farm(tmp_path_factory.mktemp("farm"), require_tokens=True) as served:
        yield served


def issue(farm: HttpFarm, *, days: int, by: str = "user:root") -> str:
    request = AccessRequest(name="ann", role=Role.VIEWER, valid_s=days * _DAY_S)
    write = bind_tx(issue_access_token, now=farm.context.clock.now(), actor=by)
    return farm.context.database.write(write, request).token


def said(farm: HttpFarm, token: str, folder: Path, *, on_terminal: bool) -> str:
    """What `farm hosts` says beside its data."""
    terminal, end = pty.openpty()
    command = subprocess.run(
        [sys.executable, "-m", "farm.cli.shell.main", "hosts"],
        env={**os.environ, "FARM_URL": farm.url, "FARM_TOKEN": token, "HOME": str(folder), "COLUMNS": "200"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=end if on_terminal else subprocess.PIPE,
        timeout=120,
        check=True,
    )
    os.write(end, b"<end>")
    os.close(end)
    text = b""
    while not text.endswith(b"<end>"):
        text += os.read(terminal, 4096)
    os.close(terminal)
    return (text if on_terminal else command.stderr).decode()


@pytest.mark.parametrize(
    ("days", "by", "is_told"),
    [(13, "user:root", True), (15, "user:root", False), (1, "oidc:https://id.example", None)],
)
def test_an_answer_says_when_a_token_expires_within_two_weeks(
    farm: HttpFarm, days: int, by: str, is_told: bool | None
) -> None:
    token = issue(farm, days=days, by=by)
    answer = farm.http.get("/api/v1/hosts", headers={"Authorization": f"Bearer {token}"})
    assert answer.is_success
    assert (EXPIRY_HEADER in answer.headers) is bool(is_told)


@pytest.mark.long
def test_a_command_says_so_once_on_a_terminal_and_not_in_a_script(farm: HttpFarm, tmp_path: Path) -> None:
    token = issue(farm, days=13)
    text = said(farm, token, tmp_path, on_terminal=True)
    assert text.count("note: your access token expires at") == 1
    assert f"farm token rotate {token_id_of(token)}" in text
    assert "expires" not in said(farm, token, tmp_path, on_terminal=False)
