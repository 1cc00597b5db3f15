"""Sends a file that is open already, so that nobody can take it away before it is sent."""

import os
from typing import BinaryIO

from starlette.responses import FileResponse
from starlette.types import Receive, Scope, Send


class OpenFileResponse(FileResponse):
    """As its parent, which opens a file by its name only when it begins to send."""

    def __init__(self, file: BinaryIO) -> None:
        """The file is closed once it is sent."""
        # Whatever becomes of its name, a file that is open can be opened again by its number.
        super().__init__(
            f"/dev/fd/{file.fileno()}",
            media_type="application/octet-stream",
            stat_result=os.fstat(file.fileno()),
        )
        self._file = file

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._file:
            await super().__call__(scope, receive, send)
