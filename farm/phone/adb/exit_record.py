"""The exit record that the supervisor on the device writes when a run has ended."""

from farm.core.runs.evidence import ExitRecord
from farm.phone.adb.decoding import decimal_number, lines, whole_number

#: The kernel shows CPU time in steps of 10 ms (USER_HZ), whatever its own tick is.
_STEPS_PER_S = 100


def exit_record(text: str) -> ExitRecord | None:
    """Parse the record; None when it is missing or incomplete."""
    values = dict(line.split("=", 1) for line in lines(text) if "=" in line)
    code = whole_number(values.get("code", ""))
    started_s, ended_s = (
        decimal_number(values.get("started_s", "")),
        decimal_number(values.get("ended_s", "")),
    )
    if code is None or started_s is None or ended_s is None:
        return None
    return ExitRecord(
        code=code,
        timed_out=values.get("timed_out") == "1",
        duration_s=round(ended_s - started_s, 2),
        cpu_s=_cpu_s(values.get("cpu_steps", "")),
    )


def _cpu_s(steps: str) -> float | None:
    """Parse the CPU time; None where the supervisor is older, or could not read it."""
    number = whole_number(steps)
    return None if number is None or number < 0 else number / _STEPS_PER_S
