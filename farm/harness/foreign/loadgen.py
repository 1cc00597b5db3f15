"""The summary that MLPerf's LoadGen writes; all its times are in nanoseconds."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from farm.harness.base.output_lines import plain_lines

_FIELD = re.compile(r"([A-Za-z0-9][\w ./()]{0,60}?)\s*:\s*(\S.{0,60}?)\s*$")
_PERCENTILE = re.compile(r"([0-9]{1,3}\.[0-9]{2}) percentile latency \(ns\)")
_FIRST = "SUT name"
_NUMBER = re.compile(r"[0-9]{1,18}(?:\.[0-9]{1,9})?")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadgenSummary:
    """One run of a benchmark."""

    system: str
    scenario: str
    mode: str
    valid: bool
    min_ns: float | None
    max_ns: float | None
    mean_ns: float | None
    #: By percent: 90.0 is what SingleStream is judged by.
    percentile_ns: Mapping[float, float]
    queries_per_s: float | None


def loadgen_summary(text: str) -> LoadgenSummary | None:
    """Read a summary; None where the text is none."""
    fields: dict[str, str] = {}
    for line in plain_lines(text):
        if (match := _FIELD.match(line)) is not None:
            # What a second summary adds is not of the first.
            if match[1] == _FIRST and _FIRST in fields:
                break
            fields.setdefault(match[1], match[2])
    if "Result is" not in fields or "Scenario" not in fields:
        return None
    percentiles = {
        float(match[1]): value
        for name in fields
        if (match := _PERCENTILE.fullmatch(name)) and (value := _number(fields.get(name))) is not None
    }
    return LoadgenSummary(
        system=fields.get("SUT name", ""),
        scenario=fields["Scenario"],
        mode=fields.get("Mode", ""),
        valid=fields["Result is"] == "VALID",
        min_ns=_number(fields.get("Min latency (ns)")),
        max_ns=_number(fields.get("Max latency (ns)")),
        mean_ns=_number(fields.get("Mean latency (ns)")),
        percentile_ns=percentiles,
        queries_per_s=_number(fields.get("QPS w/o loadgen overhead")),
    )


def _number(text: str | None) -> float | None:
    return float(text) if text is not None and _NUMBER.fullmatch(text) else None
