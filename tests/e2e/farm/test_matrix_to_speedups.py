"""The whole way, in processes of their own: from a YAML file to a speedup table that its samples support."""

import sqlite3
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import product
from math import isclose
from pathlib import Path
from typing import Any

import pytest
import yaml

from agents.virtual.pool import VirtualDeviceHandle
from farm.core.base.ids import MatrixId
from farm.variants.model_zoo import recipes_of
from tests.e2e.farm.speedup_recalculation import recounted_rows
from tests.support.agents.run_spans import overlapping_runs
from tests.support.fakes import matrix_spec, unsteady_program
from tests.support.farm.processes import (
    AgentProcess,
    FarmProcess,
    running_agent,
    running_farm,
    running_phones,
    runs_of,
)
from tests.support.invariants.invariants import check_invariants
from tests.support.models.built_variants import built
from tests.support.session.shared_folder import shared_folder

#: Who comes first builds variants, which takes minutes where others want the cores too.
pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

DEVICE_FIELDS = {
    *("device_id", "serial", "host", "device_model", "soc", "android", "api_level", "abi"),
    *("presence", "health", "admin", "virtual"),
}
SPEEDUP_FIELDS = {
    *(
        "device_id",
        "device_model",
        "model",
        "harness",
        "baseline",
        "candidate",
        "speedup",
        "ci_low",
        "ci_high",
    ),
    *("rounds", "excluded", "verdict", "virtual"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Lab:
    """A farm with real variants, and one agent with two phones that share this machine's CPU."""

    farm: FarmProcess
    phones: list[VirtualDeviceHandle]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("lab")
    variant_folder = shared_folder(tmp_path_factory, worker_id, "variants")
    built(recipes_of(["float32", "int8-core"], ["torchscript"]), variant_folder)
    with (
        running_farm(FarmProcess(folder / "farm")) as farm,
        running_phones(2, folder / "phones") as phones,
        running_agent(AgentProcess(farm, folder / "agent", phones, host="bench-1")),
    ):
        words = ["--precision", "float32,int8-core", "--out", str(variant_folder)]
        variants = farm.cli("variant", "build", "mobilenet_v2", *words)
        assert {variant["how"] for variant in variants} == {"uploaded"}
        farm.await_phones(phones)
        yield Lab(farm=farm, phones=phones)
        check_invariants(farm.database_path)


@pytest.fixture(scope="module")
def torch_matrix(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> MatrixId:
    """A finished matrix that really ran MobileNetV2, with torch, on one of the phones."""
    spec = matrix_spec(
        devices={"device_id": lab.phones[0].serial},
        settings={"iter": 10, "warmup": 1},
        aa=True,
        noise_limit=10.0,
    )
    return _submitted(lab, spec, tmp_path_factory.mktemp("torch"))


@pytest.fixture(scope="module")
def unsteady_matrix(lab: Lab, torch_matrix: MatrixId, tmp_path_factory: pytest.TempPathFactory) -> MatrixId:
    """A finished matrix on both phones, of a program that leaves a sample out now and then."""
    # After the torch matrix, because new matrices run the program that was registered last.
    lab.farm.register_program(unsteady_program(short_every=5))
    return _submitted(lab, matrix_spec(settings={"iter": 20}), tmp_path_factory.mktemp("unsteady"))


@pytest.fixture(scope="module")
def attempts(lab: Lab, torch_matrix: MatrixId, unsteady_matrix: MatrixId) -> list[dict[str, Any]]:
    """Every attempt there was, oldest first, as the API shows it; of checks `matrix_id` is None."""
    query = "SELECT a.attempt_id, matrix_id FROM attempts a JOIN jobs USING (job_id) ORDER BY a.attempt_id"
    with closing(sqlite3.connect(lab.farm.database_path)) as connection:
        found = connection.execute(query).fetchall()
    assert {matrix_id for _, matrix_id in found} == {None, torch_matrix, unsteady_matrix}
    with lab.farm.client() as client:
        return [
            {**client.attempt(attempt_id).model_dump(), "matrix_id": matrix_id}
            for attempt_id, matrix_id in found
        ]


def _submitted(lab: Lab, spec: dict[str, Any], folder: Path) -> MatrixId:
    path = folder / "matrix.yaml"
    path.write_text(yaml.safe_dump(spec))
    matrix_id = MatrixId(lab.farm.cli("matrix", "submit", str(path))["matrix_id"])
    lab.farm.await_matrix(matrix_id, within_s=600)
    return matrix_id


def test_devices_say_what_they_are_and_that_they_are_ready(lab: Lab) -> None:
    devices = lab.farm.cli("devices")
    assert [device["device_id"] for device in devices] == [phone.serial for phone in lab.phones]
    for device, phone in zip(devices, lab.phones, strict=True):
        assert set(device) >= DEVICE_FIELDS
        assert None not in [device[name] for name in DEVICE_FIELDS]
        assert device["serial"] == phone.address
        assert device["host"] == "bench-1"
        assert device["virtual"] is True
        states = [device[name] for name in ("presence", "health", "admin")]
        assert states == ["online", "good", "active"]


def test_a_matrix_file_becomes_speedups_with_intervals(lab: Lab, torch_matrix: MatrixId) -> None:
    rows = lab.farm.cli("speedups", "--matrix", str(torch_matrix))
    assert all(row["changed_settings"] == {"iter": 10, "warmup": 1} for row in rows)
    assert [(row["baseline"], row["candidate"], row["aa"]) for row in rows] == [
        ("float32", "float32 (A/A)", True),
        ("float32", "int8-core", False),
    ]
    for row in rows:
        assert set(row) >= SPEEDUP_FIELDS
        assert row["device_id"] == lab.phones[0].serial
        assert (row["model"], row["harness"]) == ("mobilenet_v2", "speed_benchmark_torch")
        assert (row["rounds"], row["excluded"], row["virtual"]) == (5, 0, True)
        assert 0 < row["ci_low"] <= row["speedup"] <= row["ci_high"]


@pytest.mark.parametrize("matrix", ["torch_matrix", "unsteady_matrix"])
def test_the_table_is_what_the_raw_samples_come_to(
    lab: Lab, matrix: str, request: pytest.FixtureRequest
) -> None:
    matrix_id = request.getfixturevalue(matrix)
    rows = lab.farm.cli("speedups", "--matrix", str(matrix_id))
    recounted = recounted_rows(lab.farm.database_path, matrix_id)
    assert len(rows) == len(recounted) == 2
    for row, expected in zip(rows, recounted, strict=True):
        for name, value in expected.items():
            if isinstance(value, float):
                assert isclose(row[name], value, rel_tol=1e-9), name
            else:
                assert row[name] == value, name


def test_rounds_that_were_incomplete_are_measured_again_and_left_out(
    lab: Lab, unsteady_matrix: MatrixId
) -> None:
    rows = lab.farm.cli("speedups", "--matrix", str(unsteady_matrix))
    assert {row["rounds"] for row in rows} == {5}
    assert all(row["excluded"] > 0 for row in rows)


def test_every_attempt_keeps_its_output_exit_code_and_conditions(attempts: list[dict[str, Any]]) -> None:
    for attempt in attempts:
        evidence = attempt["evidence"]
        is_check = attempt["matrix_id"] is None
        assert evidence["exit"]["code"] == (23 if is_check else 0)
        assert ("payload_sha256" if is_check else "Main run finished.") in evidence["stdout"]
        assert evidence["before"]["taken_at"] <= evidence["after"]["taken_at"]
        assert evidence["fence"] == attempt["fence"]
        assert evidence["argv"]


def test_every_file_travels_to_each_phone_once(attempts: list[dict[str, Any]]) -> None:
    there: defaultdict[str, set[str]] = defaultdict(set)
    warm = 0
    for attempt in attempts:
        known = there[attempt["device_id"]]
        missing = {
            file["digest"]: file["size_bytes"]
            for file in attempt["plan"]["files"]
            if file["digest"] not in known
        }
        assert attempt["evidence"]["pushed_bytes"] == sum(missing.values())
        known.update(missing)
        warm += not missing
    assert warm > 20


@pytest.mark.invariant("I8", "I18")
def test_phones_that_share_a_cpu_never_run_at_the_same_time(lab: Lab, attempts: list[dict[str, Any]]) -> None:
    spans = runs_of(lab.phones)
    assert overlapping_runs(spans) == []
    # The journal looks ten times a second.
    long_enough = [each for each in attempts if each["evidence"]["exit"]["duration_s"] > 0.5]
    assert len(long_enough) >= 15
    ran = {(span.serial, span.fence) for span in spans}
    assert {(attempt["device_id"], attempt["fence"]) for attempt in long_enough} <= ran


def test_phones_that_share_a_cpu_take_turns(
    lab: Lab, unsteady_matrix: MatrixId, attempts: list[dict[str, Any]]
) -> None:
    devices = [each["device_id"] for each in attempts if each["matrix_id"] == unsteady_matrix]
    turns = [phone.serial for _, phone in product(range(5), lab.phones)]
    assert devices[:10] in (turns, turns[::-1])
