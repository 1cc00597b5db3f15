"""Classification of failed runs, as far as it is the same for every program on a device.

The agent's observations decide first, then the program's output, then its exit code.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import islice

from farm.core.base.ids import is_digest
from farm.core.errors import Blame, ControlImpossible
from farm.core.runs.evidence import Evidence, ExitRecord, RunError
from farm.core.runs.measurement import Outcome, RunFailure
from farm.harness.failures.kinds import KIND_BY_EXIT_CODE, KINDS, NAME_BY_SIGNAL, FailureKind
from farm.harness.failures.pattern_prefilter import pattern_prefilter
from farm.harness.failures.patterns import (
    ADB_PATTERNS,
    CRASH,
    GENERIC_PATTERNS,
    LAST_LINE_PATTERNS,
    FailurePattern,
)

_LONGEST_LINE = 400
#: A pattern's first matches; the line that names the failure is one of them.
_MAX_MATCHES = 50
_FINAL_LINES = 20
#: Stack frames, echoed commands, help texts, and what loggers call less than an error.
_MENTIONS = re.compile(
    r"^\s*(?:#\d{1,3} |frame #\d|at \S+\(|[$+>] |--?\w)"
    r"|^(?:INFO|VERBOSE|DEBUG|WARN(?:ING)?)\b|^[VDIW](?:/|\d{4} )|\s[VDIW] \S[^:]{0,60}: "
    r"|\[[VDIW]:onnxruntime"
)
_NAMES = re.compile(
    r"error|fail|exception|fatal|abort|terminat|what\(\)|cannot|can't|couldn't|could not|unable"
    r"|not (?:found|supported|available|registered)|denied|refused|invalid|missing|killed|unknown",
    re.IGNORECASE,
)
_ERROR = re.compile(r"(?:^|[\s\]])(?:[\w.]{0,60}(?:[Ee]rror|ERROR|Exception)|FATAL|[Ff]atal)(?:\]|:\s)")
#: Warnings of Android's linker, which goes on after them.
_LINKERS_WARNING = re.compile(r"^.{0,200}WARNING: linker: .*$", re.MULTILINE)
_NOT_THIS_HARNESS = "`farm attempt show ID` has its output: is the registered program really this harness?"


def classify(
    evidence: Evidence,
    *,
    success: Collection[int] = (0,),
    patterns: Sequence[FailurePattern] = GENERIC_PATTERNS,
) -> RunFailure | None:
    """Return why there are no numbers; None when the program ended as it should and its output decides.

    Args:
        evidence: the evidence of the run.
        success: the exit codes of a program that ended as it should.
        patterns: the texts that explain other ends.
    """
    if evidence.error is not None:
        return _run_error_failure(evidence.error)
    if evidence.exit is None:
        return RunFailure(
            code="run.no_exit_record",
            outcome=Outcome.INCONCLUSIVE,
            blame=Blame.HOST,
            message="the agent brought back neither an exit record nor a reason why there is none",
            hint="see the agent's log for this attempt",
        )
    if evidence.exit.code in success and not evidence.exit.timed_out:
        return None
    if (failure := adb_failure(evidence)) is not None:
        return failure
    if evidence.exit.timed_out:
        return _timeout_failure(evidence, evidence.exit)
    return _exit_failure(evidence, evidence.exit, patterns)


def unreadable_failure(evidence: Evidence, why: str, *, hint: str = _NOT_THIS_HARNESS) -> RunFailure:
    """Return the failure of a program that ended well and printed something other than its numbers."""
    if (failure := adb_failure(evidence)) is not None:
        return failure
    line = _last_text(evidence.stdout) or _last_text(evidence.stderr)
    reason = why if line else f"it printed nothing; {why}"
    code = evidence.exit.code if evidence.exit else 0
    if evidence.stdout_dropped_bytes:
        reason += f"; {evidence.stdout_dropped_bytes} bytes of output were over the limit and dropped"
    return RunFailure(
        code="run.output_unreadable",
        outcome=Outcome.FAILED,
        blame=Blame.VARIANT,
        message=f"{_program(evidence)} ended with exit code {code} but its output cannot be read: {reason}",
        hint=hint,
        line=line,
    )


def adb_failure(evidence: Evidence) -> RunFailure | None:
    """Return the failure that adb itself reports in the output: never the variant's; None without one."""
    match = _find_match(evidence, ADB_PATTERNS)
    if match is None or evidence.exit is None:
        return None
    return _failure(match[0], evidence, evidence.exit, match[1])


def find_failure(
    evidence: Evidence, patterns: Sequence[FailurePattern] = GENERIC_PATTERNS
) -> RunFailure | None:
    """Return the failure in the output of a program that ended well without numbers; None without a match."""
    match = _find_match(evidence, ADB_PATTERNS) or _find_match(evidence, patterns)
    if match is None or evidence.exit is None:
        return None
    return _failure(match[0], evidence, evidence.exit, match[1])


def unknown_flag_failure(evidence: Evidence, flag: str) -> RunFailure:
    """Return the failure of a program that ignored an unknown flag: it ran something else."""
    ended = evidence.exit or ExitRecord(code=0, duration_s=0.0)
    kind = KINDS["run.unknown_flag"]
    kind = replace(kind, what=kind.what.format(flag=flag))
    return _failure(kind, evidence, ended, None, detail="; it went on without")


def _run_error_failure(error: RunError) -> RunFailure:
    # Nothing ran, and never will on this device as it is, so the outcome is that of an unsupported cell.
    is_impossible = error.code == ControlImpossible.code
    return RunFailure(
        code=error.code,
        outcome=Outcome.UNSUPPORTED if is_impossible else Outcome.INCONCLUSIVE,
        blame=error.blame,
        message=error.message,
        hint=error.hint,
    )


def _timeout_failure(evidence: Evidence, ended: ExitRecord) -> RunFailure:
    line = _last_text(evidence.stdout) or _last_text(evidence.stderr)
    return RunFailure(
        code="run.timed_out",
        outcome=Outcome.FAILED,
        blame=Blame.VARIANT,
        message=f"{_program(evidence)} did not end and was killed after {ended.duration_s:.1f} s",
        hint="fewer iterations or a longer timeout_s, unless it hangs: its last line shows where",
        line=line,
    )


def _exit_failure(evidence: Evidence, ended: ExitRecord, patterns: Sequence[FailurePattern]) -> RunFailure:
    match = _find_match(evidence, [pattern for pattern in patterns if not pattern.is_weak])
    if match is not None:
        return _failure(match[0], evidence, ended, match[1])
    last_line, has_kind = _last_line(evidence), ended.code in KIND_BY_EXIT_CODE
    weak = None if has_kind else _find_match(evidence, [pattern for pattern in patterns if pattern.is_weak])
    # A message on the way does not hide the program's own last words.
    if weak is not None and last_line in (None, weak[1]):
        return _failure(weak[0], evidence, ended, weak[1])
    line = last_line or _last_error(evidence.stderr) or _last_error(evidence.stdout)
    by_line = KINDS["run.crashed" if line and CRASH.search(line) else "run.failed"]
    detail = "" if line else ", and it printed nothing"
    return _failure(KIND_BY_EXIT_CODE.get(ended.code, by_line), evidence, ended, line, detail=detail)


def _failure(
    kind: FailureKind, evidence: Evidence, ended: ExitRecord, line: str | None, *, detail: str = ""
) -> RunFailure:
    return RunFailure(
        code=kind.code,
        outcome=kind.outcome,
        blame=kind.blame,
        message=f"{_program(evidence)} {kind.what} ({_exit_text(ended.code)}){detail}",
        hint=kind.hint,
        line=line,
    )


def _find_match(evidence: Evidence, patterns: Sequence[FailurePattern]) -> tuple[FailureKind, str] | None:
    weak = [pattern for pattern in patterns if pattern.is_weak]
    strong = [pattern for pattern in patterns if not pattern.is_weak]
    matches = (
        _find_match_in(text, group) for group in (strong, weak) for text in (evidence.stderr, evidence.stdout)
    )
    return next((match for match in matches if match is not None), None)


def _find_match_in(text: str, patterns: Sequence[FailurePattern]) -> tuple[FailureKind, str] | None:
    text = text.replace("\r", "\n") if "\r" in text else text
    text = _LINKERS_WARNING.sub("", text) if "WARNING: linker" in text else text
    # Searching megabytes for each pattern separately would take twenty seconds, while no other write can
    # start.
    prefilter = pattern_prefilter(tuple(pattern.pattern.pattern for pattern in patterns))
    for pattern in (patterns[index] for index in prefilter.candidate_indexes(text)):
        matches = islice(pattern.pattern.finditer(text), _MAX_MATCHES)
        # The line that names the failure, not the first one with a word of it.
        match = min(matches, key=lambda match: _rank(_line_around(match)), default=None)
        if match is not None:
            kind = replace(pattern.kind, what=pattern.kind.what.format(**match.groupdict()))
            return kind, _line_around(match)
    return None


def _last_line(evidence: Evidence) -> str | None:
    for pattern in LAST_LINE_PATTERNS:
        match = pattern.search(evidence.stderr) or pattern.search(evidence.stdout)
        if match is not None:
            return _line_around(match)
    return None


def _line_around(match: re.Match[str]) -> str:
    start = match.string.rfind("\n", 0, match.start()) + 1
    end = match.string.find("\n", match.end())
    line = match.string[start : end if end >= 0 else None]
    return line.strip()[:_LONGEST_LINE]


def _rank(line: str) -> int:
    """Return 0 for a line that names a failure, 2 for one that only mentions its words, 1 for others."""
    if _MENTIONS.search(line) is not None:
        return 2
    return 0 if _NAMES.search(line) is not None else 1


def _last_error(text: str) -> str | None:
    """Return the last of the final lines that calls itself an error; without one the last line."""
    lines = [line.strip() for line in text.splitlines()[-_FINAL_LINES:]]
    error = next((line for line in reversed(lines) if _ERROR.search(line) is not None), None)
    return _last_text(text) if error is None else error[:_LONGEST_LINE]


def _last_text(text: str) -> str | None:
    lines = (line.strip() for line in reversed(text.splitlines()))
    return next((line[:_LONGEST_LINE] for line in lines if line), None)


def _program(evidence: Evidence) -> str:
    name = evidence.argv[0].rpartition("/")[2] if evidence.argv else ""
    # In the device's cache, files are named by their digests, which mean nothing to a person.
    return "the program" if not name or is_digest(name) else name


def _exit_text(code: int) -> str:
    name = NAME_BY_SIGNAL.get(code - 128)
    return f"exit code {code}, SIG{name}" if name else f"exit code {code}"
