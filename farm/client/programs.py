"""Calls about harnesses, their programs and evidence."""

from urllib.parse import quote

from farm.client.connection import FarmConnection
from farm.core.errors import InvalidInput
from farm.wire.documents.files.programs import (
    AdapterView,
    HarnessView,
    ProgramRegistration,
    ProgramView,
    RegisteredProgramView,
)
from farm.wire.documents.results.reparse import ReparsePage, ReparseRequest


class HarnessCalls(FarmConnection):
    """A part of `farm.client.farm_client.FarmClient`, with the same time-outs and errors."""

    def programs(self) -> list[ProgramView]:
        return self._get(list[ProgramView], "/harnesses")

    def adapters(self) -> list[AdapterView]:
        return self._get(list[AdapterView], "/adapters")

    def harness(self, name: str) -> HarnessView:
        if not name:
            raise InvalidInput("the name of a harness is empty", hint="`farm harness list` has them")
        return self._get(HarnessView, f"/harnesses/{quote(name, safe='')}")

    def register_program(self, registration: ProgramRegistration) -> RegisteredProgramView:
        """Make a program the one that new matrices run; its files were uploaded before."""
        return self._post(RegisteredProgramView, "/harnesses", registration.model_dump(mode="json"))

    def reparse(self, request: ReparseRequest) -> ReparsePage:
        """Read the next piece of kept output by the present adapters."""
        return self._post(ReparsePage, "/reparse", request.model_dump(mode="json"))
