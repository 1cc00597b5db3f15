"""A key is named to people as the phone names it."""

from pathlib import Path

import pytest

from agents.adb.server import find_fingerprint, fingerprint


def test_a_fingerprint_is_the_md5_of_the_keys_bytes_in_pairs() -> None:
    # echo -n 'a key' | base64; echo -n 'a key' | md5sum
    assert fingerprint("YSBrZXk= somebody@somewhere") == "AF:07:11:EB:7D:AB:2D:53:C1:A5:80:C4:70:5D:7C:B7"


@pytest.mark.parametrize("text", ["", "not base64!", "YSBrZXk somebody"])
def test_what_is_no_key_has_no_fingerprint(text: str) -> None:
    assert fingerprint(text) is None


def test_a_key_that_is_not_there_has_no_fingerprint(tmp_path: Path) -> None:
    assert find_fingerprint(tmp_path / "adbkey.pub") is None
