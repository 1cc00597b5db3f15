"""Results of ExecuTorch's benchmark apps.

Version 3 of the records of PyTorch's benchmark database has benchmark, model, metric and runners
(`.github/scripts/extract_benchmark_results.py` of pytorch/executorch makes them); the Android app itself
writes flat ones with `actualValue`.
"""

import re
from collections.abc import Sequence
from statistics import median

from farm.core.errors import InvalidInput
from farm.harness.external.json_document import JsonRecord
from farm.harness.external.results import ExternalFile, ExternalResult, ImportFormat, Statistic

#: As in `avg_inference_latency(ms)`.
_UNIT = re.compile(r"\(([A-Za-z/%]{1,20})\)$")
_FAILED = "FAILURE_REPORT"
#: A code of the app, 0 where the model was loaded.
_NO_MEASUREMENT = "load_status"


def is_executorch(first: JsonRecord) -> bool:
    """Tell whether the first record is one of these."""
    is_record = all(name in first for name in ("benchmark", "model", "metric"))
    return is_record or ("actualValue" in first and "benchmarkModel" in first)


def executorch_file(records: Sequence[JsonRecord]) -> ExternalFile:
    """Return the results; records of runs that failed are left out.

    Raises:
        InvalidInput: a record is of another version, or has no metric or value.
    """
    results, notes = [], []
    for record in records:
        if "actualValue" in record and record.text("metric") == _NO_MEASUREMENT:
            notes.append(f"{record.place} is left out: {_NO_MEASUREMENT} is a code, no measurement")
        elif "actualValue" in record:
            results.append(_of_app(record))
        elif record.record("metric").text("name") == _FAILED:
            notes.append(f"{record.place} is left out: it reports a run that failed")
        else:
            results.append(_of_database(record))
    return ExternalFile(format=ImportFormat.EXECUTORCH, results=tuple(results), notes=tuple(notes))


def _of_database(record: JsonRecord) -> ExternalResult:
    version = record.text("schema_version")
    if version not in (None, "v3"):
        raise InvalidInput(
            f"{record.place}: records of {version} are not read, only those of v3", hint="convert it"
        )
    benchmark, model, metric = (record.record(name) for name in ("benchmark", "model", "metric"))
    values = metric.numbers("benchmark_values")
    if not values:
        raise metric.wrong("benchmark_values", "a list with a value")
    runners = record.records("runners")
    runner = runners[0] if runners else JsonRecord(place="", fields={})
    name = _metric_name(metric, "name")
    return ExternalResult(
        tool=benchmark.text("name") or "ExecuTorch",
        tool_version=record.text("head_sha"),
        model=model.text("name"),
        backend=model.text("backend"),
        device=runner.text("name"),
        os=runner.text("type"),
        metric=name,
        value=values[0] if len(values) == 1 else median(values),
        unit=_unit(name),
        statistic=_statistic(name) if len(values) == 1 else Statistic.MEDIAN,
        sample_count=len(values) if len(values) > 1 else None,
        samples=values if len(values) > 1 else (),
        date=_timestamp(record),
        settings=benchmark.told("mode", "dtype") | model.told("type"),
    )


def _timestamp(record: JsonRecord) -> str | None:
    at = record.fields.get("timestamp")
    return str(at) if isinstance(at, int) and not isinstance(at, bool) else record.text("timestamp")


def _of_app(record: JsonRecord) -> ExternalResult:
    model, device = record.record("benchmarkModel"), record.record("deviceInfo")
    name, value = _metric_name(record, "metric"), record.number("actualValue")
    if value is None:
        raise record.wrong("actualValue", "a number")
    maker, device_model = device.text("device"), device.text("arch")
    return ExternalResult(
        tool="ExecuTorch",
        model=model.text("name"),
        backend=model.text("backend"),
        device=" ".join(word for word in (maker, device_model) if word) or None,
        os=device.text("os"),
        metric=name,
        value=value,
        unit=_unit(name),
        statistic=_statistic(name),
        settings=model.told("quantization") | record.told("method"),
    )


def _metric_name(record: JsonRecord, field: str) -> str:
    name = record.text(field)
    if name is None:
        raise record.wrong(field, "the name of a metric")
    return name


def _unit(name: str) -> str | None:
    match = _UNIT.search(name)
    return match[1] if match else None


def _statistic(name: str) -> Statistic:
    return Statistic.MEAN if name.startswith("avg_") else Statistic.VALUE
