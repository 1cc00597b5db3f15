"""How an adapter keeps one process at work for a given time: by seconds, or by a number of iterations."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil

from farm.core.base.setting_values import SettingValue
from farm.core.runs.derived.sustained import MAX_ITERATIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class SustainedFlags:
    """The flags of a tool that decide how long it works; seconds where it has them, else iterations."""

    #: Set to the seconds.
    seconds: tuple[str, ...] = ()
    #: Set to the number of iterations that take so long.
    iterations: str | None = None
    #: Set to these values, which would otherwise end or prolong the run.
    fixed: Mapping[str, SettingValue] = field(default_factory=dict)
    #: With other values a process works once, however long that takes: such a run cannot be sustained.
    required: Mapping[str, SettingValue] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the flags without which the tool cannot be told how long to work."""
        return self.seconds or ((self.iterations,) if self.iterations else ())


def sustained_settings(
    flags: SustainedFlags,
    settings: Mapping[str, SettingValue],
    *,
    sustained_s: int,
    iteration_ns: float | None,
) -> dict[str, SettingValue]:
    """Return the settings of a run that works for so long.

    Args:
        flags: of its tool.
        settings: of the cell, complete.
        sustained_s: the time in seconds.
        iteration_ns: what one iteration of the cell took before. Where it is needed and not known, the
            settings stay as they are: the run is a short one, and shows it.
    """
    if flags.seconds:
        duration = {name: type(settings[name])(sustained_s) for name in flags.seconds}
        return {**settings, **flags.fixed, **duration}
    if flags.iterations is None or iteration_ns is None:
        return dict(settings)
    number = min(MAX_ITERATIONS, max(1, ceil(sustained_s * 1e9 / iteration_ns)))
    return {**settings, **flags.fixed, flags.iterations: number}
