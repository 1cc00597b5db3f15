"""What the supervisor on the phone writes down when a run has ended."""

from farm.core.evidence import ExitRecord
from farm.phone.text import decimal_number, lines, whole_number


def exit_record(text: str) -> ExitRecord | None:
    """The record; None when it is missing or not whole."""
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
    )
