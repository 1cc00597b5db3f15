"""Packages of Debian for arm64, downloaded by apt with a state of its own: nothing is installed.

apt verifies what it downloads by the keys of this machine's sources.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from farm.bundles.commands import run_step
from farm.bundles.workshop import Workshop, sha256_of
from farm.core.errors import InvalidInput
from farm.core.programs.built_with import ProgramPart

TOOLS = {
    "apt-get": "this build takes a C library from Debian's packages: run it on Debian",
    "dpkg-deb": "this build takes a C library from Debian's packages: run it on Debian",
}
_HINT = "apt has to reach Debian's packages for arm64: check the network and /etc/apt/sources.list.d"
_HEADERS = re.compile(r"^libstdc\+\+-(\d+)-dev\b", re.MULTILINE)


def unpack_debian(workshop: Workshop, names: Sequence[str]) -> tuple[Path, list[ProgramPart]]:
    """Download packages and the headers of libstdc++, and unpack them into one folder, which is returned.

    Raises:
        InvalidInput: apt cannot download them.
    """
    workshop.say(f"downloading {', '.join(names)} for arm64 from Debian")
    state, debs, root = (workshop.scratch / name for name in ("apt", "debs", "debian"))
    for folder in (state / "lists" / "partial", state / "archives" / "partial", debs, root):
        folder.mkdir(parents=True)
    (state / "status").touch()
    options = _options(state)
    run_step(workshop.run, ["apt-get", *options, "update"], failure="apt cannot read its sources", hint=_HINT)
    words = ["env", "-C", str(debs), "apt-get", *options, "download", *names, _headers(workshop, options)]
    run_step(workshop.run, words, failure="apt cannot download packages for arm64", hint=_HINT)
    parts = [_unpack(workshop, path, root) for path in sorted(debs.glob("*.deb"))]
    return root, parts


def _options(state: Path) -> list[str]:
    values = {
        "Dir::State": state,
        "Dir::State::status": state / "status",
        "Dir::Cache": state,
        "APT::Architecture": "arm64",
        "APT::Architectures::": "arm64",
        "APT::Sandbox::User": "",
        "Acquire::Languages": "none",
        "Acquire::Retries": 2,
        # A source that cannot be reached is an error, and no warning.
        "APT::Update::Error-Mode": "any",
    }
    return ["-qq", *(word for name, value in values.items() for word in ("-o", f"{name}={value}"))]


def _headers(workshop: Workshop, options: Sequence[str]) -> str:
    """Return the package with the newest headers of libstdc++."""
    words = ["apt-cache", *options, "search", "--names-only", r"^libstdc\+\+-[0-9]+-dev$"]
    listed = run_step(workshop.run, words, failure="apt cannot list packages", hint=_HINT)
    versions = [int(version) for version in _HEADERS.findall(listed)]
    if not versions:
        raise InvalidInput("apt's sources have no packages for arm64", hint=_HINT)
    return f"libstdc++-{max(versions)}-dev"


def _unpack(workshop: Workshop, path: Path, root: Path) -> ProgramPart:
    failure = f"{path.name} cannot be unpacked"
    run_step(workshop.run, ["dpkg-deb", "-x", str(path), str(root)], failure=failure, hint=_HINT)
    words = ["dpkg-deb", "--show", "--showformat", "${Package} ${Version}", str(path)]
    name, _, version = run_step(workshop.run, words, failure=failure, hint=_HINT).partition(" ")
    return ProgramPart(name=name, version=version, digest=sha256_of(path), source=path.name)
