"""Job templates: the frozen expansion of a matrix, from which its rows are made later."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from farm.core.base.ids import DeviceId, VariantId
from farm.core.matrices.matrix import (
    CellKey,
    Expansion,
    Slot,
    cell_label_by_axes,
    shuffle_block,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateSlot:
    """A cell, as it is stored, of every device that runs it."""

    label: str
    variant_id: VariantId | None
    backend: str
    #: Of the flags that not all slots have alike.
    settings: CellKey
    replica: int
    #: The slot that this one is compared to, by its number.
    baseline: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplatePart:
    """The cells of one device."""

    device_id: DeviceId
    program_id: int
    #: Index of the first.
    first: int
    #: Numbers of its slots, rising; None: all.
    slots: tuple[int, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobTemplate:
    """A matrix as it was expanded: the same slots, parts, rounds and seed give the same rows for ever."""

    rounds: int
    seed: int
    #: All flags; a slot says where it differs.
    settings: CellKey
    slots: tuple[TemplateSlot, ...]
    parts: tuple[TemplatePart, ...]

    def cell_count(self, part: TemplatePart) -> int:
        """Return how many cells a device has."""
        return len(self.slots if part.slots is None else part.slots)

    def job_count(self, part: TemplatePart) -> int:
        """Return how many jobs a device has, without repeats."""
        return self.cell_count(part) * self.rounds


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignedSlot:
    """A cell of a device, by its index in the expansion."""

    index: int
    slot: TemplateSlot
    baseline_index: int | None


@dataclass(frozen=True, slots=True)
class TemplateJob:
    """One cell in one round."""

    index: int
    round: int


class DeviceExpansion:
    """Builds rows of one device from a job template, any part of them.

    Jobs are counted in the order in which the device runs them: its rounds one after the other, each a
    randomized block. So what `jobs` gives for parts in a row is what it gives for the whole.
    """

    def __init__(self, job_template: JobTemplate, part: TemplatePart) -> None:
        """Prepare one part of a job template."""
        self._template = job_template
        self.part = part
        self.cell_count = job_template.cell_count(part)
        self.job_count = job_template.job_count(part)
        self._places = None if part.slots is None else {slot: place for place, slot in enumerate(part.slots)}
        #: Of the round that was asked for last: rows are asked for in their order.
        self._block: tuple[int, list[int]] = (0, [])

    def jobs(self, start: int, stop: int) -> Iterator[TemplateJob]:
        """Yield the jobs from `start` up to, not including, `stop`."""
        while start < min(stop, self.job_count):
            round, done = start // self.cell_count + 1, start % self.cell_count
            left = min(stop, self.job_count) - start
            for index in islice(self._order(round), done, done + left):
                yield TemplateJob(index, round)
            start += min(left, self.cell_count - done)

    def cells(self, indexes: Iterable[int]) -> Iterator[AssignedSlot]:
        """Yield cells, each after its baseline, since a cell is not stored without it."""
        given: dict[int, None] = {}
        for index in indexes:
            baseline = self._assigned_slot(index).baseline_index
            if baseline is not None:
                given[baseline] = None
            given[index] = None
        return (self._assigned_slot(index) for index in given)

    def settings(self, slot: TemplateSlot) -> CellKey:
        """Return all flags of a cell."""
        return {**self._template.settings, **slot.settings}

    def _order(self, round: int) -> list[int]:
        if self._block[0] != round:
            indexes = range(self.part.first, self.part.first + self.cell_count)
            seed = self._template.seed
            self._block = (
                round,
                shuffle_block(indexes, device_id=self.part.device_id, round=round, seed=seed),
            )
        return self._block[1]

    def _assigned_slot(self, index: int) -> AssignedSlot:
        place = index - self.part.first
        number = place if self.part.slots is None else self.part.slots[place]
        slot = self._template.slots[number]
        return AssignedSlot(index=index, slot=slot, baseline_index=self._baseline_index(slot))

    def _baseline_index(self, slot: TemplateSlot) -> int | None:
        if slot.baseline is None or self._places is None:
            return None if slot.baseline is None else self.part.first + slot.baseline
        place = self._places.get(slot.baseline)
        return None if place is None else self.part.first + place


def freeze_expansion(
    expansion: Expansion,
    *,
    rounds: int,
    seed: int,
    varying: frozenset[str],
    program_by_device: Mapping[DeviceId, int],
) -> JobTemplate:
    """Freeze an expansion.

    Args:
        varying: the axes that labels name.
        program_by_device: what each device with cells runs.
    """
    settings, alike = expansion.slots[0].settings, _common_settings(expansion.slots)
    return JobTemplate(
        rounds=rounds,
        seed=seed,
        settings=settings,
        slots=tuple(_template_slot(slot, alike, varying) for slot in expansion.slots),
        parts=tuple(
            TemplatePart(
                device_id=placement.device_id,
                program_id=program_by_device[placement.device_id],
                first=placement.first,
                slots=None if len(placement.slots) == len(expansion.slots) else tuple(placement.slots),
            )
            for placement in expansion.assignments
        ),
    )


def _common_settings(slots: Sequence[Slot]) -> frozenset[str]:
    """Return the flags that have the same value in all slots."""
    common = set(slots[0].settings.items())
    for slot in slots:
        common &= slot.settings.items()
    return frozenset(flag for flag, _ in common)


def _template_slot(slot: Slot, alike: frozenset[str], varying: frozenset[str]) -> TemplateSlot:
    return TemplateSlot(
        label=cell_label_by_axes(slot.key, varying, replica=slot.replica),
        variant_id=slot.variant_id,
        backend=slot.backend,
        settings={flag: value for flag, value in slot.settings.items() if flag not in alike},
        replica=slot.replica,
        baseline=slot.baseline,
    )
