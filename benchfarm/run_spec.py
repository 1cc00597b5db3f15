"""The matrix of a run: of a model file, of a program, or as the caller wrote it."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from farm.blobs.inspection import check_model_file
from farm.cli.matrices.file import send_file
from farm.cli.run.matrix import RunOptions, harness_spec, program_spec
from farm.cli.run.model_file import named_variant
from farm.client.farm_client import FarmClient
from farm.core.base.setting_values import SettingValue
from farm.core.errors import InvalidInput
from farm.core.matrices.matrix import value_text
from farm.presentation.text import past_moment
from farm.wire.documents.matrices.matrix import read_matrix


def model_spec(
    client: FarmClient,
    path: str | Path | None,
    *,
    harness: str | None,
    devices: tuple[str, ...],
    backends: tuple[str, ...],
    rounds: int,
    settings: Mapping[str, SettingValue],
    model: str | None,
    precision: str | None,
    inputs: Sequence[str],
    timeout_s: float,
) -> dict[str, object]:
    """Return the matrix of `Farm.run`, and register its file."""
    options = RunOptions(
        devices=devices,
        backends=backends,
        rounds=rounds,
        timeout_s=timeout_s,
        model=model,
        precision=precision,
        inputs=tuple(inputs),
    )
    flags = [f"--{name}={value_text(value)}" for name, value in settings.items()]
    file = None if path is None else str(path)
    return harness_spec(client, file, harness or _only_harness(client, file), flags, options)


def program_matrix(
    client: FarmClient,
    program: Path,
    arguments: Sequence[str],
    *,
    devices: tuple[str, ...],
    rounds: int,
    time: str | None,
    metrics: Sequence[str],
    name: str | None,
    timeout_s: float,
) -> dict[str, object]:
    """Return the matrix of `Farm.run_program`, and register its program."""
    options = RunOptions(
        devices=devices, rounds=rounds, timeout_s=timeout_s, time=time, metrics=tuple(metrics)
    )
    return program_spec(client, program, list(arguments), name, options)


def read_spec(matrix: Mapping[str, Any] | str | Path) -> Mapping[str, object]:
    """Return a matrix as plain data; a text of one line is the path of a file.

    Raises:
        InvalidInput: the file cannot be read, or it is no matrix.
    """
    if isinstance(matrix, Mapping):
        return matrix
    if isinstance(matrix, Path) or "\n" not in matrix:
        return send_file(Path(matrix), lambda spec: spec)
    return read_matrix(matrix)


def past_time(moment: datetime | str | None) -> datetime | None:
    """Return a time, or one that was `7d` ago.

    Raises:
        InvalidInput: the text is no time, or the time has no time zone.
    """
    if isinstance(moment, datetime):
        if moment.tzinfo is None:
            hint = "give it one: datetime(2026, 3, 1, tzinfo=UTC)"
            raise InvalidInput(f"{moment} has no time zone", hint=hint)
        return moment
    return past_moment(moment, option="time")


def _only_harness(client: FarmClient, file: str | None) -> str:
    """Return the only harness with a program that runs files of a format.

    Raises:
        InvalidInput: there is none, or several.
    """
    if file is None:
        raise InvalidInput("neither a file nor a harness is named", hint='farm.run(None, harness="NAME")')
    path = Path(file)
    if path.is_file():
        format = str(check_model_file(path))
    else:
        format = str(named_variant(client.variants(), file).manifest.recipe.format)
    fitting = [adapter.name for adapter in client.adapters() if adapter.abis and format in adapter.formats]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        hint = f"choose one: harness={fitting[0]!r}"
        raise InvalidInput(f"{', '.join(fitting)} all run {format} files", hint=hint)
    hint = "`farm harness add` registers one; a definition of your own needs harness='NAME'"
    raise InvalidInput(f"no harness with a program runs {format} files", hint=hint)
