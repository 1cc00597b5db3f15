"""Measurements that XCTest prints, among them those of ExecuTorch's Benchmark app for Apple's platforms.

A line names the test, the metric with its unit, the average and all values. Tests of that app are called
`test_forward_MODEL_pte_iOS_17_2_1_iPhone15_4`.
"""

import re
from collections.abc import Iterator

from farm.harness.external.results import ExternalFile, ExternalResult, ImportFormat, Statistic, Told

_MEASURED = re.compile(
    r"Test Case '-\[([^\]\n]{1,300})\]' measured \[([^\]\n]{1,200})\] average: ([0-9.]{1,30}),"
    r" relative standard deviation: ([0-9.]{1,30})%, values: \[([0-9., eE+-]{0,20000})\]"
)
_OF_APP = re.compile(r"test_(forward|load|generate)_([\w+]{1,200}?)_pte")
_DEVICE = re.compile(r"_iOS_([0-9_]{1,20})_(iPhone[0-9_]{1,20})")


def find_xctest(text: str) -> ExternalFile | None:
    """Return the measurements of a log; None where there is none. Lines that are doubled count once."""
    results = tuple(dict.fromkeys(match.groups() for match in _MEASURED.finditer(text)))
    found = tuple(result for groups in results for result in _results(*groups))
    return ExternalFile(format=ImportFormat.XCTEST, results=found) if found else None


def _results(test: str, metric: str, average: str, deviation: str, values: str) -> Iterator[ExternalResult]:
    try:
        mean, percent = float(average), float(deviation)
        samples = tuple(float(value) for value in values.split(",") if value.strip())
    except ValueError:
        # Cut within a number, or printed by something else.
        return
    name, separator, unit = metric.rpartition(", ")
    settings: dict[str, Told] = {"test": test}
    model = of_device = None
    if (of_app := _OF_APP.search(test)) is not None:
        settings["method"], model = of_app[1], of_app[2]
        of_device = _DEVICE.search(test)
    yield ExternalResult(
        tool="XCTest",
        model=model,
        device=of_device[2] if of_device else None,
        os=f"iOS {of_device[1].replace('_', '.')}" if of_device else None,
        metric=name if separator else metric,
        value=mean,
        unit=(("s" if unit == "seconds" else unit) if separator else None),
        statistic=Statistic.MEAN,
        deviation=mean * percent / 100,
        samples=samples,
        sample_count=len(samples) or None,
        settings=settings,
    )
