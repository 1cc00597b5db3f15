"""Matrices of generic harnesses, from registration to results, with phones played by the test."""

from typing import Any

import pytest

from farm.core.base.ids import MatrixId, digest_of
from farm.core.errors import HarnessInvalid, MatrixInvalid
from farm.core.programs.bundle import single_file
from farm.core.runs.evidence import Evidence
from farm.database.transaction import bind_tx
from farm.services.files.harnesses import check_successor, default_of_flags, known_harness
from farm.services.results.cells import list_results
from farm.store.files.artifacts import put_artifact
from farm.store.files.programs import put_program
from farm.wire.agents.protocol import Assignment
from farm.wire.documents.files.harness_definition import harness_definition
from farm.wire.documents.results.results import ResultView
from tests.support.farm.service_fixture import FarmRig, HostRig, ended, good_evidence, plan_of

BENCH: dict[str, Any] = {
    "name": "bench",
    "arguments": "--size=${size} ${backend_arguments}",
    "flags": {"size": {"default": 1}},
    "backends": {"cpu": {}, "gpu": {"arguments": "--gpu", "proof": "on GPU"}},
    "samples": {"pattern": "took ([0-9.]+) ms", "unit": "ms"},
    "metrics": {"memory": {"pattern": "peak ([0-9.]+)", "unit": "MB", "better": "lower"}},
}
MATRIX: dict[str, Any] = {
    "harness": "bench",
    "axes": {"backend": ["cpu", "gpu"]},
    "settings": {},
    "baseline": {"backend": "cpu"},
}


def register(farm: FarmRig, *, abi: str = "any", content: bytes = b"#!/bin/sh\n", **changes: Any) -> None:
    digest = digest_of(content)
    farm.blobs.put([content], digest)
    farm.write(bind_tx(put_artifact, now=farm.clock.now()), digest, len(content))
    farm.clock.advance(1)
    definition = harness_definition({**BENCH, **changes})
    farm.write(
        bind_tx(put_program, now=farm.clock.now()),
        harness="bench",
        abi=abi,
        bundle=single_file("bench", digest, len(content)),
        definition=definition.model_dump(mode="json"),
    )


def answer(assignment: Assignment) -> Evidence:
    """The GPU takes half the time, and says that it was there."""
    plan = plan_of(assignment)
    if plan.harness != "bench":
        return good_evidence(assignment)
    ms = 5 if "--gpu" in plan.argv else 10
    said = "on GPU\n" if "--gpu" in plan.argv else ""
    return ended(assignment, f"{said}took {ms}.00 ms\ntook {ms}.00 ms\npeak 12.5\n")


def results(farm: FarmRig, matrix_id: MatrixId) -> list[ResultView]:
    return farm.read(list_results, matrix_id)


def test_a_matrix_of_a_generic_harness_needs_no_variant(farm: FarmRig, host: HostRig) -> None:
    register(farm)
    matrix_id = farm.submit(**MATRIX)
    host.run(answer)
    cpu, gpu = results(farm, matrix_id)[:2]
    assert cpu.time is not None
    assert (cpu.time.median, cpu.time.rounds, cpu.rounds_by_quality) == (10e6, 5, {"valid": 5})
    assert (gpu.accelerator, gpu.proof, gpu.p90_ns) == ("gpu", "on GPU", 5e6)
    assert [(metric.name, metric.level.median, metric.unit) for metric in gpu.metrics] == [
        ("memory", 12.5, "MB")
    ]
    assert [view.speedup for view in farm.speedups(matrix_id)] == [pytest.approx(2.0)] * 2
    assert {view.model for view in farm.speedups()} == {None}


def test_without_proof_a_number_is_kept_and_enters_no_speedup(farm: FarmRig, host: HostRig) -> None:
    register(farm, backends={"cpu": {}, "gpu": {"arguments": "--gpu"}})
    matrix_id = farm.submit(**MATRIX)
    host.run(answer)
    gpu = results(farm, matrix_id)[1]
    assert gpu.time is not None
    assert (gpu.time.median, gpu.counted, gpu.rounds_by_quality) == (5e6, "unproven", {"unproven": 5})
    assert {view.speedup for view in farm.speedups(matrix_id)} == {None}


def test_a_flag_that_is_not_its_default_has_a_series_of_its_own(farm: FarmRig, host: HostRig) -> None:
    register(farm)
    farm.submit(**MATRIX, rounds=1)
    farm.submit(**{**MATRIX, "settings": {"size": 2}}, rounds=1)
    host.run(answer)
    # Two phones, two backends, two sizes.
    assert farm.rows("SELECT count(*) AS n FROM series") == [{"n": 8}]
    assert [view.changed_settings for view in farm.speedups()] == [{}, {"size": 2}] * 2


def test_cells_keep_the_definition_they_were_submitted_with(farm: FarmRig, host: HostRig) -> None:
    register(farm)
    matrix_id = farm.submit(**MATRIX)
    register(farm, samples={"pattern": "took ([0-9.]+) ms", "unit": "s"})
    host.run(answer)
    assert {result.time.median for result in results(farm, matrix_id) if result.time} == {10e6, 5e6}


def test_a_default_is_for_ever(farm: FarmRig) -> None:
    register(farm)
    changed = harness_definition({**BENCH, "flags": {"size": {"default": 2}}})
    with pytest.raises(HarnessInvalid, match="it is `2`, and was `1` before"):
        farm.write(check_successor, "bench", changed)
    needs_model = harness_definition({**BENCH, "arguments": "${model} ${size} ${backend_arguments}"})
    with pytest.raises(HarnessInvalid, match="now needs a model"):
        farm.write(check_successor, "bench", needs_model)
    more = {**BENCH["flags"], "more": {"default": ""}}
    arguments = f"{BENCH['arguments']} ${{more}}"
    farm.write(check_successor, "bench", harness_definition({**BENCH, "flags": more, "arguments": arguments}))


def test_of_definitions_of_different_age_the_newest_says_which_flags_there_are(
    farm: FarmRig, host: HostRig
) -> None:
    register(farm, abi="x86_64", content=b"old")
    more = {**BENCH["flags"], "more": {"default": 5}}
    backends = {**BENCH["backends"], "npu": {"proof": "declared"}}
    arguments = f"{BENCH['arguments']} ${{more}}"
    register(farm, abi="arm64-v8a", content=b"new", flags=more, backends=backends, arguments=arguments)
    known = farm.read(known_harness, "bench")
    assert known.defaults == {"size": 1, "more": 5}
    assert known.missing_flags == {"x86_64": {"more"}, "arm64-v8a": frozenset()}
    assert "the program for x86_64 is older" in str(known.unsupported(None, "npu"))
    assert known.unsupported(None, "gpu") is None
    with pytest.raises(MatrixInvalid, match="the x86_64 program of bench has no flag"):
        farm.submit(**{**MATRIX, "settings": {"more": 6}})
    matrix_id = farm.submit(**MATRIX, rounds=1)
    host.run(answer)
    assert farm.matrix(matrix_id).jobs_by_outcome == {"succeeded": 4}
    assert farm.read(default_of_flags, "bench") == {"size": 1, "more": 5}


def test_an_unknown_harness_is_told_with_those_that_there_are(farm: FarmRig) -> None:
    register(farm)
    with pytest.raises(MatrixInvalid, match="no harness `bensh`") as caught:
        farm.submit(**{**MATRIX, "harness": "bensh"})
    assert caught.value.hint == "did you mean `bench`?"
