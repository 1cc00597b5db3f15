"""Caches that a runtime writes beside its model: the command that keeps regimes apart, and its records.

The model is a link in a folder of the run, where a runtime puts its caches. The folder is new in every job
and goes with it, so that no job finds the caches of another.
"""

import re
from collections.abc import Sequence

from farm.core.runs.derived.generation import CacheFile, Regime
from farm.harness.base.adapter import MODEL_FOLDER

_RECORD = re.compile(r"^benchfarm_cache (before|after) +([0-9]{1,15}) ([^\x00-\x1f/]{1,200})$")
_OURS = "benchfarm_cache "
#: Prints a record of each cache. `wc` of macOS and of old toyboxes pads its number.
_LIST = (
    f'caches() {{ for file in {MODEL_FOLDER}/*; do [ -L "$$file" ] || [ ! -f "$$file" ] ||'
    f' echo "{_OURS}$$1 $$(wc -c <"$$file" | tr -d " ") $${{file#{MODEL_FOLDER}/}}"; done; }}; '
)
_DROP = f'for file in {MODEL_FOLDER}/*; do [ -L "$$file" ] || rm -f "$$file"; done; '
_MEASURE = 'caches before; "$$@"; code=$$?; caches after; exit $$code'


def model_path(name: str) -> str:
    """Return where a plan lists the model: a link in the folder of caches."""
    return f"{MODEL_FOLDER}/{name}"


def with_regime(command: Sequence[str], regime: Regime, *, short: Sequence[str]) -> tuple[str, ...]:
    """Return a command that runs a tool in a regime, and ends as the tool ended.

    Args:
        command: of the measured process, in the placeholders of run plans.
        regime: `first` drops caches before; `cold` has another process make them before.
        short: arguments that are added for that other process, so that it ends soon.
    """
    match regime:
        case Regime.FIRST | Regime.WARM:
            script = _LIST + _DROP + _MEASURE
        case Regime.COLD:
            # Its output is shown only where it fails: the farm reads why.
            fails = "{ code=$$?; cat before.txt >&2; exit $$code; }; "
            script = f'{_LIST}"$$@" {" ".join(short)} >before.txt 2>&1 || {fails}{_MEASURE}'
    return ("sh", "-c", script, "sh", *command)


def caches(stdout: str, when: str) -> tuple[CacheFile, ...]:
    """Return the caches that were there `before` or `after` the measured process."""
    found = (_RECORD.match(line) for line in stdout.splitlines())
    return tuple(
        CacheFile(name=match[3], size_bytes=int(match[2]))
        for match in found
        if match is not None and match[1] == when
    )


def printed_text(stdout: str) -> str:
    """Return what the tool itself printed, without the records of caches."""
    return "".join(line for line in stdout.splitlines(keepends=True) if not line.startswith(_OURS))
