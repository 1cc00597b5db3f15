import sys
from collections.abc import Iterator

import pytest

from tests.support.farm.processes import CHECKOUT, FarmProcess, eventually, running_farm_with_agent

_UP = (sys.executable, "-m", "farm.cli.shell.main", "up", "--virtual", "1")


@pytest.fixture(scope="module")
def farm(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FarmProcess]:
    """A farm with a checked virtual phone; it has our script of the harness that the module calls NAME."""
    farm = FarmProcess(tmp_path_factory.mktemp("llm") / "farm", command=_UP)
    with running_farm_with_agent(farm):
        with farm.client() as client:
            eventually(lambda: [each.health for each in client.devices()] == ["good"], "it is checked")
        if (name := getattr(request.module, "NAME", None)) is not None:
            farm.cli("harness", "add", name, str(CHECKOUT / "harnesses" / "llm" / name), "--abi", "x86_64")
        yield farm
