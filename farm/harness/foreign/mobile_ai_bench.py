"""What Xiaomi's mobile-ai-bench prints: model, run interval, options, and the times of each benchmark."""

import re
from dataclasses import dataclass

_NUMBER = r"[0-9]{1,12}(?:\.[0-9]{1,9})?"
_TASK = re.compile(r"\('(\w{1,40})', '(\w{1,40})', '([\w.-]{1,100})'\)")
_RESULT = re.compile(rf"benchmark: ([^,\n]{{1,100}}),[0-9]{{1,9}},[0-9]{{1,9}},({_NUMBER}),({_NUMBER})\s*$")


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchResult:
    """One model by one framework on one kind of hardware."""

    #: `TFLITE`, `MACE`, `SNPE`; empty where no line names it.
    framework: str
    #: `CPU`, `GPU`, `DSP`, `NPU`.
    runtime: str
    model: str
    init_ms: float
    run_ms: float


def bench_results(text: str) -> list[BenchResult]:
    """Every complete result, with what the line before it says it is of."""
    found: list[BenchResult] = []
    framework = runtime = ""
    for line in text.splitlines():
        if (task := _TASK.search(line)) is not None:
            framework, runtime = task[1], task[2]
        elif (match := _RESULT.search(line)) is not None:
            found.append(
                BenchResult(
                    framework=framework,
                    runtime=runtime,
                    model=match[1],
                    init_ms=float(match[2]),
                    run_ms=float(match[3]),
                )
            )
    return found
