"""PyTorch Mobile's `speed_benchmark_torch`: the command line of its Android binary, and what it prints."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from farm.core.bundle import command_words, plan_files
from farm.core.evidence import Evidence
from farm.core.measurement import Reading, RunFailure
from farm.core.plan import RunPlan, SettingValue
from farm.core.variant import Manifest
from farm.harness.adapter import Flag, RunRequest, model_file
from farm.harness.failures import classify, unreadable
from farm.harness.torch_output import LastLine, disagreement, last_lines, observed_ns

FLAGS: Mapping[str, Flag] = MappingProxyType(
    {
        "iter": Flag(default=200, help="timed iterations in one process", minimum=1),
        "warmup": Flag(default=5, help="iterations before the clock counts", minimum=0),
        "pthreadpool_size": Flag(default=1, help="threads; 0 leaves it to the program", minimum=0),
        "use_bundled_input": Flag(default=0, help="which bundled input to run; -1 for none", minimum=-1),
        "input_dims": Flag(default="", help="without a bundled input: 1,3,224,224; several separated by ;"),
        "input_type": Flag(default="", help="without a bundled input: float, uint8_t or int64; several by ;"),
        "input_memory_format": Flag(default="contiguous_format", help="contiguous_format or channels_last"),
        "no_inputs": Flag(default=False, help="the model takes no input"),
        "use_caching_allocator": Flag(default=False, help="keep allocations between iterations"),
    }
)

#: Our own program says on stderr which int8 kernels the machine chose at load; the Android binary does not.
_ENGINE = "quantized engine: "
_ALWAYS_GIVEN = ("use_bundled_input", "warmup", "iter", "pthreadpool_size")
_BACKENDS_TO_COME = {"nnapi": "NNAPI", "vulkan": "Vulkan"}


class SpeedBenchmarkTorch:
    """Runs TorchScript and lite-interpreter files on the CPU, one observer line an iteration."""

    name: str = "speed_benchmark_torch"
    parser_version: int = 2
    flags: Mapping[str, Flag] = FLAGS
    needs_model: bool = True
    backends: Sequence[str] = ("cpu", *_BACKENDS_TO_COME)
    clock_covers: str = (
        "forward() only, on one input made before the loop; samples are cut to whole microseconds"
    )

    def unsupported(self, variant: Manifest | None, backend: str) -> str | None:
        """Why this harness cannot run the variant on the backend; None when it can."""
        if backend in _BACKENDS_TO_COME:
            return (
                f"this version does not read {_BACKENDS_TO_COME[backend]} placement evidence yet,"
                " so it could not tell whether the CPU did the work"
            )
        if backend != "cpu":
            return f"speed_benchmark_torch has no backend {backend!r}: it offers cpu"
        if variant is not None and backend not in variant.backends:
            return f"the file is made for {', '.join(variant.backends)}, not for cpu"
        return None

    def plan(self, request: RunRequest) -> RunPlan:
        """The command line of the Android binary, unchanged."""
        assert request.variant is not None
        return RunPlan(
            harness=self.name,
            backend=request.backend,
            settings=request.settings,
            files=(*plan_files(request.bundle), model_file(request.variant)),
            argv=command_words(
                request.bundle,
                ("--model=${file_model}", *_flag_words(request.settings), "--report_pep=true"),
            ),
            env=request.bundle.env,
            timeout_s=request.timeout_s,
            gates=request.gates,
        )

    def parse(self, plan: RunPlan, evidence: Evidence) -> Reading | RunFailure:
        """One sample an observer line, or the last line's mean where there are none.

        Version A's samples are whole milliseconds; where one is cut to 0 the mean says more, and is taken.
        """
        failure = classify(evidence)
        if failure is not None:
            return failure
        found = last_lines(evidence.stdout)
        if not found:
            return unreadable(evidence, "there is no complete line 'Main run finished. ... per iter: ...'")
        if len(found) > 1:
            return unreadable(evidence, f"{len(found)} runs ended in it, one was asked for")
        return _reading(plan, evidence, found[0])


def _reading(plan: RunPlan, evidence: Evidence, last: LastLine) -> Reading | RunFailure:
    samples = observed_ns(evidence.stdout, last.unit)
    expected = _expected_samples(plan)
    if len(samples) > expected:
        return unreadable(evidence, f"{len(samples)} values for {expected} iterations")
    if last.mean_ns <= 0:
        return unreadable(evidence, f"no iteration takes no time: {last.text}")
    against = disagreement(samples, last) if len(samples) == expected else None
    if against is not None:
        return unreadable(evidence, against)
    usable = bool(samples) and min(samples) > 0
    return Reading(
        samples_ns=tuple(samples) if usable else (),
        mean_ns=None if usable else last.mean_ns,
        expected_samples=expected,
        actual_backend="cpu",
        accelerator="cpu",
        proof=_proof(plan, evidence),
    )


def _proof(plan: RunPlan, evidence: Evidence) -> str:
    argv = evidence.argv or plan.argv
    proof = f"cpu by construction: a file made for cpu, and no --vulkan in: {' '.join(argv)}"
    engines = [line for line in evidence.stderr.splitlines() if line.startswith(_ENGINE)]
    return "; ".join([proof, *engines[:1]])


def _expected_samples(plan: RunPlan) -> int:
    asked = plan.settings.get("iter", FLAGS["iter"].default)
    return max(1, int(asked)) if isinstance(asked, int) else 1


def _flag_words(settings: Mapping[str, SettingValue]) -> list[str]:
    given = {name: settings.get(name, flag.default) for name, flag in FLAGS.items()}
    return [
        f"--{name}={_spelled(value)}"
        for name, value in given.items()
        if name in _ALWAYS_GIVEN or value != FLAGS[name].default
    ]


def _spelled(value: SettingValue) -> str:
    """As the flag library reads it, with dollars kept from the plan's placeholders."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value).replace("$", "$$")
