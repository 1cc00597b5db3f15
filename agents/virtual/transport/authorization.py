"""A virtual phone's authorization: the adb keys it accepts, stored in `adb_keys` as on a device.

Without the file in its folder the phone asks for none, as an emulator. With it, one public key a line as adb
writes them (`adbkey.pub`), a host must prove that it holds the private key of one of them. The formats are
AOSP's: system/core/libcrypto_utils/android_pubkey.cpp, packages/modules/adb/protocol.txt.
"""

import base64
import binascii
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FILE = "adb_keys"
#: The host signs this many random bytes, used as a SHA-1 digest.
TOKEN_BYTES = 20
#: Words of the modulus, its inverse, the modulus, R squared, the exponent.
_PUBLIC_KEY = struct.Struct("<II256s256sI")
#: PKCS #1: the prefix of a signed SHA-1 digest (RFC 8017, 9.2).
_SHA1_PREFIX = bytes.fromhex("3021300906052b0e03021a05000414")
_SIGNATURE_BYTES = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicKey:
    """An RSA key of 2048 bits."""

    modulus: int
    exponent: int

    def signed(self, token: bytes, signature: bytes) -> bool:
        """Return whether the signature of a token was made with this key's private half."""
        decrypted = pow(int.from_bytes(signature, "big"), self.exponent, self.modulus)
        digest = _SHA1_PREFIX + token
        padding = b"\xff" * (_SIGNATURE_BYTES - len(digest) - 3)
        return decrypted.to_bytes(_SIGNATURE_BYTES, "big") == b"\0\1" + padding + b"\0" + digest


class AuthorizedKeys:
    """The keys that a phone accepts now: its file is read again for each connection."""

    def __init__(self, state: Path, *, forgotten: bool = False) -> None:
        """Read nothing yet; `forgotten` has the phone know no key and ask its owner again."""
        self._path = state / FILE
        self._forgotten = forgotten

    def asks(self) -> bool:
        """Return whether a host has to prove its identity."""
        return self._forgotten or self._path.exists()

    def accept(self, token: bytes, signature: bytes) -> bool:
        """Return whether one of the keys signed the token."""
        if self._forgotten:
            return False
        return any(key.signed(token, signature) for key in public_keys(self._path.read_text()))


def public_keys(text: str) -> Iterator[PublicKey]:
    """Parse the keys of a file as adb writes them; invalid lines are skipped."""
    for line in text.splitlines():
        try:
            fields = _PUBLIC_KEY.unpack(base64.b64decode(line.partition(" ")[0], validate=True))
        except (binascii.Error, struct.error):
            continue
        yield PublicKey(modulus=int.from_bytes(fields[2], "little"), exponent=fields[4])
