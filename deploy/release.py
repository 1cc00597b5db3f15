"""Make a release: a wheel that is built twice alike, the checked locks, and a list of what it is made of.

    python deploy/release.py lock        write the locks again: the newest versions that pyproject.toml allows
    python deploy/release.py build DIST  from the commit that is checked out, into a folder

The locks have the digest of each file of each version; torch is in none, as it is installed apart. The
list (SBOM) is CycloneDX, of the farm's lock.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from io import BytesIO
from pathlib import Path

ROOT = Path(__file__).parents[1]
#: What a machine with only the commands installs, and a machine with the farm: by lock, the extras.
EXTRAS_BY_LOCK = {"requirements-farm.lock": ("farm",), "requirements-client.lock": ()}
_OLDEST_PYTHON = "3.11"


def write_lock(name: str, folder: Path, *, constraints: Path | None = None, upgrade: bool = False) -> Path:
    """Resolve what a lock is of, and write it; what it pins already stays, unless it is upgraded."""
    lock = folder / name
    command = [sys.executable, "-m", "uv", "pip", "compile", "pyproject.toml", "--output-file", str(lock)]
    command += ["--universal", "--python-version", _OLDEST_PYTHON, "--generate-hashes", "--quiet"]
    # Neither the command nor an address of the index: both are of the machine that it is made on.
    command += ["--no-header", "--no-emit-index-url", "--no-annotate"]
    command += [word for extra in EXTRAS_BY_LOCK[name] for word in ("--extra", extra)]
    command += [] if constraints is None else ["--constraint", str(constraints)]
    command += ["--upgrade"] if upgrade else []
    subprocess.run(command, cwd=ROOT, check=True)
    return lock


def write_locks(folder: Path, *, upgrade: bool) -> None:
    """Write all locks; a client has the versions of the farm."""
    farm, *others = EXTRAS_BY_LOCK
    constraints = write_lock(farm, folder, upgrade=upgrade)
    for name in others:
        write_lock(name, folder, constraints=constraints, upgrade=upgrade)


def check_locks() -> None:
    """End with a message where a lock is not what pyproject.toml leads to."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        for name in EXTRAS_BY_LOCK:
            shutil.copy(ROOT / "deploy" / name, folder)
        write_locks(folder, upgrade=False)
        for name in EXTRAS_BY_LOCK:
            if (folder / name).read_bytes() != (ROOT / "deploy" / name).read_bytes():
                sys.exit(f"deploy/{name} is not what pyproject.toml leads to. hint: make lock")


def build_wheel(folder: Path, *, epoch_s: str) -> Path:
    """Build the wheel of the commit in a copy of its own.

    Args:
        folder: of the copy and the wheel.
        epoch_s: the time that files in the wheel get, in seconds since 1970.
    """
    archive = subprocess.run(
        ["git", "-c", "tar.umask=0022", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True
    ).stdout
    with tarfile.open(fileobj=BytesIO(archive)) as files:
        files.extractall(folder / "source", filter="data")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), "."]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": epoch_s}
    subprocess.run(command, cwd=folder / "source", env=environment, check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def build_alike(dist: Path) -> Path:
    """Build the wheel twice, and end with a message where the two differ."""
    epoch_s = subprocess.run(
        ["git", "log", "-1", "--format=%ct"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.strip()
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        wheels = [build_wheel(Path(folder), epoch_s=epoch_s) for folder in (one, other)]
        digests = {hashlib.sha256(wheel.read_bytes()).hexdigest() for wheel in wheels}
        if len(digests) != 1:
            sys.exit(f"two builds of one commit differ: {', '.join(sorted(digests))}")
        return Path(shutil.copy(wheels[0], dist))


def write_sbom(wheel: Path) -> Path:
    """Write what the farm of a wheel is made of: each package with version and digests."""
    sbom = wheel.with_suffix(".cdx.json")
    command = [sys.executable, "-m", "cyclonedx_py", "requirements", "deploy/requirements-farm.lock"]
    command += ["--pyproject", "pyproject.toml", "--mc-type", "application", "--output-reproducible"]
    command += ["--of", "JSON", "--output-file", str(sbom)]
    subprocess.run(command, cwd=ROOT, check=True)
    return sbom


def main(verb: str, *words: str) -> None:
    """Run one of the commands above."""
    if verb == "lock":
        write_locks(ROOT / "deploy", upgrade=True)
        return
    dist = Path(words[0]).absolute()
    dist.mkdir(parents=True, exist_ok=True)
    check_locks()
    wheel = build_alike(dist)
    made = [wheel, write_sbom(wheel)]
    made += [Path(shutil.copy(ROOT / "deploy" / name, dist)) for name in EXTRAS_BY_LOCK]
    sums = "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in made)
    (dist / "SHA256SUMS").write_text(sums)
    sys.stdout.write(sums)


if __name__ == "__main__":
    main(*sys.argv[1:])
