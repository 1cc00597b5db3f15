"""A session whose access token is revoked: what its next call says, and that it goes on after a login."""

from pathlib import Path

import pytest

from benchfarm import Farm, FarmError
from farm.cli.access.credentials import remove_login
from farm.cli.shell.address import connect_to
from farm.core.base.ids import digest_of
from tests.benchfarm.conftest import log_in, revoke
from tests.support.farm.http_farm import HttpFarm


def test_a_session_goes_on_after_a_login_in_place_of_a_revoked_token(guarded: HttpFarm) -> None:
    token = log_in(guarded, "ann")
    with Farm() as session:
        assert session.whoami().name == "ann"
        revoke(guarded, token)
        for _ in range(2):
            with pytest.raises(FarmError, match="unknown, too old or revoked") as refused:
                session.whoami()
            assert refused.value.code == "auth.invalid"
            assert "`farm login URL --token-file FILE` keeps it" in refused.value.hint
        log_in(guarded, "ann-again")
        assert session.whoami().name == "ann-again"
        # Of one that was given, there is no newer one.
        with Farm(token=token) as given, pytest.raises(FarmError, match="revoked"):
            given.whoami()
        remove_login()
        assert session.whoami().name == "ann-again"


def test_a_file_arrives_whose_upload_began_with_a_revoked_token(guarded: HttpFarm, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"bytes")
    digest = digest_of(b"bytes")
    token = log_in(guarded, "ann")
    with connect_to(guarded.url) as client:
        revoke(guarded, token)
        log_in(guarded, "ann")
        client.upload(path, digest)
        assert client.has_blob(digest)
