"""What several folders of contract tests need: an adb server, a phone, files that take a while to make."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from built_variants import built, shared_variant_folder

from agents.adb.server import AdbServer
from agents.virtual.faults import Faults, set_faults
from agents.virtual.pool import PhoneHandle, start_phones, stop_phones
from farm.variants.build import BuiltVariant
from farm.variants.catalogue import recipes_of


@pytest.fixture(scope="session")
def variants(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> list[BuiltVariant]:
    """MobileNetV2 in both precisions and both formats."""
    folder = shared_variant_folder(tmp_path_factory, worker_id)
    return built(recipes_of(["float32", "int8-core"], ["torchscript", "lite"]), folder)


@pytest.fixture(scope="session")
def further_variants(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> list[BuiltVariant]:
    """MobileNetV2 in each word of a recipe that those lack."""
    folder = shared_variant_folder(tmp_path_factory, worker_id)
    recipes = [
        *recipes_of(["int8-full"], ["flatbuffer"], memory_formats=["channels_last"]),
        *recipes_of(["float32"], ["torchscript"], targets=["nnapi"]),
        *recipes_of(["int8-full"], ["lite"], targets=["nnapi"]),
    ]
    return built(recipes, folder)


@pytest.fixture
def phone(tmp_path: Path) -> Iterator[PhoneHandle]:
    """A phone of the test's own, to be broken."""
    phone = start_phones(1, tmp_path / "phones")[0]
    yield phone
    set_faults(phone.state, Faults())
    stop_phones(tmp_path / "phones")


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[AdbServer]:
    """An adb server that sees TCP phones only."""
    async with AdbServer(tmp_path / "adb", usb=False) as server:
        yield server
