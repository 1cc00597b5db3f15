"""The locks of a release: what pyproject.toml allows, with digests. `make release` compares them anew."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from deploy.release import EXTRAS_BY_LOCK

ROOT = Path(__file__).resolve().parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PIN = re.compile(r"^(\S+)==(\S+?)(?: ; .*)? \\$", re.MULTILINE)
#: Their private parts are used: another minor version may have others.
WITH_INSIDES_USED = ("uvicorn", "fastapi", "starlette", "h11", "rich")


def text_of(lock: str) -> str:
    return (ROOT / "deploy" / lock).read_text()


def named(extras: tuple[str, ...]) -> list[Requirement]:
    """The requirements of the project with some extras, those of their extras among them."""
    words = [
        *PROJECT["dependencies"],
        *(one for extra in extras for one in PROJECT["optional-dependencies"][extra]),
    ]
    found = [Requirement(word) for word in words]
    own = [each for each in found if each.name == PROJECT["name"]]
    inner = [one for each in own for one in named(tuple(each.extras))]
    return [*(each for each in found if each.name != PROJECT["name"]), *inner]


@pytest.mark.parametrize("lock", EXTRAS_BY_LOCK)
def test_a_lock_pins_all_that_the_project_names_in_a_version_that_it_allows(lock: str) -> None:
    pinned = {canonicalize_name(name): version for name, version in PIN.findall(text_of(lock))}
    for requirement in named(EXTRAS_BY_LOCK[lock]):
        assert requirement.specifier.contains(pinned[canonicalize_name(requirement.name)]), requirement


@pytest.mark.parametrize("lock", EXTRAS_BY_LOCK)
def test_every_pin_has_digests_and_no_line_an_address(lock: str) -> None:
    text = text_of(lock)
    assert len(re.findall(r"^\S+==", text, re.MULTILINE)) == len(PIN.findall(text))
    for block in re.split(r"\n(?=\S)", text.strip()):
        assert re.search(r"\\\n    --hash=sha256:[0-9a-f]{64}", block), block[:80]
    assert "://" not in text


def test_a_client_has_the_versions_of_the_farm_and_no_torch() -> None:
    farm, client = (dict(PIN.findall(text_of(lock))) for lock in EXTRAS_BY_LOCK)
    assert client.items() < farm.items()
    assert "torch" not in farm


@pytest.mark.parametrize("name", WITH_INSIDES_USED)
def test_what_is_used_beyond_its_public_interface_has_an_upper_bound(name: str) -> None:
    (requirement,) = {each for each in named(("farm",)) if each.name == name}
    assert any(each.operator == "<" for each in requirement.specifier)


def test_an_installed_farm_has_the_sources_of_its_programs() -> None:
    patterns = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]
    folder = ROOT / "harnesses"
    sources = {path for kind in ("*.cpp", "*.h") for path in folder.rglob(kind)}
    assert sources
    assert sources - {path for pattern in patterns["harnesses"] for path in folder.glob(pattern)} == set()
