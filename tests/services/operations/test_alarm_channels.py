"""Alarms reach a web server and a mail server; what one of them did not take, that one is sent again."""

import json
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email import message_from_bytes, policy
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from pydantic import ValidationError

from farm.config import FarmConfig
from farm.core.operations.alarm import AlarmKind, AlarmMessage, AlarmSubject, DueAlarm
from farm.core.operations.mail_server import mail_server
from farm.database.transaction import bind_tx
from farm.services.operations.alarm_channels import (
    CHANNEL_S,
    AlarmNotTakenError,
    MailChannel,
    WebhookChannel,
)
from farm.services.operations.alarm_notifier import AlarmNotifier
from farm.services.operations.alarms import list_alarms
from farm.store.operations.alarms import MAX_NOTIFY_ATTEMPTS, add_alarm
from tests.support.farm.service_fixture import FarmRig

ALARM = AlarmMessage(
    alarm_id=7,
    kind=AlarmKind.REGRESSION,
    subject=AlarmSubject.CHANGE,
    subject_id="3",
    message="mobilenet_v2 int8-core: +5.1 %",
    hint="`farm regressions show 3` has the evidence",
    raised_at=datetime(2026, 11, 20, tzinfo=UTC),
    cleared_at=None,
    cleared_by=None,
    notified_at=None,
    link="https://farm.example.org/changes/3",
)


class WebServer:
    """Answers posts with the statuses that it was given, in turn, and keeps their bodies."""

    def __init__(self, *statuses: int) -> None:
        self.statuses = list(statuses)
        self.bodies: list[Any] = []
        self.url = ""

    def answer(self, body: bytes) -> int:
        """Take a body. A status of 0 is a server that sends a header now and then, and never all of them."""
        self.bodies.append(json.loads(body))
        return self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]


@contextmanager
def web_server(*statuses: int) -> Iterator[WebServer]:
    server = WebServer(*statuses)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            status = server.answer(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(status or 200)
            if not status:
                with suppress(OSError):
                    while True:
                        self.send_header("x-wait", "a moment")
                        self.flush_headers()
                        threading.Event().wait(0.05)
                return
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        server.url = f"http://127.0.0.1:{listening.server_address[1]}/hook?token=secret"
        thread = threading.Thread(target=listening.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server
        finally:
            listening.shutdown()
            thread.join()


class MailServerStub:
    """An SMTP server (RFC 5321) without encryption, which keeps what it takes."""

    def __init__(self, refusal: str | None = None, drips_at: str | None = None) -> None:
        self.refusal = refusal
        #: The verb whose answer has line after line, and no last one.
        self.drips_at = drips_at
        self.recipients: list[str] = []
        self.mails: list[Any] = []
        self.port = 0

    def serve(self, handler: socketserver.StreamRequestHandler) -> None:
        def say(line: str) -> None:
            handler.wfile.write(f"{line}\r\n".encode())

        say("220 here")
        while line := handler.rfile.readline().decode().strip():
            verb = line.split()[0].upper()
            if verb == self.drips_at:
                with suppress(OSError):
                    while True:
                        say("250-a moment")
                        threading.Event().wait(0.05)
                return
            if verb == "RCPT":
                self.recipients.append(line)
                say(self.refusal or "250 ok")
            elif verb == "DATA":
                say("354 go on")
                text = b""
                while (part := handler.rfile.readline()) != b".\r\n":
                    text += part
                self.mails.append(message_from_bytes(text, policy=policy.default))
                say("250 taken")
            elif verb == "QUIT":
                say("221 bye")
                return
            else:
                say("250 ok")


@contextmanager
def smtp_server(refusal: str | None = None, drips_at: str | None = None) -> Iterator[MailServerStub]:
    server = MailServerStub(refusal, drips_at)

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            server.serve(self)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as listening:
        server.port = listening.server_address[1]
        thread = threading.Thread(target=listening.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server
        finally:
            listening.shutdown()
            thread.join()


def mail_channel(server: MailServerStub, timeout_s: float = CHANNEL_S) -> MailChannel:
    address = f"smtp://127.0.0.1:{server.port}?from=farm@example.org"
    return MailChannel(mail_server(address), ["ann@example.org", "ben@example.org"], timeout_s)


def test_a_webhook_gets_the_json_that_the_command_gets() -> None:
    with web_server(204) as server:
        WebhookChannel(server.url).send(ALARM)
    (body,) = server.bodies
    assert (body["alarm_id"], body["kind"], body["message"]) == (7, "regression", ALARM.message)


def test_a_webhook_that_fails_says_why_and_no_secret() -> None:
    with web_server(500) as server, pytest.raises(AlarmNotTakenError, match=r"^status 500$"):
        WebhookChannel(server.url).send(ALARM)
    with pytest.raises(AlarmNotTakenError, match=r"^ConnectError$"):
        WebhookChannel(server.url).send(ALARM)


def test_a_webhook_that_answers_in_drips_is_given_up() -> None:
    with web_server(0) as server, pytest.raises(AlarmNotTakenError, match="Timeout"):
        WebhookChannel(server.url, timeout_s=0.3).send(ALARM)


def test_a_redirect_of_a_webhook_is_not_followed() -> None:
    with web_server(302) as server, pytest.raises(AlarmNotTakenError, match=r"^status 302$"):
        WebhookChannel(server.url).send(ALARM)
    assert len(server.bodies) == 1


def test_a_mail_has_the_message_and_its_json() -> None:
    with smtp_server() as server:
        mail_channel(server).send(ALARM)
    (mail,) = server.mails
    assert (mail["to"], mail["from"]) == ("ann@example.org, ben@example.org", "farm@example.org")
    assert mail["subject"] == "[benchfarm] regression: mobilenet_v2 int8-core: +5.1 %"
    text = mail.get_body(("plain",)).get_content()
    assert ALARM.hint in text
    assert "page: https://farm.example.org/changes/3" in text.splitlines()
    (attached,) = mail.iter_attachments()
    assert json.loads(attached.get_content())["alarm_id"] == 7
    assert len(server.recipients) == 2


def test_mail_that_no_recipient_gets_was_not_taken() -> None:
    with smtp_server("550 no such user") as server, pytest.raises(AlarmNotTakenError, match="Recipients"):
        mail_channel(server).send(ALARM)
    with pytest.raises(AlarmNotTakenError, match="refused"):
        mail_channel(server).send(ALARM)


def test_a_mail_server_that_answers_in_drips_is_given_up() -> None:
    with smtp_server(drips_at="MAIL") as server, pytest.raises(AlarmNotTakenError, match="timed out"):
        mail_channel(server, timeout_s=1.0).send(ALARM)


def test_mail_is_taken_whatever_becomes_of_the_farewell() -> None:
    with smtp_server(drips_at="QUIT") as server:
        mail_channel(server).send(ALARM)
    assert len(server.mails) == 1


def raise_alarm(farm: FarmRig, change: str) -> None:
    due = DueAlarm(
        kind=AlarmKind.REGRESSION, subject=AlarmSubject.CHANGE, subject_id=change, message="m", hint="h"
    )
    farm.write(bind_tx(add_alarm, now=farm.clock.now()), due)


@dataclass
class ChannelStub:
    """Keeps the alarms that it takes; with `awaits`, none before another channel has taken both."""

    name: str
    awaits: threading.Event | None = None
    taken: list[str] = field(default_factory=list)
    has_both: threading.Event = field(default_factory=threading.Event)

    def send(self, alarm: AlarmMessage) -> None:
        if self.awaits is not None and not self.awaits.wait(10):
            raise AlarmNotTakenError("the other channel had to wait")
        self.taken.append(alarm.subject_id)
        if len(self.taken) == 2:
            self.has_both.set()


def test_a_slow_channel_keeps_no_alarm_from_the_others(farm: FarmRig) -> None:
    raise_alarm(farm, "3")
    raise_alarm(farm, "4")
    quick = ChannelStub("command")
    slow = ChannelStub("mail", awaits=quick.has_both)
    notify = AlarmNotifier(farm.database, [slow, quick], farm.clock)
    notify()
    notify()
    assert (quick.taken, slow.taken) == (["3", "4"], ["3", "4"])
    assert all(alarm.notified_at for alarm in farm.read(list_alarms))


@dataclass
class DeadChannel:
    """Takes nothing until it is back; keeps what it was given."""

    name: str = "webhook"
    is_back: bool = False
    given: list[str] = field(default_factory=list)

    def send(self, alarm: AlarmMessage) -> None:
        self.given.append(alarm.subject_id)
        if not self.is_back:
            raise AlarmNotTakenError("no answer")


def test_a_channel_that_takes_nothing_is_given_one_alarm_each_time_and_the_others_have_all(
    farm: FarmRig,
) -> None:
    raise_alarm(farm, "3")
    raise_alarm(farm, "4")
    raise_alarm(farm, "5")
    quick, dead = ChannelStub("command"), DeadChannel()
    notify = AlarmNotifier(farm.database, [dead, quick], farm.clock)
    notify()
    assert (dead.given, quick.taken) == (["3"], ["3", "4", "5"])
    raise_alarm(farm, "6")
    notify()
    assert (dead.given, quick.taken) == (["3", "4"], ["3", "4", "5", "6"])
    dead.is_back = True
    # The two that it failed at wait for their retry; those that it never had do not.
    notify()
    farm.clock.advance(120)
    notify()
    assert dead.given == ["3", "4", "5", "6", "3", "4"]
    assert len(quick.taken) == 4
    assert all(alarm.notified_at for alarm in farm.read(list_alarms))


def test_an_alarm_that_a_channel_fails_at_each_time_costs_no_other_one(farm: FarmRig) -> None:
    raise_alarm(farm, "3")
    dead = DeadChannel()
    notify = AlarmNotifier(farm.database, [dead], farm.clock)
    raise_alarm(farm, "4")
    for _ in range(2 * MAX_NOTIFY_ATTEMPTS):
        notify()
        notify()
        farm.clock.advance(3600)
    assert dead.given == ["3", "4"] * MAX_NOTIFY_ATTEMPTS


def test_an_alarm_is_sent_again_by_the_channel_that_did_not_take_it(farm: FarmRig) -> None:
    raise_alarm(farm, "3")
    with web_server(503, 200) as web, smtp_server() as mail:
        channels = [WebhookChannel(web.url), mail_channel(mail)]
        notify = AlarmNotifier(farm.database, channels, farm.clock, "https://farm.example.org/")
        notify()
        assert farm.read(list_alarms)[0].notified_at is None
        # Not before the pause is over.
        notify()
        assert len(web.bodies) == 1
        farm.clock.advance(600)
        notify()
    assert farm.read(list_alarms)[0].notified_at is not None
    assert (len(web.bodies), len(mail.mails)) == (2, 1)
    assert web.bodies[1]["link"] == "https://farm.example.org/changes/3"


@pytest.mark.parametrize(
    "address", ["http://host:port/x", "http://host:0/", "http://host/\n", "https://a b", "mailto:x"]
)
def test_an_address_that_cannot_be_called_is_refused_when_the_farm_starts(address: str) -> None:
    with pytest.raises(ValidationError):
        FarmConfig(alarm_webhook=address)
    with pytest.raises(ValidationError):
        FarmConfig(pages_url=address)
