"""The TLS certificate of the listeners, read again when it was renewed."""

import ssl
from pathlib import Path

import structlog

from farm.core.errors import InvalidInput

_log = structlog.get_logger(__name__)

_HINT = (
    "FARM_TLS_CERT names a PEM file with the certificate and its chain, FARM_TLS_KEY one with its key, "
    "without a pass phrase"
)


class TlsCertificate:
    """A certificate with its chain, and its private key, as files that may be renewed while the farm runs."""

    def __init__(self, certificate: Path, key: Path) -> None:
        """Read the files.

        Raises:
            InvalidInput: one cannot be read, or they do not belong together.
        """
        self._files = (certificate, key)
        try:
            self._read_at = self._changed_at()
            #: Of the server's side, for new connections; TLS 1.2 or later.
            self.context = self._load()
        except (OSError, ssl.SSLError) as error:
            raise InvalidInput(f"cannot use {certificate} with {key}: {error}", hint=_HINT) from error

    def reload(self) -> None:
        """Read the files again if they were changed: later connections get the new certificate.

        Files that do not belong together, such as one of two that was renewed already, are tried again by the
        next call; connections keep the previous certificate.
        """
        try:
            changed_at = self._changed_at()
            if changed_at == self._read_at:
                return
            self.context = self._load()
        except (OSError, ssl.SSLError) as error:
            _log.warning(
                "tls_certificate_not_reloaded", file=str(self._files[0]), reason=str(error), hint=_HINT
            )
            return
        self._read_at = changed_at
        _log.info("tls_certificate_reloaded", file=str(self._files[0]))

    def _changed_at(self) -> tuple[int, ...]:
        return tuple(file.stat().st_mtime_ns for file in self._files)

    def _load(self) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.set_alpn_protocols(["http/1.1"])
        # A key with a pass phrase cannot be read: OpenSSL would ask for it on the terminal.
        context.load_cert_chain(*self._files, password=lambda: "")
        return context
