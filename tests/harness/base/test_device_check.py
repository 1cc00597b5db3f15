"""What a phone's check prints, read; and the script itself, run by this machine's shell."""

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.core.runs.evidence import Evidence, ExitRecord
from farm.core.runs.plan import PlanFile
from farm.harness.base.device_check import failure, plan, reference_time
from farm.services.files.builtin_programs import check_program

#: Of a phone whose date knows nanoseconds, and of one whose date prints the N.
BY_DATE = """\
shell_exit 7
payload_sha256 0a3e
copied_bytes 131072
uptime 81211.40 301122.90
reference_clock date
reference_cores taskset c0
reference 4 1779870001112233445 1779870001196233445
reference 4 1779870001201000000 1779870001281000000
reference 4 1779870001290000000 1779870001374000000
"""
BY_UPTIME = """\
reference_clock uptime
reference_cores any
reference 6 00000008122210000000 00000008122810000000
reference 6 00000008122820000000 00000008123480000000
reference 6 00000008123490000000 00000008124120000000
"""


def evidence(stdout: str, code: int = 23) -> Evidence:
    return Evidence(fence=1, exit=ExitRecord(code=code, duration_s=1.0), stdout=stdout)


def test_a_reference_run_takes_what_the_fastest_of_its_passes_took() -> None:
    took = reference_time(evidence(BY_DATE))
    assert took is not None
    assert took.value_ns == 20e6
    assert took.passes_ns == (21e6, 20e6, 21e6)
    assert took.cores == "taskset c0"


def test_uptime_is_read_where_date_knows_no_nanoseconds() -> None:
    took = reference_time(evidence(BY_UPTIME))
    assert took is not None
    assert (took.value_ns, took.cores) == (100e6, "any")


def test_a_clock_that_was_set_during_a_pass_spoils_that_pass_only() -> None:
    text = (
        BY_DATE + "reference 4 1779870001390000000 1779870001390000001\nreference 4 1779870005000000000 1\n"
    )
    took = reference_time(evidence(text))
    assert took is not None
    assert took.value_ns == 20e6


@pytest.mark.parametrize(
    "text", ["", "reference 4 8 8\n", "reference 4 9 8\n", "reference_failed 1\n" + BY_DATE]
)
def test_a_reference_run_that_did_not_end_or_took_no_time_tells_nothing(text: str) -> None:
    assert reference_time(evidence(text)) is None


@given(st.text())
def test_whatever_a_phone_prints_a_reference_time_is_positive_or_none(text: str) -> None:
    for printed in (text, BY_DATE[: len(text) * 7] + text, "reference " + text):
        took = reference_time(evidence(printed))
        assert took is None or took.value_ns > 0


@given(st.integers(0, len(BY_DATE)))
def test_a_text_cut_anywhere_is_read_as_far_as_it_goes(length: int) -> None:
    took = reference_time(evidence(BY_DATE[:length].replace("\n", "\r\n")))
    assert took is None or took.value_ns > 0


def payload_of(folder: Path) -> tuple[Path, PlanFile]:
    path = folder / "payload"
    path.write_bytes(bytes(range(256)) * 64)
    digest = subprocess.run(["sha256sum", str(path)], capture_output=True, text=True, check=True).stdout[:64]
    return path, PlanFile(name="payload", digest=digest, size_bytes=path.stat().st_size)


def run_script(folder: Path, *, path: str) -> tuple[Evidence, PlanFile]:
    """Run the check as a phone does, in a folder of its own."""
    script = folder / "check"
    script.write_bytes(check_program())
    payload, file = payload_of(folder)
    done = subprocess.run(
        ["/bin/sh", str(script), str(payload)],
        cwd=folder,
        env={"PATH": path},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stderr == ""
    return evidence(done.stdout, done.returncode), file


SYSTEM = "/usr/bin:/bin"


def old_date(folder: Path) -> str:
    """A PATH on which date, like Android 8's, prints what it does not know."""
    tools = folder / "tools"
    tools.mkdir()
    date = tools / "date"
    date.write_text('#!/bin/sh\nformat=${1%"%N"}\necho "$(/bin/date "$format")N"\n')
    date.chmod(0o755)
    return f"{tools}:{SYSTEM}"


def test_the_script_passes_and_times_itself_in_nanoseconds(tmp_path: Path) -> None:
    done, payload = run_script(tmp_path, path=SYSTEM)
    program = PlanFile(name="program", digest="0" * 64, size_bytes=1, executable=True)
    assert failure(plan(program, payload), done) is None
    took = reference_time(done)
    assert took is not None
    assert done.stdout.count("reference ") == 5
    # On a busy machine one may take ten times as long as the others, and is left out.
    assert 3 <= len(took.passes_ns) <= 5
    assert "reference_clock date" in done.stdout


def test_the_script_goes_by_the_uptime_where_date_knows_no_nanoseconds(tmp_path: Path) -> None:
    done, _ = run_script(tmp_path, path=old_date(tmp_path))
    assert "reference_clock uptime" in done.stdout
    passes = [line.split() for line in done.stdout.splitlines() if line.startswith("reference ")]
    assert [count for _, count, *_ in passes] == ["24"] * 5 or [count for _, count, *_ in passes] == ["6"] * 5
    uptime_s = float(Path("/proc/uptime").read_text().split()[0])
    assert all(0 < int(end) / 1e9 <= uptime_s for *_, end in passes)


def test_a_phone_that_cannot_hash_its_cache_fails_its_check(tmp_path: Path) -> None:
    tools = tmp_path / "few"
    tools.mkdir()
    for name in ("cat", "wc", "rm", "date", "printf"):
        (tools / name).symlink_to(str(shutil.which(name)))
    script = tmp_path / "check"
    script.write_bytes(check_program())
    payload, file = payload_of(tmp_path)
    done = subprocess.run(
        ["/bin/sh", str(script), str(payload)],
        cwd=tmp_path,
        env={"PATH": str(tools)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    program = PlanFile(name="program", digest="0" * 64, size_bytes=1, executable=True)
    found = failure(plan(program, file), evidence(done.stdout, done.returncode))
    assert found is not None
    assert "payload_sha256 is missing" in found.message
