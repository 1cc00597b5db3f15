"""Views as the farm would answer them, for tests that say only what matters to them."""

from datetime import UTC, datetime

from farm.core.base.ids import CellId, DeviceId, HostId, JobId, MatrixId, VariantId, digest_of
from farm.core.devices.device import Admin, Health, Presence
from farm.core.jobs.job import JobKind, JobState
from farm.core.models.variant import Format, Manifest, Precision, Recipe, TensorSpec, Variant
from farm.core.runs.measurement import Verdict
from farm.wire.documents.devices import DeviceView
from farm.wire.documents.matrices.cell_setup import CellSetup
from farm.wire.documents.matrices.jobs import AttemptView, JobView
from farm.wire.documents.matrices.matrices import CellView, DeviceProgress, MatrixView, Rejection
from farm.wire.documents.results.speedups import SpeedupView

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def device_view(**changes: object) -> DeviceView:
    return DeviceView.model_validate(
        {
            "device_id": DeviceId("phone-1"),
            "label": None,
            "tags": (),
            "unit": 1,
            "serial": "emulator-5554",
            "host": HostId("desk"),
            "device_model": "Pixel 7a",
            "manufacturer": "Google",
            "soc": "Tensor G2",
            "android": "14",
            "api_level": 34,
            "abi": "arm64-v8a",
            "build_fingerprint": None,
            "presence": Presence.ONLINE,
            "detail": None,
            "health": Health.GOOD,
            "admin": Admin.ACTIVE,
            "virtual": False,
            "fence": 3,
            "job_id": None,
            "waiting_for": (),
            "blocked_by": (),
            "since": NOON,
            "why": None,
            "advice": None,
            "reserved_by": None,
            "reserved_until": None,
            "condition": None,
            "seen_at": NOON,
            **changes,
        }
    )


def manifest(**changes: object) -> Manifest:
    values: dict[str, object] = {
        "model": "mobilenet_v2",
        "recipe": Recipe(precision=Precision.FLOAT32, format=Format.TORCHSCRIPT),
        "digest": digest_of(b"bytes"),
        "size_bytes": 14_200_000,
        "backends": ("cpu",),
        "inputs": (TensorSpec(shape=(1, 3, 224, 224), dtype="float32"),),
        "recipe_digest": digest_of(b"recipe"),
        **changes,
    }
    return Manifest(**values)  # type: ignore[arg-type]


def variant_view(**changes: object) -> Variant:
    name = "mobilenet_v2/float32/torchscript"
    return Variant(variant_id=VariantId(1), name=name, manifest=manifest(**changes), created_at=NOON)


def job_view(**changes: object) -> JobView:
    return JobView.model_validate(
        {
            "job_id": JobId(7),
            "kind": JobKind.BENCHMARK,
            "matrix_id": MatrixId(3),
            "device_id": DeviceId("phone-1"),
            "device_label": None,
            "label": "float32 torchscript",
            "round": 1,
            "block": 0,
            "repeat": 0,
            "place": 1,
            "state": JobState.FINISHED,
            "outcome": "failed",
            "code": "run.crashed",
            "message": "the program died of signal 11 [SIGSEGV]",
            "attempts": (9, 12),
            **changes,
        }
    )


def attempt_view(**changes: object) -> AttemptView:
    """An attempt whose program crashed; its evidence is what an agent sends."""
    return AttemptView.model_validate(
        {
            "attempt_id": 12,
            "job_id": JobId(7),
            "device_id": DeviceId("phone-1"),
            "device_label": None,
            "fence": 3,
            "state": "finished",
            "outcome": "failed",
            "blame": "variant",
            "code": "run.crashed",
            "message": "speed_benchmark_torch crashed",
            "claimed_at": NOON,
            "finished_at": NOON,
            "plan": {
                "harness": "speed_benchmark_torch",
                "backend": "cpu",
                "settings": {"iter": 30},
                "files": [{"name": "model", "digest": digest_of(b"model"), "size_bytes": 14_200_000}],
                "argv": ["${file_program}", "--model=${file_model}"],
                "timeout_s": 120.0,
            },
            "evidence": evidence(),
            "quality": None,
            "quality_reasons": (),
            **changes,
        }
    )


def evidence(**changes: object) -> dict[str, object]:
    return {
        "fence": 3,
        "argv": ["/data/local/tmp/speed_benchmark_torch", "--model=a file"],
        "exit": {"code": 139, "timed_out": False, "duration_s": 1.25},
        "stdout": "Starting benchmark.\n",
        "stderr": "".join(f"line {number}\n" for number in range(1, 101)),
        "stderr_dropped_bytes": 4096,
        "before": {"taken_at": NOON.isoformat(), "thermal_status": 0, "battery_level_pct": 88},
        "started_at": NOON.isoformat(),
        "waited_s": 12.0,
        **changes,
    }


def progress(**changes: object) -> DeviceProgress:
    return DeviceProgress.model_validate(
        {
            "device_id": DeviceId("phone-1"),
            "device_label": None,
            "total": 20,
            "max_total": changes.get("total", 20),
            "finished": 12,
            "current": "float32 lite",
            "waiting_for": (),
            **changes,
        }
    )


def cell_setup(**changes: object) -> CellSetup:
    values = {
        "model": "mobilenet_v2",
        "precision": Precision.FLOAT32,
        "format": Format.LITE,
        "memory_format": "contiguous",
        "target": "cpu",
        "variant_digest": digest_of(b"bytes"),
        "backend": "cpu",
        "settings": {"threads": 1},
        "changed_settings": {},
        "harness": "speed_benchmark_torch",
        "program_digest": digest_of(b"program"),
        **changes,
    }
    name = f"{values['model']}/{values['precision']}/{values['format']}"
    return CellSetup.model_validate({"variant": name, **values})


def cell_view(**changes: object) -> CellView:
    return CellView.model_validate(
        {
            **dict(cell_setup()),
            "cell_id": CellId(1),
            "device_id": DeviceId("phone-1"),
            "device_label": None,
            "label": "float32 lite",
            "replica": 0,
            "baseline": None,
            "jobs": 5,
            "jobs_by_outcome": {"succeeded": 4, "failed": 1},
            "measurements_by_quality": {"valid": 4},
            "value_ns": 43_100_000.0,
            "metrics": (),
            "problems": {"the program died of signal 11": 1},
            **changes,
        }
    )


def matrix_view(**changes: object) -> MatrixView:
    return MatrixView.model_validate(
        {
            "matrix_id": MatrixId(3),
            "name": "demo",
            "state": "running",
            "rounds": 5,
            "max_rounds": changes.get("rounds", 5),
            "repeated_blocks": 0,
            "cells": 8,
            "rejected": 1,
            "jobs": 40,
            "jobs_by_outcome": {"queued": 15, "failed": 1, "succeeded": 24},
            "created_at": NOON,
            "finished_at": None,
            "harness": "speed_benchmark_torch",
            "metrics": (),
            "progress": (
                progress(),
                progress(
                    device_id="phone-2", current=None, waiting_for=("another device on the same CPU is busy",)
                ),
            ),
            "eta_s": 125.0,
            "cell_list": (cell_view(),),
            "rejected_list": (
                Rejection(
                    device_id=DeviceId("phone-2"),
                    device_label=None,
                    label="float32 lite",
                    kind="excluded",
                    reason="excluded",
                ),
            ),
            **changes,
        }
    )


def speedup_view(**changes: object) -> SpeedupView:
    return SpeedupView.model_validate(
        {
            **dict(cell_setup(precision=Precision.INT8_CORE, format=Format.TORCHSCRIPT)),
            "matrix_id": MatrixId(3),
            "cell_id": CellId(12),
            "baseline_cell_id": CellId(11),
            "device_id": DeviceId("phone-1"),
            "device_label": None,
            "device_model": "Pixel 7a",
            "soc": "Tensor G2",
            "baseline": "float32 torchscript",
            "candidate": "int8-core torchscript",
            "baseline_setup": cell_setup(format=Format.TORCHSCRIPT),
            "speedup": 2.31,
            "ci_low": 2.284,
            "ci_high": 2.337,
            "interval": {"kind": "planned", "confidence": 0.95},
            "rounds": 5,
            "pairs": 5,
            "excluded": 0,
            "left_out": (),
            "speedup_of_all": 2.31,
            "selection_matters": False,
            "margin": 0.02,
            "verdict": Verdict.FASTER,
            "reason": "the whole interval is above 1",
            "baseline_ns": 43_100_000.0,
            "candidate_ns": 18_660_000.0,
            "difference_ns": -24_440_000.0,
            "baseline_min_ns": 42_900_000.0,
            "candidate_min_ns": 18_500_000.0,
            "detectable": 0.021,
            "p_value": 0.0001,
            "not_slower": True,
            "moderated_by": 0,
            "distance": None,
            "matrices": (MatrixId(3),),
            "aa": False,
            "aa_alarms": None,
            "virtual": False,
            "metrics": (),
            "measured_until": NOON,
            **changes,
        }
    )


def duplicate_view(**changes: object) -> SpeedupView:
    same = {"speedup": 1.0008, "ci_low": 0.9943, "ci_high": 1.0073, "verdict": Verdict.SAME}
    times = {"candidate_ns": 43_070_000.0, "detectable": 0.02, "aa": True, "cell_id": CellId(13)}
    return speedup_view(candidate="float32 torchscript (A/A)", **{**same, **times, **changes})
