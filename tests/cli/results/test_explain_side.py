"""One cell of an explanation: what a reader must not miss is there, and only what is known."""

from dataclasses import replace

from farm.cli.results.explain import device_lines, peak_text, side_lines
from farm.cli.shell.tables import text_lines
from farm.core.base.ids import CellId, DeviceId, digest_of
from farm.core.devices.condition import ConditionRange
from farm.core.devices.cpu_peak import PeakShare
from farm.core.devices.device import DeviceFacts
from farm.core.models.variant import Fidelity, Format, Precision, Recipe
from farm.wire.documents.results.explain import (
    DeviceBuild,
    ExplainedDevice,
    MeasurementView,
    PlacementView,
    ProgramFacts,
    SideView,
)
from tests.support.sample_views import manifest


def side(**changes: object) -> SideView:
    return SideView.model_validate(
        {
            "cell_id": CellId(12),
            "label": "int8-core",
            "variant": "net/int8-core/lite",
            "manifest": manifest(
                recipe=Recipe(precision=Precision.INT8_CORE, format=Format.LITE),
                fidelity=Fidelity(inputs=8, correlation=0.98765, max_difference=0.25, top1_share=0.875),
                built_with={"torch": "2.13.0"},
            ),
            "program": ProgramFacts(
                harness="h", abi="any", digest=digest_of(b"p"), files=2, size_bytes=2000, clock_covers="all"
            ),
            "backend": "nnapi",
            "placements": (
                PlacementView(actual_backend="cpu", accelerator="cpu", runs=3, proof="line 7", proofs=3),
            ),
            "settings": {"iter": 5},
            "changed_settings": {},
            "jobs_by_outcome": {"succeeded": 3},
            "runs_by_quality": {"fallback": 3},
            "quality_reasons": {"nnapi was asked for, cpu on cpu ran": 3},
            "parser_versions": (2, 3),
            "conditions": (),
            "runs_without_evidence": 0,
            "runs": (),
            **changes,
        }
    )


def test_a_cell_says_how_far_its_file_agrees_with_float32() -> None:
    text = "\n".join(text_lines(side_lines(side())))
    assert "fidelity    with float32 over 8 inputs: correlation 0.9877, same best class 88%" in text
    assert "built with  torch 2.13.0" in text


def test_what_was_asked_for_stands_beside_what_ran_with_its_proof() -> None:
    lines = list(text_lines(side_lines(side())))
    assert "requested   nnapi" in lines
    assert "actual      cpu on cpu in 3 runs, the last one's proof: line 7" in lines
    assert "            3 x nnapi was asked for, cpu on cpu ran" in lines
    assert "parser      version 2, 3" in lines
    assert "flags       all at their defaults" in lines


def test_a_cell_without_a_model_has_no_file() -> None:
    assert not [
        line for line in text_lines(side_lines(side(variant=None, manifest=None))) if line.startswith("file")
    ]


def test_conditions_name_their_units_and_for_how_many_runs_they_are_known() -> None:
    ranges = (
        ConditionRange(name="thermal_status", before=(0, 0), after=(0, 1), known=1),
        ConditionRange(name="skin_c", before=(30.0, 31.0), after=None, known=1),
    )
    run = MeasurementView.model_construct(job_id=1)
    found = [
        line
        for line in text_lines(side_lines(side().model_copy(update={"conditions": ranges, "runs": (run,)})))
        if "skin" in line
    ]
    assert found == [
        "conditions  thermal status NONE before, NONE to LIGHT after; skin 30.0 °C to 31.0 °C before, - after"
    ]


def test_a_system_build_that_changed_in_between_is_pointed_out() -> None:
    facts = DeviceFacts(serialno="p", device_model="Pixel 8", work_root="/tmp", build_fingerprint="one")
    device = ExplainedDevice(
        device_id=DeviceId("p"),
        label="desk",
        host="h",
        builds=(
            DeviceBuild(facts=facts, runs=3),
            DeviceBuild(facts=replace(facts, build_fingerprint="two"), runs=2),
        ),
    )
    lines = list(text_lines(device_lines(device)))
    assert lines[0] == "device      desk (p) at h"
    assert lines[1] == "            Pixel 8, one; 3 runs"
    assert "its system build changed in between" in lines[-1]


def test_the_share_of_a_peak_says_what_it_is_a_share_of() -> None:
    peak = PeakShare(share=0.342, peak_flop_per_s=38.4e9, threads=1, cores=("Cortex-A76",), is_bound=True)
    assert peak_text(peak) == "34.2% of 38.4 GFLOP/s, the float32 peak of 1 thread on Cortex-A76"
    unbound = replace(peak, threads=3, cores=("Cortex-A76", "Cortex-A55"), is_bound=False)
    assert peak_text(unbound).endswith(
        "of 3 threads on Cortex-A76 and Cortex-A55, the fastest cores; the run was not bound to any"
    )
