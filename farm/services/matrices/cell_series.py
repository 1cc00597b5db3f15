"""The series of the cells of an expanded matrix: known before anything is measured."""

from farm.core.base.ids import Digest
from farm.core.base.setting_values import SettingValue
from farm.core.matrices.matrix import Cell
from farm.core.results.series import series_digest, settings_of_series
from farm.services.matrices.submit import MatrixExpansion


def series_settings(expanded: MatrixExpansion, cell: Cell) -> dict[str, SettingValue]:
    """Return the settings that identify the series of a cell."""
    spec = expanded.spec
    return settings_of_series(cell.settings, spec.controls, sustained_s=spec.sustained, energy=spec.energy)


def series_by_cell(expanded: MatrixExpansion) -> dict[int, Digest]:
    """Return the series digest of every cell, by its index."""
    manifest_by_id = {variant.variant_id: variant.manifest for variant in expanded.variants}
    series_by_index: dict[int, Digest] = {}
    for cell in expanded.expansion.cells:
        manifest = None if cell.variant_id is None else manifest_by_id[cell.variant_id]
        series_by_index[cell.index] = series_digest(
            model=None if manifest is None else manifest.model,
            recipe=None if manifest is None else manifest.recipe,
            backend=cell.backend,
            harness=cell.harness,
            settings=series_settings(expanded, cell),
            defaults=expanded.harnesses.named(cell.harness).defaults,
            device_id=cell.device_id,
        )
    return series_by_index
