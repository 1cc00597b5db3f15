"""Fingerprints of adb keys, as devices show them."""

import base64
import binascii
import hashlib
from pathlib import Path


def fingerprint(public_key: str) -> str | None:
    """Return the fingerprint that Android's dialog shows for a key (`adbkey.pub`); None for an invalid one.

    AOSP: AdbDebuggingManager.getFingerprints: the MD5 of the key's bytes, in pairs of capitals.
    """
    try:
        content = base64.b64decode(public_key.partition(" ")[0], validate=True)
    except (binascii.Error, ValueError):
        return None
    digits = hashlib.md5(content, usedforsecurity=False).hexdigest().upper()
    return ":".join(digits[at : at + 2] for at in range(0, len(digits), 2)) if content else None


def find_fingerprint(path: Path) -> str | None:
    """Return the fingerprint of a key file; None while it cannot be read."""
    try:
        return fingerprint(path.read_text(encoding="ascii", errors="replace").strip())
    except OSError:
        return None
