"""Notify the operators' command of alarms: JSON on its stdin, bounded in time."""

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from tempfile import TemporaryFile

import structlog
from pydantic_core import to_json

from farm.clock import Clock
from farm.core.operations.alarm import Alarm
from farm.database.engine import Database
from farm.database.transaction import bind_tx
from farm.store.operations import alarms

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
        while alarm := self.database.write(bind_tx(alarms.claim_alarm_to_notify, now=self.clock.now())):
            if self._run_command(alarm):
                self.database.write(bind_tx(alarms.record_notified, now=self.clock.now()), alarm.alarm_id)

    def _run_command(self, alarm: Alarm) -> bool:
        try:
            exit_code = self._exit_code(to_json(alarm) + b"\n")
        except (OSError, subprocess.TimeoutExpired) as error:
            _log.warning("alarm_command_failed", alarm_id=alarm.alarm_id, error=str(error))
            return False
        if exit_code != 0:
            _log.warning("alarm_command_failed", alarm_id=alarm.alarm_id, exit_code=exit_code)
        return exit_code == 0

    def _exit_code(self, document: bytes) -> int:
        """Return the exit code of the command. Its output is discarded; its errors go where ours do.

        No pipe of it is waited for: what it leaves in the background may hold that for ever.
        """
        with TemporaryFile() as stdin:
            stdin.write(document)
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
