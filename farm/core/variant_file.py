"""Telling from the records of an archive what kind of model file it is."""

from collections.abc import Collection

from farm.core.errors import VariantInvalid
from farm.core.variant import Format

_CHECKPOINT_HINT = (
    "this looks like a checkpoint of torch.save, which holds weights only:"
    " script the model and save that, torch.jit.script(model).save(path)"
)


def format_of(names: Collection[str]) -> Format:
    """The format of an archive, from the names of its records.

    All records lie under one folder named after the file as it was saved. TorchScript has `code/` and
    `constants.pkl`; `bytecode.pkl` is what the lite interpreter reads (pytorch, serialization.md).

    Raises:
        VariantInvalid: the records are not those of a TorchScript archive.
    """
    records = {name.partition("/")[2] for name in names}
    has_code = any(record.startswith("code/") for record in records)
    if "data.pkl" not in records:
        raise VariantInvalid("not a model file: the archive has no record data.pkl")
    if not has_code or "constants.pkl" not in records:
        raise VariantInvalid(
            "not a model file: the archive has data.pkl but no code/ and constants.pkl",
            hint=_CHECKPOINT_HINT,
        )
    return Format.LITE if "bytecode.pkl" in records else Format.TORCHSCRIPT
