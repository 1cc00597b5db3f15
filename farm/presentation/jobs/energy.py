"""The energy of one run, as text."""

from collections.abc import Iterator

from farm.core.runs.derived.energy import EnergyReading
from farm.presentation.text import Field


def energy_fields(energy: EnergyReading) -> Iterator[Field]:
    """Yield joules per inference with method and boundary, doubts, and what the number includes."""
    each = f"{energy.joules_per_inference * 1e3:.4g} mJ per inference"
    span = "" if energy.seconds is None else f" in {energy.seconds:.1f} s"
    yield "energy", f"{each}, {energy.method}: {energy.joules:.4g} J for {energy.inferences}{span}"
    if energy.unreliable is not None:
        yield "", f"unreliable: {energy.unreliable}"
    yield "", f"of {energy.boundary}"
    if energy.instrument is not None:
        yield "", f"measured by {energy.instrument}, imported by {energy.imported_by}"
    yield from (("", note) for note in energy.notes)
