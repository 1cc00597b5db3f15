"""Listings as people see them, at 80 columns."""

import io
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
from rich.console import Console, RenderableType

from farm.cli.files.variant_report import variant_table
from farm.cli.jobs.job import job_headline
from farm.cli.matrices.matrix import submission_text
from farm.cli.matrices.plan import device_table
from farm.cli.matrices.rejections import rejections
from farm.cli.matrices.report import (
    cancellation,
    failures,
    job_table,
    matrix_report,
    matrix_table,
)
from farm.cli.shell import tables
from farm.core.base.ids import DeviceId
from farm.core.models.variant import Fidelity
from farm.core.runs.measurement import Better, CellSummary
from farm.presentation import text
from farm.wire.documents.matrices.matrices import CellView, MatrixView
from farm.wire.documents.matrices.plans import PlannedDevice
from farm.wire.documents.results.explain import JobDetail
from farm.wire.documents.results.results import MetricView
from tests.support.sample_views import (
    NOON,
    cell_view,
    job_view,
    matrix_view,
    progress,
    speedup_view,
    variant_view,
)

FIDELITY = Fidelity(inputs=8, correlation=0.987, max_difference=0.1, top1_share=1.0)


def shown(renderable: RenderableType, width: int = 80) -> list[str]:
    stream = io.StringIO()
    Console(file=stream, width=width, highlight=False).print(renderable)
    return [line.rstrip() for line in stream.getvalue().splitlines()]


def test_variants_show_size_and_digest() -> None:
    model, heading, row = shown(variant_table([variant_view()]), 120)
    assert model == "mobilenet_v2/  backends cpu, input 1x3x224x224 float32"
    assert heading.split() == ["variant", "size", "digest", "registered"]
    assert row.startswith("float32/torchscript  14.2 MB  277089d91c0b  ")


def test_at_80_columns_long_names_of_variants_are_wrapped_after_slashes_and_numbers_stay() -> None:
    model = "efficientnet_lite4_with_a_head_of_our_own_and_a_name_that_goes_on"
    views = [
        replace(variant_view(model=model, backends=backends, fidelity=fidelity), name=f"{model}/{label}")
        for label, backends, fidelity in (
            ("float32/tflite", ("cpu", "gpu"), None),
            ("int8-full/tflite/channels_last", ("cpu", "gpu", "nnapi", "xnnpack"), FIDELITY),
        )
    ]
    lines = shown(variant_table([*views, variant_view()]), 80)
    assert all(len(line) <= 80 for line in lines)
    assert [line.partition("277089d91c0b")[0].rstrip() for line in lines[:8]] == [
        f"{model}/  input",
        "1x3x224x224 float32",
        "variant             backends      fidelity     size        digest  registered",
        "float32/tflite      cpu, gpu             -  14.2 MB",
        lines[4],
        "int8-full/tflite/   cpu, gpu,        0.987  14.2 MB",
        lines[6],
        "                    xnnpack",
    ]
    assert lines[6].startswith("channels_last       nnapi,")
    assert lines[9] == "mobilenet_v2/  backends cpu, input 1x3x224x224 float32"


def test_names_are_wrapped_where_a_part_of_them_ends() -> None:
    table = tables.Listing[str](
        tables.name("harness", lambda row: row),
        tables.name("abi", lambda row: "x86_64"),
        tables.name("program", lambda row: f"{row} (expired)"),
        tables.number("size", lambda row: "12.0 kB"),
    )
    words = " ".join(shown(table(["speed_benchmark_torch"]), 56)[1:]).split()
    assert {"x86_64", "12.0", "kB", "(expired)"} <= set(words)
    assert all(
        word.endswith(("_", "torch")) for word in words if word.startswith(("speed", "bench", "torch"))
    )


def test_a_matrix_is_one_line_with_its_outcomes_in_order() -> None:
    heading, row = shown(matrix_table([matrix_view()]), 150)
    assert heading == "matrix  submitted         name  cells  rounds  jobs"
    assert row.endswith(
        "demo      8       5  running: 24 succeeded, 1 failed, 15 queued; 1 cell rejected;"
        " about 2 min 5 s left"
    )


def test_at_80_columns_a_matrix_with_a_long_name_is_a_few_lines() -> None:
    names = (
        "run mobilenet_v2/float32/torchscript/contiguous/cpu",
        "run my_bench --size 3 --threads 4 --input /data/input.bin",
    )
    views = [
        matrix_view(matrix_id=n, name=text, jobs_by_outcome={"queued": 300, "succeeded": 98}, rejected=0)
        for n, text in enumerate(names, 121)
    ]
    lines = shown(matrix_table(views), 80)
    assert all(len(line) <= 80 for line in lines)
    start = lines[0].index("name")
    first, second = (
        next(n for n, line in enumerate(lines) if line.startswith(f"{own} ")) for own in (121, 122)
    )
    assert second - first <= 4
    assert len(lines) - second <= 4
    own = [line[start : lines[0].index("cells")].strip() for line in lines]
    assert "".join(own[first:second]).replace(" ", "") == names[0].replace(" ", "")
    assert "mobilenet_v2/" in own[first]
    # No flag and no path is broken behind its first character.
    assert not any(line.endswith((" -", " --", " /")) for line in own)
    jobs = " ".join(line[lines[0].index("jobs") :].strip() for line in lines[first:second]).strip()
    assert jobs == "running: 98 succeeded, 300 queued; about 2 min 5 s left"


def test_at_80_columns_a_long_label_is_wrapped_and_the_time_stays() -> None:
    label = "mobilenet_v2 int8-core torchscript channels_last threads=4 cpu"
    lines = shown(matrix_report(matrix_view(cell_list=(cell_view(label=label),))), 80)
    (row,) = (line for line in lines if line.startswith("1     mobilenet_v2"))
    assert row.endswith("43.1 ms")
    table = lines[lines.index(row) - 1 : lines.index(row) + 8]
    assert all(word in " ".join(table) for word in label.split())


def test_a_table_that_is_too_wide_breaks_no_word_and_no_number() -> None:
    values = {
        "device_id": "virtual-6841-0",
        "device_label": "bench-left",
        "device_model": "virtual phone (x86_64)",
        "soc": "AMD EPYC",
        "virtual": True,
        "cells": 3,
        "jobs": 15,
        "max_jobs": 15,
        "max_device_s": 1800,
        "device_s": 1800,
        "cells_by_basis": {"timeout": 3},
        "jobs_ahead": 0,
        "waiting_for": ["the host's agent is not connected"],
    }
    devices = [
        PlannedDevice.model_validate({**values, "device_label": label}) for label in ("bench-left", None)
    ]
    lines = shown(device_table(devices), 80)
    words = {"bench-left", "virtual-6841-0", "(x86_64),", "connected", "min", "queued", "ahead"}
    assert words <= set(" ".join(lines).split())
    assert sum("at most 30 min 0 s" in line for line in lines) == 2


def test_cells_of_a_model_have_short_labels_below_what_they_share() -> None:
    def cells(model: str, numbers: Sequence[int]) -> Iterator[CellView]:
        for number, (device, label) in zip(
            numbers, [("phone-1", None), ("phone-2", "bench right")], strict=True
        ):
            for precision in ("float32", "int8-core"):
                yield cell_view(
                    cell_id=number,
                    device_id=device,
                    device_label=label,
                    label=f"{model} {precision} lite threads=4",
                    model=model,
                    precision=precision,
                    changed_settings={"threads": 4, "iter": 30},
                    problems={},
                )

    view = matrix_view(
        cells=8,
        cell_list=[*cells("resnet50", (1, 2)), *cells("mobilenet_v2", (3, 4))],
        state="finished",
        finished_at=NOON,
    )
    lines = shown(matrix_report(view), 80)
    start = lines.index("resnet50, lite, backend cpu, with iter=30, threads=4")
    assert lines[start : start + 6] == [
        "resnet50, lite, backend cpu, with iter=30, threads=4",
        "cell  device       what       jobs                   quality     time",
        "1     phone-1      float32    4 succeeded, 1 failed  4 valid  43.1 ms",
        "1     phone-1      int8-core  4 succeeded, 1 failed  4 valid  43.1 ms",
        "2     bench right  float32    4 succeeded, 1 failed  4 valid  43.1 ms",
        "2     bench right  int8-core  4 succeeded, 1 failed  4 valid  43.1 ms",
    ]
    assert "mobilenet_v2, lite, backend cpu, with iter=30, threads=4" in lines


def test_metrics_that_a_matrix_names_are_below_its_cells() -> None:
    level = CellSummary(rounds=5, median=12.5, low=12.0, high=13.0, ci_low=None, ci_high=None)
    metric = MetricView(name="memory_peak", unit="MB", better=Better.LOWER, level=level)
    lines = shown(matrix_report(matrix_view(cell_list=[cell_view(metrics=[metric])])), 80)
    assert "memory_peak  12.5 MB    12 to 13  lower" in lines


def test_progress_jobs_and_failures_name_devices_by_label() -> None:
    view = matrix_view(
        progress=[progress(device_label="bench left")], cell_list=[cell_view(device_label="bench left")]
    )
    lines = shown(matrix_report(view), 120)
    assert "bench left: 12 of 20, running float32 lite" in lines
    assert "bench left, float32 lite: 1 failed (the program died of signal 11)" in lines
    assert "bench left" in shown(job_table([job_view(device_label="bench left")]), 140)[1]
    assert job_headline_of("bench left") == "job 7 on bench left: float32 torchscript, failed"


def job_headline_of(label: str) -> str:
    detail = {"matrix": "demo", "cell_id": 1, "created_at": NOON, "finished_at": NOON}
    view = {**dict(job_view(device_label=label)), **detail, "attempt_list": (), "run": None}
    return job_headline(JobDetail.model_validate(view))


def test_what_became_of_a_submission_counts_properly() -> None:
    assert submission_text(matrix_view()) == "Matrix 3 (demo): 40 jobs, 1 cell rejected."
    assert submission_text(matrix_view(jobs=1, rejected=0)) == "Matrix 3 (demo): 1 job."


def test_a_job_says_why_it_failed_with_its_code_and_brackets_as_they_are() -> None:
    text = shown(job_table([job_view()]), 140)[1]
    assert text.endswith("the program died of signal 11 [SIGSEGV] [run.crashed]")
    assert "phone-1  1      failed  9, 12     float32 torchscript" in text


def test_a_running_matrix_shows_progress_cells_and_what_went_wrong() -> None:
    assert shown(matrix_report(matrix_view()), 120) == [
        "matrix 3 (demo): running",
        "8 cells x 5 rounds with speed_benchmark_torch, 40 jobs: 24 succeeded, 1 failed, 15 queued; "
        "about 2 min 5 s left",
        "phone-1: 12 of 20, running float32 lite",
        "phone-2: 12 of 20, waiting: another device on the same CPU is busy",
        "",
        "mobilenet_v2, float32, lite, backend cpu, on phone-1",
        "cell  what          jobs                   quality     time",
        "1     float32 lite  4 succeeded, 1 failed  4 valid  43.1 ms",
        "Only 1 of 8 cells are shown.",
        "time = median over rounds; `farm speedups` compares geometric means, which differ from it.",
        "phone-1, float32 lite: 1 failed (the program died of signal 11)",
        "float32 lite on phone-2: no jobs, excluded",
    ]


def test_a_finished_matrix_shows_no_progress() -> None:
    view = matrix_view(finished_at=matrix_view().created_at, state="finished", eta_s=None)
    assert not any("12 of 20" in line for line in shown(matrix_report(view)))


def test_what_went_wrong_in_a_cell_is_one_line_however_often_it_did() -> None:
    problems = {"noisy: spans 30 %": 1, "noisy: spans 40 %": 2, "failed: signal 11": 1}
    cell = cell_view(measurements_by_quality={"valid": 1, "noisy": 3}, problems=problems)
    said = "phone-1, float32 lite: 1 failed, 3 noisy (noisy: spans 40 %; 2 other reasons)"
    assert list(failures(matrix_view(cell_list=(cell,), rejected=0, rejected_list=()))) == [said]


def test_a_rejection_on_every_device_names_none() -> None:
    cell = {
        "device_id": None,
        "device_label": None,
        "label": "int8-core",
        "kind": "unsupported",
        "reason": "not converted",
    }
    view = matrix_view(cell_list=(), rejected_list=[cell])
    assert list(failures(view)) == ["int8-core: no jobs, not converted"]


def test_a_cell_without_its_file_is_a_row_that_is_not_run() -> None:
    cell = {
        "device_id": None,
        "device_label": None,
        "label": "int8-core",
        "kind": "no_variant",
        "reason": "it is not registered",
    }
    view = matrix_view(rejected_list=[cell])
    assert shown(matrix_report(view), 120)[-4:] == [
        "",
        "cell       result   why",
        "int8-core  not run  it is not registered",
        "phone-1, float32 lite: 1 failed (the program died of signal 11)",
    ]
    assert list(rejections(view)) == ["int8-core: not run, it is not registered"]


def test_cells_that_do_not_run_for_one_reason_are_named_together() -> None:
    def rejected(label: str, device: str | None, reason: str) -> dict[str, object]:
        kind = "no_variant" if "registered" in reason else "no_program"
        return {
            "device_id": device,
            "device_label": None,
            "label": label,
            "kind": kind,
            "reason": reason,
        }

    cells = [
        rejected(f"{precision} {backend}", device, reason)
        for precision, device, reason in (
            ("int4", None, "net/int4 is not registered"),
            ("int8", "phone-1", "no program"),
            ("int8", "phone-2", "no program"),
        )
        for backend in ("cpu", "nnapi")
    ]
    view = matrix_view(cell_list=(), rejected=7, rejected_list=cells)
    assert list(rejections(view)) == [
        "int4 cpu, int4 nnapi: not run, net/int4 is not registered",
        "int8 cpu, int8 nnapi on phone-1, phone-2: no jobs, no program",
        "1 more: GET /api/v1/matrices/3/rejected?after=INDEX returns all",
    ]


@pytest.mark.parametrize("width", [80, 120, 200])
def test_no_listing_cuts_anything_off(width: int) -> None:
    tables: Sequence[RenderableType] = [
        variant_table([variant_view()]),
        matrix_table([matrix_view()]),
        job_table([job_view()]),
        matrix_report(matrix_view()),
    ]
    assert not any("…" in line for table in tables for line in shown(table, width))


def test_doing_says_done_running_waiting_or_about_to_start() -> None:
    from farm.cli.matrices.report import current_work

    assert current_work(progress()) == "running float32 lite"
    assert current_work(progress(finished=20, current=None)) == "done"
    assert current_work(progress(finished=20, cancelled=8, current=None)) == "8 cancelled"
    assert current_work(progress(current=None, waiting_for=("a", "b"))) == "waiting: a"
    assert current_work(progress(current=None)) == "starting the next job"


def test_change_names_a_shared_unit_once() -> None:
    assert text.change_text(43.1e6, 18.7e6) == "43.1 → 18.7 ms"
    assert text.change_text(1.0e9, 98.3e6) == "1.00 s → 98.3 ms"
    assert text.change_text(None, 98.3e6) == "- → 98.3 ms"


def test_counts_leave_out_what_did_not_happen() -> None:
    assert text.counts_text({"queued": 2, "failed": 0, "succeeded": 1}) == "1 succeeded, 2 queued"
    assert text.counts_text({}) == "-"


def test_views_of_tests_are_views_of_the_wire() -> None:
    assert MatrixView.model_validate_json(matrix_view().model_dump_json()) == matrix_view()
    assert speedup_view().verdict == "faster"
    assert cell_view().value_ns == 43_100_000.0


def test_what_a_cancellation_will_do_is_said_before_it_is_done() -> None:
    view = matrix_view()
    assert cancellation(view, None) == (
        "Cancelling matrix 3 (demo): 15 jobs will not start; stopped on phone-1: float32 lite."
        " Finished jobs are kept."
    )
    assert cancellation(view, DeviceId("phone-2")) == (
        "Cancelling matrix 3 (demo): 8 jobs will not start. Finished jobs are kept."
    )
