"""The share of the peak of its cores that one run reached."""

from collections.abc import Mapping

from farm.core.base.cpu_list import core_list
from farm.core.base.setting_values import SettingValue
from farm.core.devices.controls import CORES
from farm.core.devices.cpu_peak import PeakShare, peak_share
from farm.core.devices.device import DeviceFacts
from farm.core.models.variant import Manifest, Precision
from farm.core.runs.evidence import Evidence
from farm.core.runs.placement import Accelerator
from farm.store.results.provenance import MeasuredRun

#: The flag that gives the number of threads, of harnesses that time single inferences.
_THREADS_FLAG: Mapping[str, str] = {
    "benchmark_model": "num_threads",
    "litert-benchmark": "num_threads",
    "onnxruntime_perf_test": "intra_op_num_threads",
    "executor_runner": "cpu_threads",
    "benchncnn": "num_threads",
    "mnn_benchmark": "threads",
    "tvm_benchmark": "num_threads",
}


def reached_peak(
    run: MeasuredRun,
    *,
    harness: str,
    settings: Mapping[str, SettingValue],
    manifest: Manifest | None,
    facts: DeviceFacts | None,
    evidence: Evidence | None,
) -> PeakShare | None:
    """Return the share of the float32 peak that a run on the CPU reached; None where it is not known."""
    threads = settings.get(_THREADS_FLAG.get(harness, ""))
    macs = None if manifest is None else manifest.macs or (manifest.flops or 0) // 2
    if (
        manifest is None
        or facts is None
        or evidence is None
        or not macs
        or manifest.recipe.precision != Precision.FLOAT32
        or run.accelerator != Accelerator.CPU
        or not isinstance(threads, int)
    ):
        return None
    states = [state for state in evidence.controls if state.name == CORES and state.problem is None]
    return peak_share(
        macs=macs,
        value_ns=run.value_ns,
        threads=threads,
        clusters=facts.clusters,
        bound_to=core_list(states[0].requested) or () if states else (),
    )
