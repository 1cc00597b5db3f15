"""Looking into a model file before the farm takes it; nothing of it is run."""

import zipfile
from pathlib import Path

from farm.core.errors import VariantInvalid
from farm.core.variant import Format
from farm.core.variant_file import format_of


def check_model_file(path: Path, *, called: str | None = None) -> Format:
    """The format of a model file, from its content.

    Args:
        path: where it is.
        called: how errors name it; by its path where nothing is said.

    Raises:
        VariantInvalid: it cannot be read, or is neither TorchScript nor a lite-interpreter archive.
    """
    name = called or str(path)
    try:
        names = _record_names(path)
    except OSError as error:
        raise VariantInvalid(f"{name}: cannot be read: {error.strerror or error}") from error
    except zipfile.BadZipFile as error:
        raise VariantInvalid(
            f"{name}: not a model file: {_first_look(path)}",
            hint="TorchScript and lite files are zip archives; if this was one, it was cut short",
        ) from error
    try:
        return format_of(names)
    except VariantInvalid as error:
        raise VariantInvalid(f"{name}: {error.message}", hint=error.hint) from error


def _record_names(path: Path) -> list[str]:
    with zipfile.ZipFile(path) as archive:
        return archive.namelist()


def _first_look(path: Path) -> str:
    with path.open("rb") as file:
        head = file.read(8)
    if not head:
        return "it is empty"
    if head.startswith(b"PK"):
        return f"it starts as a zip archive, but its end is missing ({path.stat().st_size} bytes)"
    if head[4:] == b"PTMF":
        return "it is a flatbuffer file, which this version does not take"
    if head[4:] == b"TFL3":
        return "it is a TensorFlow Lite file"
    return f"it is not a zip archive ({path.stat().st_size} bytes, starting {head.hex(' ')})"
