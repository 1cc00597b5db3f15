"""The channels that carry alarms to people: a command, a webhook, mail. Each blocks, bounded in time."""

import asyncio
import os
import pickle
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from email.message import EmailMessage
from tempfile import TemporaryFile
from typing import Protocol

import httpx
from pydantic_core import to_json

from farm.core.operations.alarm import AlarmMessage
from farm.core.operations.mail_server import MailServer

#: What takes longer is given up, and tried again.
CHANNEL_S = 30.0


class AlarmNotTakenError(Exception):
    """A channel did not take an alarm; the message says why, without secrets."""


class AlarmChannel(Protocol):
    """Carries alarms to people."""

    @property
    def name(self) -> str: ...

    def send(self, alarm: AlarmMessage) -> None:
        """Carry one alarm.

        Raises:
            AlarmNotTakenError: it was not taken.
        """


@dataclass(frozen=True, slots=True)
class CommandChannel:
    """Runs a command with the alarm as JSON on its stdin; exit code 0 takes it."""

    command: Sequence[str]
    command_s: float = CHANNEL_S
    name: str = "command"

    def send(self, alarm: AlarmMessage) -> None:
        """Run the command."""
        try:
            exit_code = self._exit_code(to_json(alarm) + b"\n")
        except (OSError, subprocess.TimeoutExpired) as error:
            raise AlarmNotTakenError(str(error)) from error
        if exit_code != 0:
            raise AlarmNotTakenError(f"exit code {exit_code}")

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


@dataclass(frozen=True, slots=True)
class WebhookChannel:
    """Posts the alarm as JSON; an answer of 200 to 299 takes it. Redirects are not followed."""

    url: str
    timeout_s: float = CHANNEL_S
    name: str = "webhook"

    def send(self, alarm: AlarmMessage) -> None:
        """Post the alarm."""
        try:
            status = asyncio.run(self._status(to_json(alarm)))
        except (httpx.HTTPError, TimeoutError) as error:
            # The message of some errors has the address, which may hold a token.
            raise AlarmNotTakenError(type(error).__name__) from error
        if not httpx.codes.is_success(status):
            raise AlarmNotTakenError(f"status {status}")

    async def _status(self, document: bytes) -> int:
        """Return the status of the answer. httpx bounds each read alone, so drips would never end."""
        headers = {"content-type": "application/json"}
        async with (
            asyncio.timeout(self.timeout_s),
            httpx.AsyncClient(timeout=self.timeout_s) as client,
            client.stream("POST", self.url, content=document, headers=headers) as answer,
        ):
            return answer.status_code


@dataclass(frozen=True, slots=True)
class MailChannel:
    """Sends the alarm as mail, with its JSON attached."""

    server: MailServer
    to: Sequence[str]
    timeout_s: float = CHANNEL_S
    name: str = "mail"

    def send(self, alarm: AlarmMessage) -> None:
        """Send the mail, by a process that is killed when the time is over."""
        document = pickle.dumps((self.server, self._message(alarm)))
        command = (sys.executable, "-m", "farm.services.operations.mail_delivery")
        try:
            delivery = subprocess.run(
                command,
                input=document,
                stdout=subprocess.PIPE,
                timeout=self.timeout_s,
                start_new_session=True,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise AlarmNotTakenError(str(error)) from error
        if delivery.returncode != 0:
            reason = delivery.stdout.decode(errors="replace")
            raise AlarmNotTakenError(reason or f"exit code {delivery.returncode}")

    def _message(self, alarm: AlarmMessage) -> EmailMessage:
        message = EmailMessage()
        summary = " ".join(alarm.message.split())
        message["Subject"] = f"[benchfarm] {alarm.kind}: {summary}"[:200]
        message["From"] = self.server.sender or f"benchfarm@{socket.gethostname()}"
        message["To"] = ", ".join(self.to)
        message["Message-ID"] = f"<alarm-{alarm.alarm_id}-{alarm.raised_at:%Y%m%d%H%M%S}@benchfarm>"
        page = "" if alarm.link is None else f"page: {alarm.link}\n"
        message.set_content(
            f"{alarm.message}\n\nhint: {alarm.hint}\n{page}since: {alarm.raised_at.isoformat()}\n"
        )
        message.add_attachment(
            to_json(alarm, indent=2), maintype="application", subtype="json", filename="alarm.json"
        )
        return message
