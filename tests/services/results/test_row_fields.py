"""What rows of cells, results and comparisons say of device, model file, program and metrics."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from farm.core.base.ids import AttemptId, JobId
from farm.core.errors import MatrixInvalid
from farm.core.results.metric_comparison import MetricComparison
from farm.core.runs.evidence import Evidence, ExitRecord
from farm.core.runs.measurement import Better
from farm.database.transaction import bind_tx
from farm.services.devices.admin import change_label
from farm.services.matrices.plan import plan_matrix
from farm.services.matrices.views import list_job_views, list_matrix_summaries, matrix_view
from farm.services.results.cells import list_results
from farm.services.results.explanations.attempts import attempt_view
from farm.services.results.explanations.jobs import job_detail
from farm.services.results.history.latest_speedups import list_latest_speedups
from farm.services.results.placements import list_placements
from farm.services.results.speedups.listing import list_speedups
from farm.store.files.programs import current_programs
from farm.store.files.variants import list_variants
from farm.wire.agents.protocol import Assignment
from farm.wire.documents.devices import LabelRequest
from farm.wire.documents.matrices.jobs import AttemptView
from farm.wire.documents.matrices.matrix import matrix_spec
from tests.services.matrices.test_generic_harness import MATRIX, answer, register
from tests.support.database.sent_statements import sent_to
from tests.support.farm.points import compute_points
from tests.support.farm.service_fixture import FarmRig, HostRig, good_evidence

LABELS = {"phone-1": "bench left", "phone-2": None}


def put_label(farm: FarmRig, device: str, label: str) -> None:
    farm.write(bind_tx(change_label, now=farm.clock.now()), device, LabelRequest(by="ann", label=label))


@pytest.fixture
def labelled(farm: FarmRig, host: HostRig) -> FarmRig:
    put_label(farm, "phone-1", "bench left")
    return farm


def test_every_row_about_a_device_has_its_label(labelled: FarmRig, host: HostRig) -> None:
    excluded: dict[str, Any] = {"exclude": [{"precision": "int8-core"}], "baseline": None}
    matrix_id = labelled.submit(rounds=1)
    labelled.submit(**excluded, rounds=1)
    host.run(good_evidence)
    view = labelled.matrix(matrix_id)
    spec = matrix_spec(
        {
            "name": "plan",
            "harness": "speed_benchmark_torch",
            "axes": {
                "model": "mobilenet_v2",
                "precision": "float32",
                "format": "torchscript",
                "backend": "cpu",
            },
            "devices": {"device": "phone-2"},
        }
    )
    plan = labelled.read(plan_matrix, spec)
    rows = [
        *view.cell_list,
        *view.progress,
        *labelled.read(list_results, matrix_id),
        *labelled.read(list_speedups, matrix_id),
        *labelled.read(list_latest_speedups),
        *labelled.read(list_job_views, matrix_id),
        *labelled.read(list_placements),
        *plan.devices,
        *plan.left_out,
        *plan.cell_list,
        *(
            labelled.read(job_detail, JobId(row["job_id"]))
            for row in labelled.rows("SELECT job_id FROM jobs")
        ),
        *(
            labelled.read(attempt_view, AttemptId(row["attempt_id"]))
            for row in labelled.rows("SELECT attempt_id FROM attempts")
        ),
    ]
    assert {row.device_id for row in rows} == LABELS.keys()
    assert [row for row in rows if row.device_label != LABELS[row.device_id]] == []


def test_devices_without_a_known_pace_are_named_by_their_labels(labelled: FarmRig, host: HostRig) -> None:
    matrix_id = labelled.submit(rounds=1)
    view = labelled.matrix(matrix_id)
    assert (view.without_eta, view.without_eta_names) == (("phone-1", "phone-2"), ("bench left", "phone-2"))
    (summary,) = labelled.read(bind_tx(list_matrix_summaries, now=labelled.clock.now()))
    assert summary.without_eta_names == view.without_eta_names


def test_results_and_speedups_have_what_was_run_as_fields(farm: FarmRig, host: HostRig) -> None:
    matrix_id = farm.submit()
    host.run(good_evidence)
    digests = {
        str(variant.manifest.recipe.precision): variant.manifest.digest
        for variant in farm.read(list_variants)
    }
    program_digests = {
        program.digest for program in farm.read(current_programs, "speed_benchmark_torch").values()
    }
    results = farm.read(list_results, matrix_id)
    (speedup,) = (view for view in farm.speedups(matrix_id) if view.device_id == "phone-1")
    rows = [*farm.matrix(matrix_id).cell_list, *results, speedup, speedup.baseline_setup]
    for row in rows:
        assert row.precision is not None
        assert (row.model, row.format, row.backend) == ("mobilenet_v2", "torchscript", "cpu")
        assert (row.memory_format, row.target) == ("contiguous", "cpu")
        assert row.variant == f"mobilenet_v2/{row.precision}/torchscript"
        assert row.variant_digest == digests[row.precision]
        assert row.program_digest in program_digests
        assert (row.changed_settings, row.settings["iter"], row.settings["warmup"]) == ({"iter": 5}, 5, 5)
    assert (speedup.baseline_setup.precision, speedup.precision) == ("float32", "int8-core")


def test_a_precision_of_ones_own_is_a_field_like_a_known_one(farm: FarmRig, host: HostRig) -> None:
    farm.variant("w8a16")
    axes = {"model": "mobilenet_v2", "precision": ["w8a16", "float32"], "format": "torchscript"}
    matrix_id = farm.submit(axes={**axes, "backend": "cpu"})
    host.run(good_evidence)
    view = farm.speedups(matrix_id)[0]
    assert (view.precision, view.baseline_setup.precision) == ("w8a16", "float32")
    assert view.variant == "mobilenet_v2/w8a16/torchscript"


def test_without_a_model_the_fields_of_its_file_are_empty(farm: FarmRig, host: HostRig) -> None:
    register(farm)
    farm.submit(**MATRIX, rounds=1)
    host.run(answer)
    view = farm.speedups()[0]
    fields = ("model", "variant", "precision", "format", "memory_format", "target", "variant_digest")
    assert {getattr(side, name) for side in (view, view.baseline_setup) for name in fields} == {None}
    assert (view.harness, view.backend, view.baseline_setup.backend) == ("bench", "gpu", "cpu")


def test_metrics_that_a_matrix_names_are_in_its_cells_and_comparisons(farm: FarmRig, host: HostRig) -> None:
    register(farm)
    named = farm.submit(**MATRIX, metrics=["memory"])
    plain = farm.submit(**MATRIX)
    host.run(answer)
    assert farm.matrix(named).metrics == ("memory",)
    cell = farm.matrix(named).cell_list[0]
    assert [(metric.name, metric.level.median, metric.level.rounds) for metric in cell.metrics] == [
        ("memory", 12.5, 5)
    ]
    compared = MetricComparison(
        name="memory", unit="MB", better=Better.LOWER, baseline=12.5, candidate=12.5, ratio=1.0
    )
    assert {view.metrics for view in farm.speedups(named)} == {(compared,)}
    assert {view.metrics for view in farm.speedups(plain)} == {()}
    assert {cell.metrics for cell in farm.matrix(plain).cell_list} == {()}


def test_a_metric_that_the_harness_does_not_print_is_refused_with_a_suggestion(
    farm: FarmRig, host: HostRig
) -> None:
    register(farm)
    with pytest.raises(MatrixInvalid, match=r"metrics\[0\]: bench prints no metric `memmory`") as refused:
        farm.submit(**MATRIX, metrics=["memmory"])
    assert refused.value.hint == "did you mean `memory`?"
    with pytest.raises(MatrixInvalid, match="metrics: `memory` is there twice"):
        farm.submit(**MATRIX, metrics=["memory", "memory"])
    with pytest.raises(MatrixInvalid, match="speed_benchmark_torch prints no metric `memory`") as refused:
        farm.submit(metrics="memory")
    assert refused.value.hint == (
        "known here: battery_energy, external_energy, load_time, memory_median_rss, memory_peak_rss,"
        " memory_peak_swap, rails_energy"
    )


def sampled(assignment: Assignment, samples: str) -> Evidence:
    """A run from 100 to 101.2 s of uptime; the inferences take some hundredths of a second."""
    trace = f"trace 1\npause 0.5\nstart 100.00\ncolumns rss swap peak\n{samples}end 101.20\n"
    return replace(good_evidence(assignment), trace=trace, exit=ExitRecord(code=0, duration_s=1.2))


def last_attempt(farm: FarmRig) -> AttemptView:
    (row,) = farm.rows("SELECT max(attempt_id) AS attempt_id FROM measurements")
    return farm.read(attempt_view, row["attempt_id"])


def test_memory_is_a_metric_that_matrices_name(farm: FarmRig, host: HostRig) -> None:
    matrix_id = farm.submit(metrics=["memory_peak_rss", "memory_median_rss", "memory_peak_swap"])
    host.run(partial(sampled, samples="s 100.01 900 0 900 .\ns 101.20 60000 0 80000 .\n"))
    levels = {
        metric.name: metric.level.median
        for row in farm.read(list_results, matrix_id)
        for metric in row.metrics
    }
    peak, median = 80_000 * 1024, 60_000 * 1024
    assert levels == {"memory_peak_rss": peak, "memory_median_rss": median, "memory_peak_swap": 0}
    (compared,) = {view.metrics for view in farm.speedups(matrix_id)}
    assert [(each.name, each.unit, each.baseline, each.ratio) for each in compared] == [
        ("memory_peak_rss", "bytes", peak, pytest.approx(1.0)),
        ("memory_median_rss", "bytes", median, pytest.approx(1.0)),
        # Nothing was swapped out on either side: there is no ratio of that.
        ("memory_peak_swap", "bytes", 0, None),
    ]


def test_a_run_that_ended_before_a_sample_has_no_peak_and_says_so(farm: FarmRig, host: HostRig) -> None:
    matrix_id = farm.submit(metrics=["memory_peak_rss"])
    host.run(partial(sampled, samples="s 100.01 900 0 900 .\n"))
    view = last_attempt(farm)
    assert "no memory_peak_rss: the measured part was too short for a sample" in view.notices
    assert {row.metrics for row in farm.read(list_results, matrix_id)} == {()}


def test_more_cells_take_no_more_statements(farm: FarmRig, host: HostRig) -> None:
    register(farm)
    few = farm.submit(**{**MATRIX, "devices": {"device": "phone-1"}}, rounds=1, metrics=["memory"])
    # Other cells than those of the first: a past takes statements for each earlier matrix.
    sizes = {"axes": {"backend": ["cpu", "gpu"], "size": [2, 3, 4, 5]}, "baseline": {"backend": "cpu"}}
    many = farm.submit(**{**MATRIX, **sizes, "settings": {}}, rounds=1, metrics=["memory"])
    host.run(answer)
    compute_points(farm)
    put_label(farm, "phone-1", "bench left")
    put_label(farm, "phone-2", "bench right")
    view = bind_tx(matrix_view, now=farm.clock.now())
    for service in (view, list_results, list_speedups, list_job_views):
        assert executed(farm, service, many) == executed(farm, service, few)


def executed(farm: FarmRig, service: Callable[..., object], *args: object) -> int:
    """The number of statements of a service."""
    with sent_to(farm.database.engine) as executed:
        farm.read(service, *args)
    return len(executed)
