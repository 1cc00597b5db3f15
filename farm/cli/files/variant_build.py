"""Build variants on this machine and register them, except those that the farm has already."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from farm.core.models.variant import Recipe, variant_name
from farm.variants.build import BuildProgress, BuiltVariant, build_variants
from farm.variants.recipe import recipe_digest
from farm.wire.documents.matrices.matrices import VariantView

if TYPE_CHECKING:
    from farm.client.farm_client import FarmClient


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantBuildResult:
    """A registered variant. `how`: `built`, `uploaded` (the file was built earlier) or `reused`."""

    view: VariantView
    how: str


def build_and_register(
    farm: "FarmClient", model: str, recipes: Sequence[Recipe], out_dir: Path, console: Console
) -> list[VariantBuildResult]:
    """Build and register the variants that the farm does not have; files are built in `out_dir`.

    Raises:
        InvalidInput: the model or a recipe cannot be built, or torch is not installed; nothing was built.
        VariantInvalid: a build failed.
    """
    keys = [(model, recipe, recipe_digest(model, recipe)) for recipe in recipes]
    manifests = ((view, view.manifest) for view in farm.variants() if view.expired_at is None)
    registered = {
        (manifest.model, manifest.recipe, manifest.recipe_digest): view for view, manifest in manifests
    }
    with _build_bar(console, len(recipes)) as bar:
        return [
            _reuse_variant(registered[key], bar)
            if key in registered
            else _build_variant(farm, model, key[1], out_dir, bar)
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


def _reuse_variant(view: VariantView, bar: _BuildBar) -> VariantBuildResult:
    bar.done(view.name, "reused, the farm has it already")
    return VariantBuildResult(view=view, how="reused")


def _build_variant(
    farm: "FarmClient", model: str, recipe: Recipe, out_dir: Path, bar: _BuildBar
) -> VariantBuildResult:
    def show_progress(progress: BuildProgress) -> None:
        bar.step(progress.variant, progress.step)

    name = variant_name(model, recipe)
    bar.step(name, "building")
    [built] = build_variants(model, [recipe], out_dir, on_progress=show_progress)
    view = _register_built(farm, built, bar)
    how = "uploaded" if built.reused else "built"
    bar.done(name, "uploaded, the file was built earlier" if built.reused else "built and uploaded")
    return VariantBuildResult(view=view, how=how)


def _register_built(farm: "FarmClient", built: BuiltVariant, bar: _BuildBar) -> VariantView:
    sent_bytes = 0

    def show_progress(more_bytes: int) -> None:
        nonlocal sent_bytes
        sent_bytes += more_bytes
        bar.step(built.path.name, f"uploading, {sent_bytes / built.manifest.size_bytes:.0%}")

    farm.upload(built.path, built.manifest.digest, progress=show_progress)
    return farm.register_variant(built.manifest)
