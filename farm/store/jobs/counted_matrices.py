"""What one farm process has counted of the jobs of matrices, so that a look reads what is new."""

from dataclasses import dataclass, field

from farm.store.jobs.finished_matrices import FinishedMatrices
from farm.store.jobs.running_matrices import RunningMatrices


@dataclass(frozen=True, slots=True)
class CountedMatrices:
    """The matrices that were counted; an empty one counts all that it is asked for."""

    finished: FinishedMatrices = field(default_factory=FinishedMatrices)
    running: RunningMatrices = field(default_factory=RunningMatrices)
