"""Download a vendor's program, check its digest, and lay its files out as a bundle."""

import shutil
import tarfile
from datetime import datetime
from pathlib import Path

import httpx

from farm.bundles.commands import Say
from farm.bundles.local_bundle import LocalBundle
from farm.bundles.vendor.seen_digests import remember_digest, seen_digest
from farm.bundles.vendor.table import VendorProgram
from farm.bundles.workshop import sha256_of
from farm.core.base.ids import Digest, is_digest
from farm.core.base.units import size_text
from farm.core.errors import DigestMismatch, InvalidInput, NotFound
from farm.core.programs.built_with import ProgramPart

#: A connection, and each read: an address that does not answer at all is told soon.
_TIMEOUT_S = 30.0
MAX_BYTES = 1024**3


def fetch_program(
    vendor: VendorProgram,
    version: str,
    *,
    root: Path,
    seen_path: Path,
    now: datetime,
    say: Say,
    base: str | None = None,
    sha256: str | None = None,
    max_bytes: int = MAX_BYTES,
) -> LocalBundle:
    """Return a version of a vendor's program; a file that is here already is not downloaded again.

    Args:
        vendor: of the table.
        version: as the vendor writes it.
        root: folder for downloads.
        seen_path: file of remembered digests.
        now: the current time.
        say: called with each step.
        base: the beginning of the address, in place of the vendor's.
        sha256: the digest that the file has to have. None stands for the table's; where it has none either,
            the first download is trusted and remembered.
        max_bytes: of the file.

    Raises:
        InvalidInput: the address cannot be reached, or the file is not what it should be.
        NotFound: the vendor has no such version.
        DigestMismatch: the file has another digest than was stated, or was seen first.
    """
    if sha256 is not None and not is_digest(sha256):
        raise InvalidInput(f"--sha256 {sha256[:80]}: is no digest", hint="64 lower-case hexadecimal digits")
    address = vendor.address(version, base)
    folder = root / f"{vendor.name}-{version}-{vendor.abi}"
    file = folder / address.rpartition("/")[2]
    folder.mkdir(parents=True, exist_ok=True)
    if file.is_file():
        say(f"using {file}")
    else:
        say(f"downloading {address}")
        _download(address, file, max_bytes)
    digest = sha256_of(file)
    known = vendor.digests.get(version) if sha256 is None else None
    if known is not None and digest != known:
        raise DigestMismatch(
            f"{file.name} has the digest {digest}, and {known} is known of {vendor.name} {version}",
            hint=f"delete {file} to download it again; --sha256 states another digest",
        )
    _check(address, file, digest, sha256 or known, seen_path)
    if (seen := seen_digest(seen_path, address)) is None or seen.digest != digest:
        _say_trust(address, digest, sha256 or known, seen_path, say)
        remember_digest(seen_path, address, digest, now)
    files = _lay_out(vendor, file, folder / "files")
    has_libraries = any(".so" in path.name for path in files.iterdir())
    return LocalBundle(
        folder=files,
        abi=vendor.abi,
        entry=vendor.entry,
        parts=(ProgramPart(name=vendor.name, version=version, digest=digest, source=address),),
        env={"LD_LIBRARY_PATH": "${work}"} if has_libraries else {},
    )


def _download(address: str, file: Path, max_bytes: int) -> None:
    """Write what an address has; nothing is left of a download that fails."""
    partial = file.with_name(f"{file.name}.part")
    try:
        with (
            httpx.stream("GET", address, timeout=_TIMEOUT_S, follow_redirects=True) as response,
            partial.open("wb") as written,
        ):
            if response.status_code != httpx.codes.OK:
                raise NotFound(
                    f"{address} answers {response.status_code}",
                    hint="is there such a version, and does it have a build for Android?",
                )
            size = 0
            for chunk in response.iter_bytes():
                size += len(chunk)
                if size > max_bytes:
                    raise InvalidInput(
                        f"{address}: over {size_text(max_bytes)}", hint="is it the right address?"
                    )
                written.write(chunk)
        partial.replace(file)
    except (httpx.TransportError, httpx.InvalidURL, httpx.TooManyRedirects) as error:
        raise InvalidInput(
            f"{address} cannot be reached: {error}",
            hint=f"download it on a machine with a network, put it at {file}, and run this again",
        ) from error
    finally:
        partial.unlink(missing_ok=True)


def _check(address: str, file: Path, digest: Digest, stated: str | None, seen_path: Path) -> None:
    hint = f"delete {file} to download it again"
    if stated is not None:
        if digest != stated:
            raise DigestMismatch(f"{file.name} has the digest {digest}, and {stated} was stated", hint=hint)
        return
    seen = seen_digest(seen_path, address)
    if seen is not None and seen.digest != digest:
        raise DigestMismatch(
            f"{address} is another file than on {seen.first_seen}: {digest}, and it was {seen.digest}",
            hint=f"{hint}; if the vendor changed it, --sha256 {digest} accepts it",
        )


def _say_trust(address: str, digest: Digest, stated: str | None, seen_path: Path, say: Say) -> None:
    if stated is None:
        say(
            f"warning: nothing confirms that {address} is what its vendor published:"
            " no digest was stated or seen before."
        )
    say(f"Its digest is {digest}; {seen_path} remembers it.")


def _lay_out(vendor: VendorProgram, file: Path, out: Path) -> Path:
    """Lay out the program and the libraries beside it in a folder of its own, which is returned."""
    if out.exists():
        shutil.rmtree(out)
    out.mkdir()
    if file.name == vendor.entry:
        shutil.copy(file, out / vendor.entry)
    else:
        unpacked = out.with_name("unpacked")
        _unpack(file, unpacked)
        entry = next((path for path in sorted(unpacked.rglob(vendor.entry)) if path.is_file()), None)
        if entry is None:
            raise InvalidInput(f"{file.name} has no {vendor.entry}", hint="another version may have it")
        for path in (entry, *entry.parent.glob("*.so*")):
            shutil.copy(path, out / path.name)
        shutil.rmtree(unpacked)
    (out / vendor.entry).chmod(0o755)
    return out


def _unpack(file: Path, folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir()
    try:
        with tarfile.open(file) as archive:
            archive.extractall(folder, filter="data")
    except (tarfile.TarError, EOFError, OSError) as error:
        raise InvalidInput(
            f"{file.name} cannot be unpacked: {error}", hint=f"delete {file} and try again"
        ) from error
