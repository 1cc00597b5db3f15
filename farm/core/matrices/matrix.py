"""A matrix as submitted, and its cells on devices."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from farm.core.base.ids import DeviceId, VariantId
from farm.core.base.setting_values import SettingValue
from farm.core.devices.condition import Gates
from farm.core.devices.controls import Controls
from farm.core.devices.selector import Selector
from farm.core.matrices.rounds import SequentialRounds
from farm.core.models.declared_inputs import InputProblem
from farm.core.models.variant import BACKEND_AXIS, HARNESS_AXIS, VARIANT_AXES, Manifest
from farm.core.runs.measurement import DEFAULT_MARGIN, EnergyMethod

#: Value by axis: all of a cell's, or some that pick cells. Besides these axes, every harness flag can be one.
CellKey = Mapping[str, SettingValue]
#: How often each cell is measured: a number, or until it is decided.
Rounds = int | SequentialRounds


DEFAULT_NOISE_LIMIT = 0.25
#: Where a matrix does not say: a difference of 3 % shows at a noise of 2 %.
USUAL_ROUNDS = 10
MAX_ROUNDS = 100
#: All devices together, excluded ones too.
MAX_CELLS = 1_000_000
#: Of one device: each is held in memory while a matrix is expanded.
MAX_KEYS = 200_000
#: Starts of all cells in all rounds.
MAX_JOBS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixSpec:
    """A matrix as submitted, well-formed but not yet compared with what the farm has."""

    name: str
    #: Several are an axis; a cell of `include` may name another one.
    harness: str | tuple[str, ...]
    axes: Mapping[str, tuple[SettingValue, ...]] = field(default_factory=dict)
    settings: CellKey = field(default_factory=dict)
    #: Further cells; what one leaves out is the axis's value where the axis has just one.
    include: tuple[CellKey, ...] = ()
    #: Cells of the axes that have all of one of these are left out.
    exclude: tuple[CellKey, ...] = ()
    devices: tuple[Selector, ...]
    rounds: Rounds = USUAL_ROUNDS
    #: What cells are compared to: see `farm.core.matrices.baseline`.
    baseline: CellKey | None = None
    #: Metrics besides the time that tables show; the harness may print others.
    metrics: tuple[str, ...] = ()
    #: The inputs of all its files, such as `1x3x224x224:float32`; empty: those of each file.
    inputs: tuple[str, ...] = ()
    #: Each baseline gets a replica, to measure the difference between equals.
    aa: bool = False
    seed: int | None = None
    timeout_s: float = 120.0
    #: Seconds that each process works back to back; None: as many iterations as the flags say.
    sustained: int | None = None
    gates: Gates = field(default_factory=Gates)
    controls: Controls = field(default_factory=Controls)
    sampling: bool = True
    energy: EnergyMethod = "none"
    equivalence_margin: float = DEFAULT_MARGIN
    noise_limit: float = DEFAULT_NOISE_LIMIT
    priority: int = 0

    @property
    def harnesses(self) -> tuple[str, ...]:
        """Return the harnesses of its cells, each once."""
        own = (self.harness,) if isinstance(self.harness, str) else self.harness
        included = [str(cell[HARNESS_AXIS]) for cell in self.include if HARNESS_AXIS in cell]
        return tuple(dict.fromkeys((*own, *included)))

    @property
    def harness_text(self) -> str:
        """Return the names of its harnesses, separated by commas."""
        return ", ".join(self.harnesses)

    @property
    def has_harness_axis(self) -> bool:
        """Return whether the keys of its cells name their harness."""
        return not isinstance(self.harness, str) or any(HARNESS_AXIS in cell for cell in self.include)

    @property
    def round_range(self) -> tuple[int, int]:
        """Return the rounds that are queued at its submission, and those that it may grow to."""
        return (self.rounds, self.rounds) if isinstance(self.rounds, int) else self.rounds.bounds


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownVariant:
    """A registered variant."""

    variant_id: VariantId
    manifest: Manifest
    #: The farm has let its file go.
    expired: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownHarness:
    """A harness adapter and its registered programs, as far as matrices care."""

    name: str
    #: Every flag with its default, whose type is the flag's type.
    defaults: CellKey
    #: The least value of flags that have one.
    minimums: Mapping[str, int] = field(default_factory=dict)
    #: The greatest value of flags that have one.
    maximums: Mapping[str, int] = field(default_factory=dict)
    #: The only values of flags that have some.
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    backends: Sequence[str]
    #: ABIs for which a program is registered; `any` for scripts.
    abis: Sequence[str]
    #: The reason why the harness cannot run a file, or without one, on a backend; None when it can.
    unsupported: Callable[[Manifest | None, str], str | None]
    #: The flags that tell the tool the inputs of a file, besides those that a person states; None where it
    #: cannot be told.
    input_settings: Callable[[Manifest, CellKey], CellKey | InputProblem | None] = field(
        default=lambda _variant, _given: None
    )
    #: In a sustained matrix, the only values of flags with which it works for a given time; else empty.
    sustained_settings: CellKey = field(default_factory=dict)
    #: If it needs none, matrices of it have no variant axes.
    needs_model: bool = True
    #: By ABI, flags that its program does not know.
    missing_flags: Mapping[str, frozenset[str]] = field(default_factory=dict)
    #: ABIs for whose program the farm has let a file go.
    expired: frozenset[str] = frozenset()
    #: Names of the metrics that it can print; `*` stands for any text.
    metrics: Sequence[str] = ()


class KnownHarnesses:
    """The harnesses of one matrix; they all run models, or none does."""

    def __init__(self, harnesses: Sequence[KnownHarness]) -> None:
        """Take them in the order of the matrix, which is not empty."""
        self.all = tuple(harnesses)
        self._by_name = {harness.name: harness for harness in harnesses}

    @property
    def names(self) -> str:
        """Return the names, as a message shows them."""
        return ", ".join(self._by_name)

    @property
    def needs_model(self) -> bool:
        """Return whether its cells have a file."""
        return self.all[0].needs_model

    def named(self, name: str) -> KnownHarness:
        """Return one by its name."""
        return self._by_name[name]

    def of(self, key: CellKey) -> KnownHarness:
        """Return the harness of a cell: the only one, where keys name none."""
        return self._by_name[str(key[HARNESS_AXIS])] if HARNESS_AXIS in key else self.all[0]

    def with_flag(self, flag: str) -> list[KnownHarness]:
        """Return those that have a flag."""
        return [harness for harness in self.all if flag in harness.defaults]


def required_axes(harnesses: KnownHarnesses) -> tuple[str, ...]:
    """Return the axes that every cell must give itself; nothing is guessed."""
    return ("model", "precision", "format", BACKEND_AXIS) if harnesses.needs_model else (BACKEND_AXIS,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A cell before it is put on devices: the same on each that can run it."""

    key: CellKey
    harness: str
    #: None where the harness runs no model.
    variant_id: VariantId | None
    backend: str
    #: Complete, defaults filled in.
    settings: CellKey
    #: 2 for the replica of an A/A pair.
    replica: int
    #: The slot that this one is compared to, by its number.
    baseline: int | None
    is_baseline: bool
    #: The ABI that the program must be of; None where the file is for any.
    abi: str | None = None
    #: The program that it runs; None for the current one of its device.
    program_id: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CellAssignment:
    """The cells of one device: neighbours in the expansion, in the order of their slots."""

    device_id: DeviceId
    #: Index of the first.
    first: int
    #: Numbers of the slots that run there.
    slots: Sequence[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One variant x backend x settings x device.

    At most one of `is_baseline` and `baseline_index` is set; neither is where the cell's baseline cannot run.
    """

    #: Position in the expansion, from 0.
    index: int
    device_id: DeviceId
    harness: str
    #: None where the harness runs no model.
    variant_id: VariantId | None
    backend: str
    #: Complete, defaults filled in.
    settings: CellKey
    #: 2 for the replica of an A/A pair.
    replica: int = 1
    #: Value by axis; flags that its harness does not have are missing.
    key: CellKey
    #: Index of the cell on the same device that this one is compared to.
    baseline_index: int | None
    is_baseline: bool


class RejectionKind(StrEnum):
    """The reason why a cell does not run."""

    #: A rule of the matrix leaves it out.
    EXCLUDED = "excluded"
    #: No such file is registered.
    NO_VARIANT = "no_variant"
    #: The harness or the file cannot do it.
    UNSUPPORTED = "unsupported"
    #: No program of the harness is registered for the phone's ABI.
    NO_PROGRAM = "no_program"
    #: The farm has let a file go that the cell needs.
    EXPIRED = "expired"

    @property
    def wants_file(self) -> bool:
        """Return whether the cell would run if its file were registered."""
        return self in (RejectionKind.NO_VARIANT, RejectionKind.EXPIRED)


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectedCell:
    """A cell that does not run, kept with the reason. Without `device_id` it is so on every device."""

    key: CellKey
    device_id: DeviceId | None = None
    rejection: RejectionKind
    reason: str
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectedCells:
    """Cells that do not run for the same reason, on the same devices."""

    kind: RejectionKind
    reason: str
    hint: str
    labels: Sequence[str]
    #: Empty: on every device.
    devices: Sequence[str]


def group_rejected(
    cells: Iterable[tuple[RejectionKind, str, str, str, str | None]],
) -> Sequence[RejectedCells]:
    """Group cells by the reason for which they do not run, and by the devices where they do not.

    Args:
        cells: kind, reason, hint, label and device of each; without a device it is so on every one.
    """
    devices_by_cell: defaultdict[tuple[RejectionKind, str, str, str], list[str]] = defaultdict(list)
    for kind, reason, hint, label, device in cells:
        devices_by_cell[kind, reason, hint, label] += [] if device is None else [device]
    labels_by_reason: defaultdict[tuple[RejectionKind, str, str, tuple[str, ...]], list[str]]
    labels_by_reason = defaultdict(list)
    for (kind, reason, hint, label), devices in devices_by_cell.items():
        labels_by_reason[kind, reason, hint, tuple(devices)].append(label)
    return [
        RejectedCells(kind=kind, reason=reason, hint=hint, labels=labels, devices=devices)
        for (kind, reason, hint, devices), labels in labels_by_reason.items()
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Expansion:
    """A matrix expanded on this farm: slots per device, since cells may be a million."""

    slots: tuple[Slot, ...]
    assignments: tuple[CellAssignment, ...]
    rejected: tuple[RejectedCell, ...]
    #: The cell that all others are compared to, where the baseline names one.
    anchor: CellKey | None = None

    @property
    def cell_count(self) -> int:
        """Return the number of cells without making them."""
        return sum(len(assignment.slots) for assignment in self.assignments)

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Return all cells, made at each call; those of one device are adjacent."""
        return tuple(cell for assignment in self.assignments for cell in cells_of(assignment, self.slots))


def cells_of(assignment: CellAssignment, slots: Sequence[Slot]) -> Iterator[Cell]:
    """Yield one device's cells; the baseline is None where it cannot run there."""
    index_by_slot = {number: assignment.first + place for place, number in enumerate(assignment.slots)}
    for number, index in index_by_slot.items():
        slot = slots[number]
        yield Cell(
            index=index,
            device_id=assignment.device_id,
            harness=slot.harness,
            variant_id=slot.variant_id,
            backend=slot.backend,
            settings=slot.settings,
            replica=slot.replica,
            key=slot.key,
            baseline_index=None if slot.baseline is None else index_by_slot.get(slot.baseline),
            is_baseline=slot.is_baseline,
        )


def key_text(key: CellKey) -> str:
    """Format a key as a user would write it: `{precision: int8-core, iter: 30}`."""
    return "{" + ", ".join(f"{axis}: {value_text(value)}" for axis, value in key.items()) + "}"


def has_all(key: CellKey, some: CellKey) -> bool:
    """Tell whether a cell has all of the given values; false when none is given."""
    return bool(some) and all(axis in key and key[axis] == value for axis, value in some.items())


def varying_axes(keys: Iterable[CellKey]) -> frozenset[str]:
    """Return the axes with more than one value among the keys."""
    values: dict[str, set[SettingValue]] = {}
    for key in keys:
        for axis, value in key.items():
            values.setdefault(axis, set()).add(value)
    return frozenset(axis for axis, distinct in values.items() if len(distinct) > 1)


def cell_label_by_axes(key: CellKey, axes: frozenset[str], *, replica: int = 1) -> str:
    """Name a cell by these axes, in the key's order; by all of its axes if there are none."""
    words = [_word(axis, value) for axis, value in key.items() if axis in axes or not axes]
    return " ".join(words) + (" (A/A)" if replica > 1 else "")


def _word(axis: str, value: SettingValue) -> str:
    # A target has the name of a backend: without a prefix, the two are ambiguous.
    named = axis in {HARNESS_AXIS, *VARIANT_AXES, BACKEND_AXIS} - {"target"}
    return value_text(value) if named else f"{axis}={value_text(value)}"


def value_text(value: SettingValue) -> str:
    """Format a value as a user would write it in YAML."""
    return str(value).lower() if isinstance(value, bool) else str(value)
