"""Tells the operators' command of alarms: JSON on its stdin, bounded in time."""

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from tempfile import TemporaryFile

import structlog

from farm.clock import Clock
from farm.database.engine import Database
from farm.services.operations.alarm_views import alarm_view
from farm.store.operations import alarm_notifications
from farm.wire.documents.alarms import AlarmView

#: A command that takes longer is killed, and tried again.
COMMAND_S = 30.0
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class AlarmNotifier:
    """Calling it tells of what is due. It blocks, for as long as the command takes.

    An alarm that the command took (exit code 0) is never told again. One that it did not take is tried again,
    some times. A farm that is killed after the command ended and before that was noted tells twice.
    """

    database: Database
    command: Sequence[str]
    clock: Clock
    command_s: float = COMMAND_S

    def __call__(self) -> None:
        """Tell of each alarm that is due, oldest first."""
        while found := self.database.write(alarm_notifications.claim_alarm_to_notify, now=self.clock.now()):
            if self._took(alarm_view(found)):
                self.database.write(alarm_notifications.record_notified, found.alarm_id, now=self.clock.now())

    def _took(self, view: AlarmView) -> bool:
        try:
            exit_code = self._exit_code(f"{view.model_dump_json()}\n".encode())
        except (OSError, subprocess.TimeoutExpired) as error:
            _log.warning("alarm_command_failed", alarm_id=view.alarm_id, error=str(error))
            return False
        if exit_code != 0:
            _log.warning("alarm_command_failed", alarm_id=view.alarm_id, exit_code=exit_code)
        return exit_code == 0

    def _exit_code(self, said: bytes) -> int:
        """What the command ends with. What it prints is nobody's to keep; its errors go where ours do.

        No pipe of it is waited for: what it leaves in the background may hold that for ever.
        """
        with TemporaryFile() as stdin:
            stdin.write(said)
            stdin.seek(0)
            process = subprocess.Popen(
                self.command, stdin=stdin, stdout=subprocess.DEVNULL, start_new_session=True
            )
        try:
            return process.wait(timeout=self.command_s)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
