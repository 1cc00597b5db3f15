"""What Arm's `gatord` prints: its version, whether it is ready, and the cores it found."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

_VERSION = re.compile(r"Streamline gatord version ([0-9]{1,6})(?: \(Streamline (v[\w.]{1,20})\))?")
_CORE = re.compile(r"CPU ([0-9]{1,4}) is configured to use CPUID (0x[0-9a-fA-F]{1,8})")
_ERROR = re.compile(r"^.{0,40}(?:[Ff]ailed|[Ee]rror)\b.{0,200}$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class GatordOutput:
    """One or more starts of it. Errors and `Killed` do not mean that a capture was not completed."""

    version: int | None
    release: str | None
    ready: bool
    killed: bool
    #: By core: implementer and part in one number.
    cpuid_by_core: Mapping[int, str]
    errors: tuple[str, ...]


def gatord_output(text: str) -> GatordOutput:
    """Read what its console shows."""
    version = _VERSION.search(text)
    return GatordOutput(
        version=int(version[1]) if version else None,
        release=version[2] if version else None,
        ready="Gator ready" in text,
        killed=re.search(r"^Killed\s*$", text, re.MULTILINE) is not None,
        cpuid_by_core={int(core): cpuid for core, cpuid in _CORE.findall(text)},
        errors=tuple(line.strip() for line in _ERROR.findall(text)),
    )
