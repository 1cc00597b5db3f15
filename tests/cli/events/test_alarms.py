"""`farm alarms`, the line below `farm device list`, and the command that operators have told of alarms."""

import json
import os
import select
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy.engine import Connection

from farm.cli.admin.machine_checks import check_alarms, read_alarms
from farm.cli.shell.main import main
from farm.core.operations.alarm import AlarmKind, AlarmSubject, DueAlarm
from farm.core.operations.diagnostic import Severity
from farm.database import tables
from farm.database.transaction import bind_tx
from farm.services.operations.alarm_channels import CHANNEL_S, AlarmChannel, CommandChannel
from farm.services.operations.alarm_notifier import AlarmNotifier
from farm.store.operations.alarms import MAX_NOTIFY_ATTEMPTS, add_alarm, clear_alarm
from tests.support.database.sample_rows import DEVICE, HOST, NOW, SERIES
from tests.support.farm.http_farm import HttpFarm, http_farm

KIND, SUBJECT = AlarmKind.REFERENCE_DRIFT, AlarmSubject.DEVICE


@pytest.fixture
def farm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HttpFarm]:
    monkeypatch.setenv("FARM_USER", "anna")
    with http_farm(tmp_path / "data") as served:
        monkeypatch.setenv("FARM_URL", served.url)
        yield served


def tell(farm: HttpFarm, device_id: str = "phone-1") -> None:
    context = farm.context
    context.database.write(
        bind_tx(add_alarm, now=context.clock.now()),
        DueAlarm(
            kind=KIND,
            subject=SUBJECT,
            subject_id=device_id,
            message=f"{device_id}: 31 % slower than [its] kind",
            hint="look at its battery",
        ),
    )


def run(*words: str) -> int:
    """The exit code of a command."""
    with pytest.raises(SystemExit) as left:
        main(words)
    return int(left.value.code or 0)


def test_alarms_are_listed_with_what_to_do_and_cleared_with_a_reason(
    farm: HttpFarm, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("alarms") == 0
    assert capsys.readouterr().out == "No alarm is open.\n"
    tell(farm)
    assert run("alarms") == 0
    printed = capsys.readouterr().out
    assert "phone-1: 31 % slower than [its] kind" in printed
    assert "hint: look at its battery" in printed
    assert run("alarms", "clear", "1", "--reason", "a new battery") == 0
    assert capsys.readouterr().err == "Alarm 1 cleared by user:anna.\n"
    assert run("alarms", "--json") == 0
    assert json.loads(capsys.readouterr().out) == []
    assert run("alarms", "--all", "--json") == 0
    (view,) = json.loads(capsys.readouterr().out)
    assert (view["kind"], view["cleared_by"]) == ("reference_drift", "user:anna")
    assert run("events", "--subject", "alarm:1", "--json") == 0
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(event["kind"], event["actor"]) for event in events] == [
        ("alarm_raised", "farm"),
        ("alarm_cleared", "user:anna"),
    ]
    assert events[1]["cause"].endswith("a new battery")


def test_clearing_what_is_not_there_is_the_users_fault(
    farm: HttpFarm, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("alarms", "clear", "7", "--reason", "why not") == 2
    assert "there is no alarm 7" in capsys.readouterr().err
    answer = farm.http.post("/api/v1/alarms/7/clear", json={"by": "anna"})
    assert answer.status_code == 422


def test_the_list_of_phones_says_in_one_line_that_alarms_are_open(
    farm: HttpFarm, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("devices") == 0
    assert capsys.readouterr().err == ""
    tell(farm, "phone-1")
    tell(farm, "phone-2")
    assert run("devices") == 0
    assert capsys.readouterr().err == "2 alarms are open: `farm alarms`.\n"
    assert run("devices", "--json") == 0
    assert capsys.readouterr().err == ""


def test_doctor_warns_of_open_alarms_of_the_farm_that_runs_here(farm: HttpFarm) -> None:
    assert [each.level for each in check_alarms(read_alarms(farm.url))] == [Severity.OK]
    tell(farm, "phone-1")
    tell(farm, "phone-2")
    (found,) = check_alarms(read_alarms(farm.url))
    assert found.level is Severity.WARNING
    assert found.message == "phone-1: 31 % slower than [its] kind, and 1 more"
    assert check_alarms(read_alarms(None)) == []


def teller(farm: HttpFarm, script: str, *, command_s: float = CHANNEL_S) -> AlarmNotifier:
    return notifier(farm, CommandChannel((sys.executable, "-c", script), command_s=command_s))


def notifier(farm: HttpFarm, *channels: AlarmChannel) -> AlarmNotifier:
    return AlarmNotifier(farm.context.database, channels, farm.context.clock)


def test_the_operators_command_gets_each_alarm_once_as_json(farm: HttpFarm, tmp_path: Path) -> None:
    told = tmp_path / "told"
    tell_command = teller(farm, f"import sys; open({str(told)!r}, 'a').write(sys.stdin.read())")
    tell_command()
    assert not told.exists()
    tell(farm, "phone-1")
    tell(farm, "phone-2")
    tell_command()
    tell_command()
    views = [json.loads(line) for line in told.read_text().splitlines()]
    assert [view["subject_id"] for view in views] == ["phone-1", "phone-2"]
    context = farm.context
    context.database.write(
        bind_tx(clear_alarm, now=context.clock.now()), (KIND, SUBJECT, "phone-1"), cause="over"
    )
    tell(farm, "phone-1")
    tell_command()
    assert [json.loads(line)["alarm_id"] for line in told.read_text().splitlines()] == [1, 2, 3]


def test_a_command_that_fails_is_tried_again_a_few_times_and_then_no_more(
    farm: HttpFarm, tmp_path: Path
) -> None:
    tries = tmp_path / "tries"
    failing = teller(farm, f"import sys; open({str(tries)!r}, 'a').write('x'); sys.exit(1)")
    tell(farm)
    for _ in range(3):
        failing()
    assert tries.read_text() == "x"

    def let_it_be_due(connection: object) -> None:
        connection.exec_driver_sql("UPDATE alarms SET notify_again_at = 0")  # type: ignore[attr-defined]

    for _ in range(2 * MAX_NOTIFY_ATTEMPTS):
        farm.context.database.write(let_it_be_due)
        failing()
    assert tries.read_text() == "x" * MAX_NOTIFY_ATTEMPTS


def test_a_command_that_leaves_something_in_the_background_took_the_alarm(
    farm: HttpFarm, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    tell(farm)
    teller(farm, f"import subprocess; subprocess.Popen(['cat', {str(gate)!r}])", command_s=10.0)()
    notified_at = farm.http.get("/api/v1/alarms").json()[0]["notified_at"]
    gate.open("wb").close()
    assert notified_at is not None


def test_a_command_that_hangs_is_ended_with_all_that_it_started(farm: HttpFarm, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    held = os.open(gate, os.O_RDONLY | os.O_NONBLOCK)
    tell(farm)
    script = f"import subprocess; subprocess.run(['sh', '-c', 'exec 3>{gate}; echo x >&3; sleep 60'])"
    # In this time a busy machine starts Python and the shell.
    teller(farm, script, command_s=8.0)()
    assert farm.http.get("/api/v1/alarms").json()[0]["notified_at"] is None
    assert os.read(held, 10) == b"x\n"
    ended, _, _ = select.select([held], [], [], 20)
    assert ended
    assert os.read(held, 10) == b""
    os.close(held)


def test_a_command_that_is_not_there_stops_nothing(farm: HttpFarm) -> None:
    tell(farm)
    notifier(farm, CommandChannel(("/nonexistent/tell",)))()
    assert farm.http.get("/api/v1/alarms").json()[0]["notified_at"] is None


def add_labelled_devices(connection: Connection) -> None:
    host = {"host_id": HOST, "state": "active", "auto_admit": True, "credential_hash": "x", "created_at": NOW}
    connection.execute(tables.hosts.insert(), [host])
    for index, label in ((1, "bench-a"), (12, "bench-b")):
        row = {**DEVICE, "device_id": f"phone-{index}", "serial": str(index), "label": label}
        connection.execute(tables.devices.insert(), [row])
    connection.execute(tables.series.insert(), [{**SERIES, "series_id": 5, "device_id": "phone-12"}])
    event = {"at": NOW, "actor": "farm", "kind": "device_found", "subject": "device"}
    connection.execute(tables.events.insert(), [{**event, "subject_id": "phone-12"}])


def test_a_device_that_was_labelled_since_is_named_by_its_label(
    farm: HttpFarm, capsys: pytest.CaptureFixture[str]
) -> None:
    context = farm.context
    context.database.write(add_labelled_devices)
    tell(farm, "phone-12")
    context.database.write(
        bind_tx(add_alarm, now=context.clock.now()),
        DueAlarm(
            kind=AlarmKind.PLACEMENT_CHANGED,
            subject=AlarmSubject.SERIES,
            subject_id="5",
            message="net on phone-12 ran as cpu, phone-1 and phone-123 do not",
            hint="farm placement --device phone-12",
        ),
    )
    assert run("alarms") == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "bench-b: 31 % slower" in printed
    assert "net on bench-b ran as cpu, phone-1 and phone-123 do not" in printed
    assert "farm placement --device bench-b" in printed
    assert run("alarms", "--json") == 0
    views = json.loads(capsys.readouterr().out)
    assert [(view["device_id"], view["device_label"]) for view in views] == [("phone-12", "bench-b")] * 2
    assert views[0]["message"].startswith("phone-12: ")
    assert run("events", "--kind", "device_found") == 0
    assert "device bench-b found" in capsys.readouterr().out
    assert run("events", "--kind", "device_found", "--json") == 0
    event = json.loads(capsys.readouterr().out)
    assert (event["subject_id"], event["device_label"]) == ("phone-12", "bench-b")


def test_alarms_are_listed_since_a_time_that_has_passed(
    farm: HttpFarm, capsys: pytest.CaptureFixture[str]
) -> None:
    for device_id in ("phone-1", "phone-2"):
        tell(farm, device_id)
    for words, count in ((("--limit", "1"), 1), (("--all", "--limit", "1"), 1), (("--all",), 2)):
        assert run("alarms", "--json", *words) == 0
        assert len(json.loads(capsys.readouterr().out)) == count
    for command in ("alarms", "events", "regressions", "history", "speedups"):
        assert run(command, "--since", "2999-01-01") != 0
        printed = capsys.readouterr().err
        assert "lies in the future" in printed
        assert "hint: give a time that has passed" in printed
        assert run(command, "--since", "1990-01-01") == 0
        capsys.readouterr()
