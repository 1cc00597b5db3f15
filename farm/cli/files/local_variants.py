"""Variants from files of this machine: built here, or elsewhere with facts from their owner."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from farm.blobs.inspection import (
    check_further_files_of,
    check_model_file,
    completed_manifest,
    further_files_of,
)
from farm.blobs.torch_file import torch_code
from farm.cli.files.program_upload import local_digest, matrix_name, upload_files
from farm.client.farm_client import FarmClient
from farm.core.base.ids import Digest, digest_of
from farm.core.base.spec_errors import name_hint
from farm.core.errors import Conflict, InvalidInput, VariantInvalid
from farm.core.models.builders import BACKENDS_BY_FORMAT
from farm.core.models.declared_inputs import declared_input
from farm.core.models.variant import (
    DIGEST_SHOWN,
    NAME_RULE,
    TORCH_FORMATS,
    Format,
    Manifest,
    Precision,
    Recipe,
    Variant,
    VariantFile,
    files_digest,
    find_invalid_name,
    is_precision,
    kept_files,
    precision_hint,
    variant_files,
    variant_name,
)
from farm.core.runs.plan import path_problem
from farm.variants.build import (
    NOT_TUNED,
    BuildProgress,
    BuiltVariant,
    TuningRequest,
    build_variants,
    known_digest,
)
from farm.variants.sources.source import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantBuildResult:
    """A registered variant. `how`: `built`, `uploaded` (the file was built earlier) or `reused`."""

    view: Variant
    how: str


def build_and_register(
    farm: FarmClient,
    source: Source,
    recipes: Sequence[Recipe],
    out_dir: Path,
    console: Console,
    *,
    tuning: TuningRequest = NOT_TUNED,
) -> list[VariantBuildResult]:
    """Build and register the variants that the farm does not have; files are built in `out_dir`.

    Records of a tuned variant are stored with it.

    Raises:
        InvalidInput: a recipe cannot be built from the source, or torch is not installed; nothing was built.
        VariantInvalid: a build failed.
    """
    keys = [(source.model, recipe, known_digest(source, recipe, tuning)) for recipe in recipes]
    kept = [view for view in farm.variants() if view.expired_at is None]
    # Of several files of one recipe, the current one of the name.
    manifests = ((view, view.manifest) for view in sorted(kept, key=lambda view: view.replaced_by is None))
    registered: dict[tuple[str, Recipe, Digest | None], Variant] = {
        (manifest.model, manifest.recipe, manifest.recipe_digest): view for view, manifest in manifests
    }
    with _build_bar(console, len(recipes)) as bar:
        return [
            _reuse_variant(farm, registered[key], bar)
            if key in registered
            else _build_variant(farm, source, key[1], out_dir, tuning, bar)
            for key in keys
        ]


class _BuildBar:
    """One progress bar for all variants; without a terminal, a line for each variant."""

    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress = progress
        self._task = task

    def step(self, name: str, step: str) -> None:
        self._progress.update(self._task, description=f"{name}: {step}")

    def done(self, name: str, how: str) -> None:
        self._progress.update(self._task, advance=1, description=f"{name}: {how}")
        self._progress.console.print(f"{name}: {how}", markup=False, soft_wrap=True)


@contextmanager
def _build_bar(console: Console, total: int) -> Iterator[_BuildBar]:
    columns = (BarColumn(20), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        yield _BuildBar(progress, progress.add_task("checking registered variants", total=total))


def _reuse_variant(farm: FarmClient, view: Variant, bar: _BuildBar) -> VariantBuildResult:
    told = "reused, the farm has it already"
    if view.replaced_by is not None:
        view = farm.register_variant(view.manifest)
        told = _with_replaced(told, view)
    bar.done(view.name, told)
    return VariantBuildResult(view=view, how="reused")


def _with_replaced(told: str, view: Variant) -> str:
    """Return what was done for a file that got its name now, with the one that had the name before."""
    return told if view.replaces is None else f"{told}; it replaces {view.replaces[:DIGEST_SHOWN]}"


def _build_variant(
    farm: FarmClient,
    source: Source,
    recipe: Recipe,
    out_dir: Path,
    tuning: TuningRequest,
    bar: _BuildBar,
) -> VariantBuildResult:
    def show_progress(progress: BuildProgress) -> None:
        bar.step(progress.variant, progress.step)

    name = variant_name(source.model, recipe)
    bar.step(name, "building")
    [built] = build_variants(source, [recipe], out_dir, tuning=tuning, on_progress=show_progress)
    view = _register_built(farm, built, bar)
    how = "uploaded" if built.reused else "built"
    told = "uploaded, the file was built earlier" if built.reused else "built and uploaded"
    bar.done(name, _with_replaced(told, view))
    return VariantBuildResult(view=view, how=how)


def _register_built(farm: FarmClient, built: BuiltVariant, bar: _BuildBar) -> Variant:
    sent_bytes = 0

    def show_progress(more_bytes: int) -> None:
        nonlocal sent_bytes
        sent_bytes += more_bytes
        bar.step(built.path.name, f"uploading, {sent_bytes / built.manifest.size_bytes:.0%}")

    farm.upload(built.path, built.manifest.digest, progress=show_progress)
    if built.records is not None and built.manifest.tuning is not None:
        farm.upload(built.records, built.manifest.tuning.records)
    return farm.register_variant(built.manifest)


MEMORY_FORMATS = ("contiguous", "channels_last")


def manifest_of_file(
    path: Path,
    *,
    files: Sequence[str] = (),
    model: str | None = None,
    precision: str = Precision.UNSTATED,
    backends: Sequence[str] = (),
    inputs: Sequence[str] = (),
    memory_format: str = "contiguous",
    target: str | None = None,
) -> Manifest:
    """Return the manifest of a model that was built elsewhere. Reads the whole file; needs no torch.

    Args:
        path: the file; its format is detected from its content.
        files: that it needs beside it, as `named_files` reads them; those that it names itself and that
            are beside it come along.
        model: name of the network; default: the file name.
        precision: a value of `Precision`, or another word.
        backends: backends that can run this file; default: those of its format.
        inputs: as `declared_input` reads them; they complete those that the file states.
        memory_format: `contiguous` or `channels_last`.
        target: what it was built for; default: `nnapi` for TorchScript converted for it, else `cpu`.

    Raises:
        VariantInvalid: the file is not a complete model of a supported format, has other inputs, or needs a
            file that is not there.
        InvalidInput: an argument is not valid.
    """
    declared = tuple(map(declared_input, inputs))
    if not is_precision(precision):
        raise InvalidInput(f"no precision {precision[:80]!r}", hint=precision_hint(precision))
    if memory_format not in MEMORY_FORMATS:
        hint = name_hint(memory_format, MEMORY_FORMATS)
        raise InvalidInput(f"no memory format {memory_format!r}", hint=hint)
    format = check_model_file(path)
    code = torch_code(path, format)
    if not backends and target is None and code.converted_for_nnapi:
        target = "nnapi"
    supported = _backends(format, tuple(dict.fromkeys(backends)), target)
    is_converted = format in TORCH_FORMATS and supported == ("nnapi",)
    recipe = Recipe(
        precision=precision,
        format=format,
        memory_format=memory_format,
        target=target or ("nnapi" if is_converted else "cpu"),
    )
    name = model or model_name(path)
    all_files = (_local_file("", path), *_further_files(path, format, named_files(files)))
    digest = files_digest(all_files)
    manifest = Manifest(
        model=name,
        recipe=recipe,
        digest=digest,
        size_bytes=sum(file.size_bytes for file in all_files),
        files=all_files if len(all_files) > 1 else (),
        backends=supported,
        inputs=declared,
        recipe_digest=_recipe_digest(digest, name, recipe),
    )
    if (word := find_invalid_name(manifest)) is not None:
        raise InvalidInput(f"{word[:80]!r} is not a name", hint=NAME_RULE)
    check_further_files_of(path, manifest)
    return completed_manifest(path, manifest, code)


def named_files(words: Sequence[str]) -> dict[str, Path]:
    """Return files by their paths beside the model: `tokenizer.bin`, or `tokenizer.json=llama/vocab.json`.

    Raises:
        InvalidInput: two have one path.
    """
    file_by_path: dict[str, Path] = {}
    for word in words:
        name, equals, path = word.partition("=")
        is_named = bool(equals) and not Path(word).is_file()
        name, source = (name, Path(path)) if is_named else (Path(word).name, Path(word))
        if name in file_by_path:
            raise InvalidInput(f"two files are called {name[:80]!r}", hint="--file NAME=PATH gives a name")
        file_by_path[name] = source
    return file_by_path


def _further_files(path: Path, format: Format, given: Mapping[str, Path]) -> list[VariantFile]:
    """Return the files that are given, and those that the model names and that are beside it."""
    beside = {name: path.parent / name for name in further_files_of(path, format) if not path_problem(name)}
    found = {name: source for name, source in beside.items() if _is_for_all(source, path.parent)}
    return [_local_file(name, source) for name, source in sorted({**found, **given}.items())]


def _is_for_all(source: Path, folder: Path) -> bool:
    """Return whether a file that a model names may be sent with it: not hidden, and in its folder.

    A model from elsewhere may name anything.
    """
    is_hidden = any(part.startswith(".") for part in source.relative_to(folder).parts)
    return not is_hidden and source.is_file() and source.resolve().is_relative_to(folder.resolve())


def _local_file(name: str, source: Path) -> VariantFile:
    digest = local_digest(source, error_type=VariantInvalid)
    return VariantFile(path=name, digest=digest, size_bytes=source.stat().st_size)


def add_variant(farm: FarmClient, path: Path, manifest: Manifest, *, files: Sequence[str] = ()) -> Variant:
    """Upload the files of `manifest_of_file` and register them.

    Raises:
        Conflict: the farm has these files with this name but other backends or inputs.
    """
    sources = {"": path, **named_files(files)}
    source_by_digest = {
        file.digest: sources.get(file.path, path.parent / file.path) for file in variant_files(manifest)
    }
    upload_files(farm, source_by_digest, label=path.name)
    return farm.register_variant(manifest)


def files_to_remove(farm: FarmClient, view: Variant) -> list[VariantFile]:
    """Return the files of a variant that no other one has.

    Raises:
        Conflict: each of them is also another variant's.
    """
    others = {
        file.digest
        for other in farm.variants()
        if other.variant_id != view.variant_id and other.expired_at is None
        for file in kept_files(other.manifest)
    }
    files = [file for file in kept_files(view.manifest) if file.digest not in others]
    if not files:
        raise Conflict(
            f"other variants have each file of {view.name}",
            hint="`farm storage remove DIGEST` removes a file from all of them",
        )
    return files


def missing_input_hint(view: Variant) -> str | None:
    """Return that a file cannot run because nothing is known of its inputs; None where it can."""
    if view.manifest.bundled_inputs is not False or view.manifest.inputs:
        return None
    declare = f"farm variant set {view.name} --input 1x3x224x224:float32"
    return f"the file has no bundled input: bundle one, or declare its inputs: `{declare}`"


def replacement_note(view: Variant) -> str | None:
    """Return which file a variant replaces; None where its name never meant another."""
    if view.replaces is None:
        return None
    digest, other = view.manifest.digest[:DIGEST_SHOWN], view.replaces[:DIGEST_SHOWN]
    return f"{view.name} is now {digest} and replaces {other}, which is still run by that digest"


def model_name(path: Path) -> str:
    """Return the file name without suffix, as a matrix allows it.

    Raises:
        InvalidInput: no character is left.
    """
    if name := matrix_name(path.stem):
        return name
    raise InvalidInput(f"{path.name!r} gives no name for the model", hint="name it with --model NAME")


def _backends(format: Format, requested: tuple[str, ...], target: str | None) -> tuple[str, ...]:
    if format not in TORCH_FORMATS:
        return requested or BACKENDS_BY_FORMAT[format]
    backends = requested or (("nnapi",) if target == "nnapi" else BACKENDS_BY_FORMAT[format])
    is_mixed = "nnapi" in backends and backends != ("nnapi",)
    if is_mixed or (target is not None and (target == "nnapi") is not ("nnapi" in backends)):
        raise InvalidInput(
            f"a {format} file runs on nnapi only if it was converted for nnapi, and then on no other backend",
            hint="use --target nnapi for a converted file only, and --backend nnapi for no other file",
        )
    return backends


def _recipe_digest(digest: Digest, model: str, recipe: Recipe) -> Digest:
    """Return a digest of the content and its description, as the recipe is unknown."""
    stated = {"content": digest, "model": model, "recipe": asdict(recipe)}
    return digest_of(json.dumps(stated, sort_keys=True).encode())
