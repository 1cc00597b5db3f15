"""What a cell runs, as fields: the model file, the program and the flags; and which cell an attempt ran."""

from farm.core.base.ids import CellId, Digest, MatrixId
from farm.core.base.setting_values import SettingValue
from farm.core.models.variant import Format, PrecisionWord, SlowPath
from farm.wire.base import Wire


class CellSetup(Wire):
    """What a cell runs. The fields of the model file are empty where the harness runs no model."""

    model: str | None
    #: The name of the model file, as in `farm variant list`.
    variant: str | None
    #: A word of the farm's (`float32`), or that with which the file was added (`w8a16`).
    precision: PrecisionWord | None
    format: Format | None
    memory_format: str | None
    #: The backend that the model file was built for.
    target: str | None
    #: SHA-256 of the model file.
    variant_digest: Digest | None
    #: Whether it is a torch file in floating point whose weights are not packed for XNNPACK, or a library of
    #: TVM that nothing tuned: phones may run another file faster.
    unoptimized: bool = False
    #: What the model file shows of a way of computing that is known to be slow; None where it shows none.
    slow_path: SlowPath | None = None
    #: The requested backend.
    backend: str
    #: All flags of the harness.
    settings: dict[str, SettingValue]
    #: The flags that are not the harness's defaults.
    changed_settings: dict[str, SettingValue]
    harness: str
    #: SHA-256 over the program's files, environment, command and definition.
    program_digest: Digest


class AttemptCell(CellSetup):
    """The cell of a matrix that an attempt ran, and in which round."""

    matrix_id: MatrixId
    #: The name of the matrix.
    matrix: str
    cell_id: CellId
    label: str
    #: The label of the cell that it is compared with.
    baseline: str | None
    round: int
    #: Of its device and round, from 0.
    block: int
    repeat: int
