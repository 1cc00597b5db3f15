"""Plans and evidence of runs that never happened, for tests of harness adapters."""

from collections.abc import Sequence

from farm.core.base.ids import Digest
from farm.core.base.setting_values import SettingValue
from farm.core.devices.condition import Gates
from farm.core.models.variant import Format, Manifest, Precision, Recipe, TensorSpec
from farm.core.programs.bundle import single_file
from farm.core.runs.evidence import Evidence, ExitRecord
from farm.core.runs.plan import RunPlan
from farm.harness.base.adapter import RunRequest
from farm.harness.torch.speed_benchmark_torch import FLAGS, SpeedBenchmarkTorch

PROGRAM = "/data/local/tmp/cache/speed_benchmark_torch"


def manifest(
    *, backends: tuple[str, ...] = ("cpu",), target: str = "cpu", format: Format = Format.LITE
) -> Manifest:
    return Manifest(
        model="mobilenet_v2",
        recipe=Recipe(precision=Precision.FLOAT32, format=format, target=target),
        digest=Digest("a" * 64),
        size_bytes=14_000_000,
        backends=backends,
        inputs=(TensorSpec(shape=(1, 3, 224, 224), dtype="float32"),),
        recipe_digest=Digest("b" * 64),
    )


def request(backend: str = "cpu", **settings: SettingValue) -> RunRequest:
    return RunRequest(
        variant=manifest(backends=(backend,), target="nnapi" if backend == "nnapi" else "cpu"),
        bundle=single_file("sbt", Digest("c" * 64), 9_000),
        backend=backend,
        settings={**{name: flag.default for name, flag in FLAGS.items()}, **settings},
        timeout_s=120.0,
        gates=Gates(),
    )


def plan(backend: str = "cpu", **settings: SettingValue) -> RunPlan:
    return SpeedBenchmarkTorch().plan(request(backend, **settings))


def evidence(stdout: str = "", *, code: int = 0, stderr: str = "", timed_out: bool = False) -> Evidence:
    return Evidence(
        fence=7,
        argv=(PROGRAM, "--model=/data/local/tmp/cache/model"),
        exit=ExitRecord(code=code, timed_out=timed_out, duration_s=12.5),
        stdout=stdout,
        stderr=stderr,
    )


def observer_line(value: object) -> str:
    return f'PyTorchObserver {{"type": "NET", "unit": "us", "metric": "latency", "value": "{value}"}}'


def printed(values: Sequence[object], last: str) -> str:
    lines = ["Starting benchmark.", "Running warmup runs.", "Main runs.", *map(observer_line, values), last]
    return "\n".join(lines) + "\n"


def in_microseconds(mean: object, per_second: object = 1) -> str:
    return f"Main run finished. Microseconds per iter: {mean}. Iters per second: {per_second}"


def in_milliseconds(mean: object, per_second: object = 1) -> str:
    return f"Main run finished. Milliseconds per iter: {mean}. Iters per second: {per_second}"
