"""Options of a harness for matrices: its flags, its backends, and the files it runs."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from farm.core.base.setting_values import Flag, SettingValue
from farm.core.models.declared_inputs import InputProblem
from farm.core.models.variant import Manifest
from farm.core.programs.definition import Definition

_UNCOUNTED = "the definition of {} names no `iterations_flag`: nothing tells its program how long to work"


#: Flags by name, or why the tool cannot be told.
InputSettings = Mapping[str, SettingValue] | InputProblem | None


class HarnessOptions(Protocol):
    """The part of an adapter that a matrix is checked against; pure."""

    name: str
    flags: Mapping[str, Flag]
    #: True if a run needs a model file; without one, matrices have no variant axes.
    needs_model: bool
    #: Every backend of the tool; `unsupported` says which of them cannot be measured.
    backends: Sequence[str]
    #: Names of the metrics that the output may have besides the time; `*` at the end stands for any text.
    metrics: Sequence[str]
    #: The reason why nothing tells its program how long to work; None where something does.
    sustained_obstacle: str | None

    @property
    def sustained_settings(self) -> Mapping[str, SettingValue]:
        """Return the only values of flags with which it can be told how long to work."""

    def unsupported(self, variant: Manifest | None, backend: str) -> str | None:
        """Return why the variant, or a run without one, cannot run on the backend; None when it can."""

    def input_settings(self, variant: Manifest, given: Mapping[str, SettingValue]) -> InputSettings:
        """Return the flags that tell the tool the inputs of a variant.

        Args:
            variant: with the inputs that it is to run with.
            given: the flags that a person states, which stay as they are.

        Returns:
            None where the tool takes its inputs from the file and cannot be told others.
        """


class GenericOptions:
    """Options of a program that has a definition of its own."""

    def __init__(self, definition: Definition) -> None:
        self.name: str = definition.name
        self.flags: Mapping[str, Flag] = definition.flags
        self.needs_model: bool = definition.needs_model
        self.backends: Sequence[str] = tuple(definition.backends)
        self.metrics: Sequence[str] = tuple(definition.metrics)
        is_counted = definition.iterations_flag is not None
        self.sustained_obstacle: str | None = None if is_counted else _UNCOUNTED.format(definition.name)
        self.sustained_settings: Mapping[str, SettingValue] = {}

    def unsupported(self, variant: Manifest | None, backend: str) -> str | None:
        """Return why this harness cannot run on the backend; None when it can."""
        if backend in self.backends:
            return None
        return f"the definition of {self.name} has no backend {backend!r}: it has {', '.join(self.backends)}"

    def input_settings(self, variant: Manifest, given: Mapping[str, SettingValue]) -> InputSettings:
        """Return None: the farm does not know which flags of a program are about its inputs."""
        return None


def flag_defaults(options: HarnessOptions) -> dict[str, SettingValue]:
    """Return every setting of a harness with its default."""
    return {name: flag.default for name, flag in options.flags.items()}
