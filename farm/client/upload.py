"""Upload of a file to the farm, which resumes where it was interrupted."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx

from farm.client.responses import checked_response
from farm.core.base.ids import Digest
from farm.core.errors import (
    DigestMismatch,
    FarmDiskFull,
    FarmError,
    FarmFault,
    LimitReached,
    UploadInterrupted,
)
from farm.wire.content_range import OFFSET_HEADER, ContentRange

CHUNK_BYTES = 1024 * 1024
#: Pauses between tries without progress; after a try with progress they start again.
RETRY_PAUSES_S = (0.5, 1.0, 2.0, 4.0)

Progress = Callable[[int], None]
"""Called with the number of further bytes sent."""


@dataclass(slots=True, kw_only=True)
class Upload:
    """The upload of one file to one farm."""

    http: httpx.Client
    #: Sends a request; raises FarmUnreachable.
    send: Callable[[httpx.Request], httpx.Response]
    path: Path
    #: Of the file; the farm verifies it.
    digest: Digest
    progress: Progress | None = None
    retry_pauses_s: Sequence[float] = RETRY_PAUSES_S
    _reported_bytes: int = 0

    def run(self) -> None:
        """Send until the farm has the file; bytes that it has already cost one small request.

        Raises:
            FarmError: the farm refuses the file, or five tries in a row gave it nothing more.
        """
        offset, failures = self._find_offset(), 0
        while offset is not None:
            try:
                self._send_from(offset)
                break
            except FarmError as error:
                if failures == len(self.retry_pauses_s) or not _is_retryable(error, offset):
                    raise
                time.sleep(self.retry_pauses_s[failures])
                # Another client may be sending the same bytes: from the beginning, the farm takes both.
                is_last = failures == len(self.retry_pauses_s) - 1 and isinstance(error, UploadInterrupted)
            try:
                arrived = self._find_offset()
            except FarmFault:
                # The farm may be away.
                arrived = offset
            failures = 0 if arrived is not None and arrived > offset else failures + 1
            offset = 0 if is_last and arrived is not None else arrived
        self._report_progress(self.path.stat().st_size)

    def _find_offset(self) -> int | None:
        """Return how many bytes the farm has of the file; None when it has all."""
        response = self.send(self.http.build_request("HEAD", f"/blobs/{self.digest}"))
        if response.status_code not in (httpx.codes.NOT_FOUND, httpx.codes.GONE):
            checked_response(response)
            return None
        text = response.headers.get(OFFSET_HEADER, "")
        offset = int(text) if text.isdecimal() else 0
        return offset if offset < self.path.stat().st_size else 0

    def _send_from(self, offset: int) -> None:
        size_bytes = self.path.stat().st_size
        headers = {"Content-Length": str(size_bytes - offset), "Content-Type": "application/octet-stream"}
        if offset:
            rest = ContentRange(first=offset, last=size_bytes - 1, total_bytes=size_bytes)
            headers["Content-Range"] = str(rest)
        request = self.http.build_request(
            "PUT", f"/blobs/{self.digest}", content=self._chunks(offset), headers=headers
        )
        checked_response(self.send(request))

    def _chunks(self, offset: int) -> Iterator[bytes]:
        self._report_progress(offset)
        with self.path.open("rb") as file:
            file.seek(offset)
            while chunk := file.read(CHUNK_BYTES):
                yield chunk
                self._report_progress(file.tell())

    def _report_progress(self, sent_bytes: int) -> None:
        """Report progress; bytes that are sent twice count once."""
        if self.progress is not None and sent_bytes > self._reported_bytes:
            self.progress(sent_bytes - self._reported_bytes)
        self._reported_bytes = max(sent_bytes, self._reported_bytes)


def _is_retryable(error: FarmError, offset: int) -> bool:
    """Return whether a retry may succeed; a file damaged before its first part arrived is sent again once."""
    if isinstance(error, DigestMismatch):
        return offset > 0
    is_transient = isinstance(error, FarmFault | LimitReached | UploadInterrupted)
    return is_transient and not isinstance(error, FarmDiskFull)
