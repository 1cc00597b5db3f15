"""The matrix of a run: of a model file, of a program, or as the caller wrote it."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from farm.cli.matrices.file import send_file
from farm.cli.run.comparison import comparison_spec
from farm.cli.run.matrix import RunOptions, harness_spec, program_spec
from farm.client.farm_client import FarmClient
from farm.core.base.setting_values import SettingValue
from farm.core.errors import InvalidInput
from farm.core.matrices.matrix import value_text
from farm.presentation.text import past_moment
from farm.wire.documents.matrices.matrix import matrix_spec, read_matrix


def model_spec(
    client: FarmClient,
    path: str | Path | Sequence[str | Path] | None,
    *,
    harness: str | Sequence[str] | None,
    devices: tuple[str, ...],
    backends: tuple[str, ...],
    rounds: int,
    settings: Mapping[str, SettingValue],
    model: str | None,
    precision: str | None,
    inputs: Sequence[str],
    timeout_s: float,
) -> dict[str, object]:
    """Return the matrix of `Farm.run`, and register its files."""
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
    harnesses = (harness,) if isinstance(harness, str) else tuple(harness or ())
    if path is not None and not isinstance(path, str | Path):
        return comparison_spec(client, list(map(str, path)), harnesses, flags, options)
    if path is None and not harnesses:
        raise InvalidInput("neither a file nor a harness is named", hint='farm.run(None, harness="NAME")')
    file = None if path is None else str(path)
    return harness_spec(client, file, next(iter(harnesses), None), flags, options)


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


def read_spec(
    matrix: Mapping[str, Any] | str | Path, *, check: Callable[..., object] = matrix_spec
) -> Mapping[str, object]:
    """Return a matrix as plain data, checked; a text of one line is the path of a file.

    Raises:
        InvalidInput: the file cannot be read, or is not a matrix.
    """
    if isinstance(matrix, Mapping):
        return matrix
    if isinstance(matrix, Path) or "\n" not in matrix:
        return send_file(Path(matrix), lambda spec: spec, check=check)
    return read_matrix(matrix, check=check)


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
