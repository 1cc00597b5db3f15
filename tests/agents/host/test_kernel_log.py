"""Where an agent reads its host's kernel log, and that it reads each line once."""

import os
from pathlib import Path

import pytest

from agents.host.config import AgentConfig
from agents.host.kernel_log import JournaldLog, KmsgLog, LogFile, find_kernel_log, wants_kernel_log


@pytest.fixture
def log(tmp_path: Path) -> Path:
    log = tmp_path / "kern.log"
    log.write_text("before\n")
    return log


def append(log: Path, text: str) -> None:
    with log.open("a") as file:
        file.write(text)


def test_each_line_of_a_file_is_given_once_and_as_a_whole(log: Path) -> None:
    source = LogFile(log)
    assert source.read() == "before\n"
    append(log, "one\ntw")
    assert source.read() == "one\n"
    append(log, "o\n")
    assert source.read() == "two\n"
    assert source.read() == ""


def test_a_file_that_was_rotated_or_emptied_is_read_from_its_beginning(log: Path) -> None:
    source = LogFile(log)
    source.read()
    log.rename(log.with_suffix(".1"))
    log.write_text("a new file of the same name\n")
    assert source.read() == "a new file of the same name\n"
    log.write_text("less\n")
    assert source.read() == "less\n"


def test_of_a_long_file_its_end_is_read(log: Path) -> None:
    append(log, "x" * 1_000_000 + "\nlast\n")
    assert LogFile(log).read().endswith("x\nlast\n")
    assert len(LogFile(log).read()) < 300_000


def test_records_of_the_kernels_buffer_are_given_until_there_are_no_more(tmp_path: Path) -> None:
    # A pipe ends in the same way: with nothing to read for now.
    os.mkfifo(pipe := tmp_path / "kmsg")
    source = KmsgLog(pipe)
    with pipe.open("wb", buffering=0) as kernel:
        assert source.read() == ""
        kernel.write(b"6,1,5,-;one\n")
        kernel.write(b"6,2,6,-;two\n")
        assert source.read() == "6,1,5,-;one\n6,2,6,-;two\n"
        assert source.read() == ""


def test_nothing_is_read_where_the_settings_name_no_log_of_use(tmp_path: Path) -> None:
    source = find_kernel_log(AgentConfig(data_dir=tmp_path, kernel_log=Path(os.devnull)))
    assert source is not None
    assert source.read() == ""


def test_each_line_of_a_journal_is_given_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal, program = tmp_path / "journal", tmp_path / "journalctl"
    program.write_text(f"#!/bin/sh\ncat {journal}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    journal.write_text("[1.0] a kernel: one\n")
    source = JournaldLog()
    assert source.read() == "[1.0] a kernel: one"
    append(journal, "[2.0] a kernel: two\n[3.0] a kernel: three\n")
    assert source.read() == "[2.0] a kernel: two\n[3.0] a kernel: three"
    assert source.read() == ""
    program.write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(OSError, match="journalctl"):
        source.read()


def test_the_file_that_is_named_is_read_though_it_may_come_later(tmp_path: Path) -> None:
    config = AgentConfig(data_dir=tmp_path, adb_usb=False, kernel_log=tmp_path / "later.log")
    source = find_kernel_log(config)
    assert source is not None
    assert source.name == str(tmp_path / "later.log")
    with pytest.raises(FileNotFoundError):
        source.read()
    (tmp_path / "later.log").write_text("it is there\n")
    assert source.read() == "it is there\n"


@pytest.mark.parametrize(
    ("settings", "is_wanted"),
    [
        ({}, True),
        ({"adb_usb": False}, False),
        ({"adb_server": "127.0.0.1:5037"}, True),
        ({"adb_server": "10.0.0.9:5037"}, False),
    ],
)
def test_only_a_kernel_that_has_the_agents_phones_is_listened_to(
    tmp_path: Path, settings: dict[str, object], is_wanted: bool
) -> None:
    assert wants_kernel_log(AgentConfig.model_validate({"data_dir": tmp_path, **settings})) is is_wanted
