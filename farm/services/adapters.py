"""Which adapter speaks for a registered program."""

from farm.harness.adapter import Harness
from farm.harness.registry import get_harness
from farm.store.programs import Program


def adapter_of(program: Program) -> Harness:
    """The farm's own adapter of that name.

    Raises:
        NotFound: this version of the farm has none.
    """
    return get_harness(program.harness)
