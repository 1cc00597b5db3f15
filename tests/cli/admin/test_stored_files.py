"""`farm storage files|remove`, `farm variant remove`, and the same from Python: one's own uploads."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchfarm import Farm
from farm.cli.shell.main import main
from farm.core.base.ids import digest_of
from farm.core.models.variant import VariantFile, files_digest
from farm.core.operations.role import Role
from tests.api.routes.test_all_routes import register_variant, upload
from tests.api.routes.test_names_of_others import as_caller
from tests.support.farm.http_farm import HttpFarm, http_farm
from tests.support.farm.service_fixture import model_file

SMALL, LARGE = b"a" * 600, b"b" * 40_000
NAME = "mobilenet_v2/float32/torchscript"


@pytest.fixture
def farm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HttpFarm]:
    """A farm at which ann has uploaded two files, and is whom commands call as."""
    with http_farm(tmp_path, require_tokens=True, stored_bytes_per_person=50_000) as served:
        as_caller(served, Role.SUBMITTER, "ann")
        upload(served, SMALL).raise_for_status()
        upload(served, LARGE).raise_for_status()
        monkeypatch.setenv("FARM_URL", served.url)
        monkeypatch.setenv("FARM_TOKEN", served.http.headers["Authorization"].removeprefix("Bearer "))
        yield served


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as left:
        main(words)
    return int(left.value.code or 0)


def test_one_sees_what_ones_files_take_and_removes_some(
    farm: HttpFarm, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("storage", "files") == 0
    shown = capsys.readouterr().out
    assert "ann: 2 files, 40.6 kB, 50.0 kB allowed" in shown
    assert shown.index(digest_of(LARGE)[:12]) < shown.index(digest_of(SMALL)[:12])
    assert run("storage", "remove", digest_of(LARGE)[:8], "--yes") == 0
    said = capsys.readouterr().err
    assert f"remove {digest_of(LARGE)[:12]}: -, unused" in said
    assert "removed 1 file: 40.0 kB of the quota" in said
    assert run("storage", "files", "--json") == 0
    view = json.loads(capsys.readouterr().out)
    assert [file["digest"] for file in view["largest"]] == [digest_of(SMALL)]


def test_nothing_is_removed_without_a_yes_or_by_a_digest_that_is_none_of_ones_own(
    farm: HttpFarm, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("storage", "remove", digest_of(LARGE)) == 2
    assert "--yes skips the confirmation" in capsys.readouterr().err
    assert run("storage", "remove", "ffffffffffff0", "--yes") == 2
    assert "ann has no file 'ffffffffffff0'" in capsys.readouterr().err
    assert run("storage", "remove", digest_of(b"other"), "--yes") == 2
    assert farm.http.get(f"/api/v1/blobs/{digest_of(LARGE)}").status_code == 200


def test_the_file_of_a_variant_goes_by_its_name_and_the_variant_stays_as_expired(
    farm: HttpFarm, capsys: pytest.CaptureFixture[str]
) -> None:
    register_variant(farm).raise_for_status()
    assert run("variant", "remove", NAME, "--yes", "--json") == 0
    (removal,) = json.loads(capsys.readouterr().out)
    model = model_file("torchscript", marker="mobilenet_v2/float32")
    assert removal == {"digest": digest_of(model), "size_bytes": len(model), "names": [NAME]}
    assert run("variant", "list") == 0
    assert "(expired)" in capsys.readouterr().out


def test_a_file_that_another_variant_has_too_is_kept(
    farm: HttpFarm, capsys: pytest.CaptureFixture[str]
) -> None:
    register_variant(farm).raise_for_status()
    register_variant(farm, model="another").raise_for_status()
    assert run("variant", "remove", NAME, "--yes") != 0
    said = capsys.readouterr().err
    assert f"other variants have each file of {NAME}" in said
    assert "farm storage remove" in said
    model = model_file("torchscript", marker="mobilenet_v2/float32")
    assert farm.http.get(f"/api/v1/blobs/{digest_of(model)}").status_code == 200


def test_what_is_gone_of_a_variant_keeps_nothing_else_of_it(farm: HttpFarm) -> None:
    model = model_file("torchscript", marker="mobilenet_v2/float32")
    files = tuple(
        VariantFile(path=path, digest=digest_of(content), size_bytes=len(content))
        for path, content in (("", model), ("tokenizer.bin", SMALL))
    )
    size_bytes = len(model) + len(SMALL)
    register_variant(farm, files=files, digest=files_digest(files), size_bytes=size_bytes).raise_for_status()
    with Farm(farm.url) as client:
        client.files.remove(digest_of(model))
        [removed] = client.variants.remove(NAME)
    assert removed.digest == digest_of(SMALL)


def test_the_python_client_does_the_same(farm: HttpFarm) -> None:
    register_variant(farm).raise_for_status()
    with Farm(farm.url) as client:
        assert client.files.list().files == 3
        assert client.files.remove(digest_of(LARGE)).size_bytes == len(LARGE)
        [removed] = client.variants.remove(NAME)
        assert removed.names == (NAME,)
        assert [file.digest for file in client.files.list().largest] == [digest_of(SMALL)]
