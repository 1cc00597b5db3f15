"""Digests of files that were downloaded before, by their address: trust on first use."""

import json
import os
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from farm.core.base.ids import Digest
from farm.core.errors import InvalidInput


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenDigest:
    """The digest of a file, and the day on which it was first downloaded, as in 2026-11-29."""

    digest: Digest
    first_seen: str


def seen_digests_path() -> Path:
    """Return the file with the digests that this user has seen (XDG base directories)."""
    home = os.environ.get("XDG_STATE_HOME") or f"{os.environ.get('HOME', '/nonexistent')}/.local/state"
    return Path(home) / "benchfarm" / "vendor_digests.json"


def seen_digest(path: Path, address: str) -> SeenDigest | None:
    """Return what is remembered of an address.

    Raises:
        InvalidInput: the file is damaged: nothing may be trusted instead.
    """
    entry = _read(path).get(address)
    return (
        None if entry is None else SeenDigest(digest=Digest(entry["digest"]), first_seen=entry["first_seen"])
    )


def remember_digest(path: Path, address: str, digest: Digest, now: datetime) -> None:
    """Remember the digest of an address, in place of an earlier one."""
    entries = _read(path)
    entries[address] = asdict(SeenDigest(digest=digest, first_seen=f"{now:%Y-%m-%d}"))
    path.parent.mkdir(parents=True, exist_ok=True)
    written = path.with_suffix(".new")
    written.write_text(json.dumps(entries, indent=1, sort_keys=True))
    written.replace(path)


def _read(path: Path) -> dict[str, dict[str, str]]:
    try:
        entries: dict[str, dict[str, str]] = json.loads(path.read_text())
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise InvalidInput(
            f"{path}: cannot be read: {error}", hint="delete it: the next downloads are then trusted again"
        ) from error
    return entries
