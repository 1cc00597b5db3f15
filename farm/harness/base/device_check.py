"""The device check as a harness: shell exit codes, push and digest, storage, exit record, reference run."""

from dataclasses import dataclass

from farm.core.checks.reference_fitness import ANY_CORES
from farm.core.devices.condition import Gates
from farm.core.errors import Blame
from farm.core.runs.evidence import Evidence
from farm.core.runs.measurement import Outcome, RunFailure
from farm.core.runs.plan import PlanFile, RunPlan
from farm.harness.failures.classification import classify

NAME = "device_check"
#: The script ends with this code, so that an exit record that always says 0 does not pass.
_EXIT_CODE = 23
_SHELL_EXIT = "7"
#: The reference run of a device of 2017 whose `date` has no nanoseconds takes half of it.
_TIMEOUT_S = 180.0
#: A stamp is as long as nanoseconds since 1970 at most; a longer one is garbage.
_STAMP_DIGITS = 24
#: `taskset` and a mask, and no more.
_CORES_LIMIT = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceTime:
    """The time of the reference run: the fastest of its passes, because other processes only add time."""

    value_ns: float
    passes_ns: tuple[float, ...]
    #: Its binding to cores: `taskset f0`; `any` where it reports no clocks.
    cores: str


def plan(program: PlanFile, payload: PlanFile) -> RunPlan:
    """Return the plan of a device check; its gates stay open, because a warm device is not a faulty one."""
    return RunPlan(
        harness=NAME,
        backend="none",
        settings={"payload_sha256": payload.digest, "payload_bytes": payload.size_bytes},
        files=(program, payload),
        argv=("${file_program}", "${file_payload}"),
        timeout_s=_TIMEOUT_S,
        gates=Gates(max_skin_c=100.0, min_battery_pct=0, max_battery_c=100.0, full_clocks=False, wait_s=0.0),
    )


def failure(plan: RunPlan, evidence: Evidence) -> RunFailure | None:
    """Return why the device did not pass; None when it did."""
    if evidence.error is not None or evidence.exit is None or evidence.exit.timed_out:
        return _blame_device(classify(evidence))
    values = dict(line.split(maxsplit=1) for line in evidence.stdout.splitlines() if len(line.split()) > 1)
    expected = {
        "shell_exit": _SHELL_EXIT,
        "payload_sha256": str(plan.settings["payload_sha256"]),
        "copied_bytes": str(2 * int(plan.settings["payload_bytes"])),
    }
    wrong = [
        f"{name} is {values.get(name, 'missing')}, not {value}"
        for name, value in expected.items()
        if values.get(name) != value
    ]
    if evidence.exit.code != _EXIT_CODE:
        wrong.append(f"the exit code is {evidence.exit.code}, not {_EXIT_CODE}")
    return _failed_check("; ".join(wrong)) if wrong else None


def reference_time(evidence: Evidence) -> ReferenceTime | None:
    """Return the time of the reference run; None where it did not end, or its clock stopped or jumped."""
    cores, passes = ANY_CORES, []
    for line in evidence.stdout.splitlines():
        match line.split():
            case ["reference_failed", *_]:
                return None
            case ["reference_cores", *words]:
                cores = " ".join(words)[:_CORES_LIMIT]
            case ["reference", count, begun, ended] if all(map(_is_number, (count, begun, ended))):
                passes.append((int(ended) - int(begun)) / max(1, int(count)))
    usual = sorted(passes)[len(passes) // 2] if passes else 0.0
    # A wall clock that is set during the run spoils one of the passes.
    counted = tuple(value for value in passes if usual / 10 < value < usual * 10)
    return ReferenceTime(value_ns=min(counted), passes_ns=counted, cores=cores) if counted else None


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _STAMP_DIGITS


def _failed_check(message: str) -> RunFailure:
    return RunFailure(
        code="check.failed",
        outcome=Outcome.FAILED,
        blame=Blame.DEVICE,
        message=f"the device did not pass its check: {message}",
        hint="inspect the device; it is checked again when it is unplugged and comes back",
    )


def _blame_device(run_failure: RunFailure | None) -> RunFailure:
    """Blame the device for a check that never ends; in a benchmark the variant is to blame."""
    if run_failure is None or run_failure.outcome is not Outcome.INCONCLUSIVE:
        return _failed_check(run_failure.message if run_failure else "there is no exit record")
    return run_failure
