"""Job templates: the frozen expansion of a matrix, from which its rows are made later."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from farm.core.base.ids import DeviceId, VariantId
from farm.core.matrices.blocks import BLOCK_CANDIDATES, BlockPlan, PlannedStart, start_count_by_cell
from farm.core.matrices.matrix import CellKey, Expansion, Slot, cell_label_by_axes, cells_of


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
    #: The program that it runs; None for that of its part.
    program_id: int | None = None
    #: None where all slots have the same.
    harness: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplatePart:
    """The cells of one device."""

    device_id: DeviceId
    #: What slots run that name neither a program nor a harness.
    program_id: int
    #: Index of the first.
    first: int
    #: Numbers of its slots, rising; None: all.
    slots: tuple[int, ...] | None
    #: Of one round; None: each cell starts once, as it was before rounds had blocks.
    starts: int | None = None
    #: By harness, where slots have several.
    program_ids: Mapping[str, int] = field(default_factory=dict)

    def program_of(self, slot: TemplateSlot) -> int:
        """Return the program that a slot runs on this device."""
        if slot.program_id is not None:
            return slot.program_id
        return self.program_id if slot.harness is None else self.program_ids[slot.harness]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobTemplate:
    """A matrix as it was expanded: the same slots, parts, rounds and seed give the same rows for ever."""

    rounds: int
    seed: int
    #: All flags, a slot says where it differs; of several harnesses, those that all slots have alike.
    settings: CellKey
    slots: tuple[TemplateSlot, ...]
    parts: tuple[TemplatePart, ...]
    #: Of one block at most; None: a round is one block, as of matrices that are older than smaller ones.
    block_candidates: int | None = None

    def start_count_per_round(self, part: TemplatePart) -> int:
        """Return how many jobs a device has in one round, without repeats."""
        cells = self.slots if part.slots is None else part.slots
        return len(cells) if part.starts is None else part.starts

    @property
    def program_ids(self) -> set[int]:
        """Return the programs that its cells run."""
        own = {slot.program_id for slot in self.slots if slot.program_id is not None}
        of_parts = {program_id for part in self.parts for program_id in part.program_ids.values()}
        return own | of_parts | {part.program_id for part in self.parts}

    @property
    def job_count(self) -> int:
        """Return the number of jobs of all devices and rounds, without repeats."""
        return self.rounds * sum(map(self.start_count_per_round, self.parts))


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignedSlot:
    """A cell of a device, by its index in the expansion."""

    index: int
    slot: TemplateSlot
    baseline_index: int | None

    @property
    def replica(self) -> int:
        """Return 2 for the replica of an A/A pair."""
        return self.slot.replica


class DeviceExpansion:
    """Builds rows of one device from a job template, any part of them.

    Jobs are counted in the order in which the device runs them. So what `jobs` gives for parts in a row is
    what it gives for the whole.
    """

    def __init__(self, job_template: JobTemplate, part: TemplatePart) -> None:
        """Prepare one part of a job template."""
        self._template = job_template
        self.part = part
        self.start_count_per_round = job_template.start_count_per_round(part)
        self.job_count = self.start_count_per_round * job_template.rounds
        self._numbers = range(len(job_template.slots)) if part.slots is None else part.slots
        self._index_by_slot = {number: part.first + place for place, number in enumerate(self._numbers)}
        self._plan = BlockPlan(
            map(self._assigned_slot, range(part.first, part.first + len(self._numbers))),
            device_id=part.device_id,
            seed=job_template.seed,
            max_candidates=job_template.block_candidates,
        )

    def jobs(self, start: int, stop: int) -> list[PlannedStart]:
        """Return the jobs from `start` to the end of the block at `stop`: a block is queued as a whole."""
        return list(self._plan.starts(start, min(stop, self.job_count)))

    def cells(self, indexes: Iterable[int]) -> Iterator[AssignedSlot]:
        """Yield cells, each after its baseline, since a cell is not stored without it."""
        given: dict[int, None] = {}
        for index in indexes:
            baseline = self._assigned_slot(index).baseline_index
            given |= dict.fromkeys([index] if baseline is None else [baseline, index])
        return map(self._assigned_slot, given)

    def settings(self, slot: TemplateSlot) -> CellKey:
        """Return all flags of a cell."""
        return {**self._template.settings, **slot.settings}

    def _assigned_slot(self, index: int) -> AssignedSlot:
        slot = self._template.slots[self._numbers[index - self.part.first]]
        baseline = None if slot.baseline is None else self._index_by_slot.get(slot.baseline)
        return AssignedSlot(index=index, slot=slot, baseline_index=baseline)


def freeze_expansion(
    expansion: Expansion,
    *,
    rounds: int,
    seed: int,
    varying: frozenset[str],
    programs_by_device: Mapping[DeviceId, Mapping[str, int]],
) -> JobTemplate:
    """Freeze an expansion.

    Args:
        varying: the axes that labels name.
        programs_by_device: by harness, what each device with cells runs.
    """
    alike = _common_settings(expansion.slots)
    settings = expansion.slots[0].settings
    has_several = len({slot.harness for slot in expansion.slots}) > 1
    if has_several:
        settings = {flag: value for flag, value in settings.items() if flag in alike}
    starts: dict[Sequence[int], int] = {}
    for placement in expansion.assignments:
        # Most devices have the same cells.
        if tuple(placement.slots) not in starts:
            counts = start_count_by_cell(cells_of(placement, expansion.slots), BLOCK_CANDIDATES)
            starts[tuple(placement.slots)] = sum(counts.values())
    return JobTemplate(
        rounds=rounds,
        seed=seed,
        settings=settings,
        slots=tuple(
            _template_slot(slot, alike, varying, names_harness=has_several) for slot in expansion.slots
        ),
        parts=tuple(
            TemplatePart(
                device_id=placement.device_id,
                program_id=next(iter(programs_by_device[placement.device_id].values())),
                program_ids=programs_by_device[placement.device_id] if has_several else {},
                first=placement.first,
                slots=None if len(placement.slots) == len(expansion.slots) else tuple(placement.slots),
                starts=starts[tuple(placement.slots)],
            )
            for placement in expansion.assignments
        ),
        block_candidates=BLOCK_CANDIDATES,
    )


def _common_settings(slots: Sequence[Slot]) -> frozenset[str]:
    """Return the flags that have the same value in all slots."""
    common = set(slots[0].settings.items())
    for slot in slots:
        common &= slot.settings.items()
    return frozenset(flag for flag, _ in common)


def _template_slot(
    slot: Slot, alike: frozenset[str], varying: frozenset[str], *, names_harness: bool
) -> TemplateSlot:
    return TemplateSlot(
        label=cell_label_by_axes(slot.key, varying, replica=slot.replica),
        variant_id=slot.variant_id,
        backend=slot.backend,
        settings={flag: value for flag, value in slot.settings.items() if flag not in alike},
        replica=slot.replica,
        baseline=slot.baseline,
        program_id=slot.program_id,
        harness=slot.harness if names_harness else None,
    )
