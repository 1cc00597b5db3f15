"""The adapter of every program that has a definition of its own."""

from collections.abc import Sequence

from farm.core.models.variant import Format
from farm.core.programs.bundle import command_words, plan_files
from farm.core.programs.definition import Definition
from farm.core.runs.evidence import Evidence
from farm.core.runs.measurement import Reading, RunFailure
from farm.core.runs.plan import RunPlan
from farm.harness.base.adapter import RunRequest, model_file
from farm.harness.base.options import GenericOptions
from farm.harness.generic.command import argument_words
from farm.harness.generic.result import clock_covers, read_output


class GenericHarness(GenericOptions):
    """Calls a program as its definition describes, and reads its output at the places of the definition."""

    parser_version: int = 4

    def __init__(self, definition: Definition) -> None:
        super().__init__(definition)
        self.definition = definition
        self.flags_are_words: bool = False
        self.formats: Sequence[Format] = ()
        self.clock_covers: str = clock_covers(definition)

    def plan(self, request: RunRequest) -> RunPlan:
        """Return the plan with the command of the definition."""
        files = plan_files(request.bundle)
        words = argument_words(self.definition, backend=request.backend, settings=request.settings)
        return RunPlan(
            harness=self.name,
            backend=request.backend,
            settings=request.settings,
            files=files if request.variant is None else (*files, model_file(request.variant)),
            argv=command_words(request.bundle, list(words)),
            env=request.bundle.env,
            timeout_s=request.timeout_s,
            gates=request.gates,
        )

    def parse(self, plan: RunPlan, evidence: Evidence) -> Reading | RunFailure:
        """Return the numbers at the definition's places, or the duration of the whole process."""
        return read_output(self.definition, plan, evidence)
