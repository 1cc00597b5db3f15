"""The share of the float32 peak that a run reached: only where all of it is known."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from farm.core.devices.controls import ControlState
from farm.core.devices.device import Cluster
from farm.core.models.variant import Precision
from farm.core.runs.evidence import Evidence
from farm.services.results.explanations.jobs import explain_job
from farm.services.results.explanations.peak import reached_peak
from farm.services.results.explanations.sides import evidence_of
from farm.store.results.provenance import runs_of_jobs
from tests.support.farm.service_fixture import FarmRig

pytestmark = pytest.mark.usefixtures("both_variants")
CLUSTERS = (
    Cluster(cores=(0, 1), core="Cortex-A55", max_hz=1_800_000_000),
    Cluster(cores=(2, 3), core="Cortex-A76", max_hz=2_400_000_000),
)


@pytest.fixture
def known(farm: FarmRig) -> Mapping[str, Any]:
    """What is known of a run of a millisecond that multiplies 7.2 million times, on one of two fast cores."""
    host = farm.healthy_host("phone-1")
    farm.submit()
    host.run()
    (row, *_) = farm.rows("SELECT job_id FROM measurements ORDER BY job_id")
    view = farm.read(explain_job, row["job_id"])
    assert view.peak is None
    assert view.side is not None
    run = farm.read(runs_of_jobs, [row["job_id"]]).get(row["job_id"])
    assert run is not None
    assert view.side.manifest is not None
    (evidence,) = farm.read(evidence_of, [run.attempt_id]).values()
    recipe = replace(view.side.manifest.recipe, precision=Precision.FLOAT32)
    return {
        "run": replace(run, accelerator="cpu", value_ns=1e6),
        "harness": "benchmark_model",
        "settings": {"num_threads": 1},
        "manifest": replace(view.side.manifest, recipe=recipe, macs=7_200_000),
        "facts": replace(view.device.builds[0].facts, clusters=CLUSTERS),
        "evidence": evidence,
    }


def bound(evidence: Evidence, cores: str, problem: str | None = None) -> Evidence:
    state = ControlState(name="cores", requested=cores, problem=problem)
    return replace(evidence, controls=(state,))


def test_a_run_is_compared_with_the_cores_it_was_bound_to(known: Mapping[str, Any]) -> None:
    peak = reached_peak(**known)
    assert peak is not None
    # 14.4 of 38.4 billion operations in a second.
    assert (peak.share, peak.cores, peak.is_bound) == (pytest.approx(0.375), ("Cortex-A76",), False)
    little = reached_peak(**{**known, "evidence": bound(known["evidence"], "0-1")})
    assert little is not None
    assert (little.share, little.cores, little.is_bound) == (pytest.approx(1.0), ("Cortex-A55",), True)
    failed = reached_peak(**{**known, "evidence": bound(known["evidence"], "0-1", problem="no taskset")})
    assert failed == peak


def test_what_the_network_counted_stands_in_for_the_file(known: Mapping[str, Any]) -> None:
    manifest = replace(known["manifest"], macs=None, macs_uncounted="not in the file", flops=14_400_000)
    assert reached_peak(**{**known, "manifest": manifest}) == reached_peak(**known)


def test_where_something_is_not_known_there_is_no_share(known: Mapping[str, Any]) -> None:
    manifest, run = known["manifest"], known["run"]
    int8 = replace(manifest, recipe=replace(manifest.recipe, precision=Precision.INT8_CORE))
    for change in (
        {"run": replace(run, accelerator="gpu")},
        {"run": replace(run, accelerator="unknown")},
        {"harness": "speed_benchmark_torch"},
        {"settings": {"num_threads": -1}},
        {"manifest": int8},
        {"manifest": replace(manifest, macs=None, flops=None)},
        {"manifest": None},
        {"facts": replace(known["facts"], clusters=())},
        {"facts": None},
        {"evidence": None},
    ):
        assert reached_peak(**{**known, **change}) is None, change
