"""Results of the MLPerf mobile app: its JSON of one session.

`flutter/documentation/result-spec.md` of mlcommons/mobile_app_open has the fields. It does not say the unit
of a throughput.
"""

from collections.abc import Iterator
from functools import partial

from farm.harness.external.json_document import JsonRecord
from farm.harness.external.results import ExternalFile, ExternalResult, ImportFormat, Statistic


def is_mlperf_mobile(record: JsonRecord) -> bool:
    """Tell whether a document is one of these."""
    return all(name in record for name in ("results", "environment_info", "build_info"))


def mlperf_mobile_file(document: JsonRecord) -> ExternalFile:
    """Return throughput and accuracy of each benchmark; a run that has neither is left out.

    Raises:
        InvalidInput: a field is something else.
    """
    results = tuple(
        result
        for benchmark in document.records("results")
        for name in ("performance_run", "accuracy_run")
        for result in _results(document, benchmark, name)
    )
    return ExternalFile(format=ImportFormat.MLPERF_MOBILE, results=results)


def _results(document: JsonRecord, benchmark: JsonRecord, name: str) -> Iterator[ExternalResult]:
    run = benchmark.record(name)
    backend, chosen = benchmark.record("backend_info"), benchmark.record("backend_settings")
    build, system = document.record("build_info"), _system(document.record("environment_info"))
    os_name, os_version = system.text("os") or system.text("platform"), system.text("os_version")
    version, commit = build.text("version"), build.text("git_commit")
    result = partial(
        ExternalResult,
        tool="MLPerf mobile app",
        tool_version=f"{version} ({commit})" if version and commit else version,
        model=benchmark.text("benchmark_name") or benchmark.text("benchmark_id"),
        device=system.text("model_name") or system.text("model_code"),
        os=" ".join(word for word in (os_name, os_version) if word) or None,
        backend=" ".join(
            word for word in (backend.text("backend_name"), backend.text("accelerator_name")) if word
        )
        or None,
        statistic=Statistic.VALUE,
        sample_count=run.count("measured_samples"),
        date=run.text("start_datetime"),
        settings=benchmark.told("benchmark_id", "loadgen_scenario")
        | chosen.told("accelerator_code", "configuration", "framework", "batch_size")
        | run.record("loadgen_info").told("validity"),
    )
    throughput = run.number("throughput")
    if throughput is not None and name == "performance_run":
        yield result(metric="throughput", value=throughput, unit=None)
    for accuracy in ("accuracy", "accuracy2"):
        share = run.record(accuracy).number("normalized")
        # The app writes -1 where the data set has no truth to compare with.
        if share is not None and share >= 0:
            yield result(metric=f"{name.removesuffix('_run')} {accuracy}", value=share, unit="of 1")


def _system(environment: JsonRecord) -> JsonRecord:
    """Return what is known of the device: since version 2 of the app it is below its platform."""
    platform = environment.fields.get("platform")
    if not isinstance(platform, str):
        return environment
    inner = environment.record("value").record(platform.lower())
    return JsonRecord(place=inner.place, fields={"platform": platform, **inner.fields})
