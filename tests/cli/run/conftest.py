"""What the commands that measure files are tried against."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.run.test_run import DEFINITION, run
from tests.support.farm.http_farm import HttpFarm, http_farm
from tests.support.farm.service_fixture import phone


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpFarm]:
    """A farm with two phones that nobody looks after any more: what is submitted stays queued."""
    folder = tmp_path_factory.mktemp("farm")
    with http_farm(folder / "data") as farm, pytest.MonkeyPatch.context() as patch:
        agent = farm.enroll()
        answer = agent.exchange(devices=(phone("phone-1", device_model="Pixel 8"), phone("phone-2")))
        assert answer.status_code == 200, answer.text
        patch.setenv("FARM_URL", farm.url)
        (folder / "infer").write_text("#!/bin/sh\n")
        (folder / "infer.yaml").write_text(DEFINITION)
        assert run("harness", "add", "infer", folder / "infer", "--definition", folder / "infer.yaml") == 0
        yield farm


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
