"""Compare MobileNetV2 in three precisions on the CPU and by NNAPI, on a virtual phone: `make demo-nnapi`.

    python examples/mobilenet_v2/demo.py [FOLDER]

It builds the files with torch, starts a farm whose phone has NNAPI by the reference library, and runs one
matrix. The library computes on the CPU, so what asks for NNAPI is a fallback, and its times are not NNAPI's.
"""

import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import yaml

from agents.virtual.pool import NNAPI_FOLDER, build_nnapi_library
from farm.cli.farm.demo import farm_process, wait_for_devices
from farm.cli.farm.demo_table import COMPARED_HEADS, compared, table
from farm.cli.files.local_variants import build_and_register
from farm.cli.matrices.matrix import follow
from farm.cli.shell.address import connect_to
from farm.cli.shell.output import err
from farm.client.farm_client import FarmClient
from farm.core.base.ids import CellId, Digest, digest_of
from farm.core.base.units import duration_text, size_text
from farm.core.models.variant import Format, Precision, Recipe
from farm.core.runs.measurement import Quality
from farm.variants.sources.source import zoo_source
from farm.wire.documents.matrices.matrices import CellView, MatrixView
from farm.wire.documents.results.results import PlacedSeries
from farm.wire.documents.results.speedups import SpeedupView

HERE = Path(__file__).parent
MODEL = "mobilenet_v2"
PRECISIONS = (Precision.FLOAT32, Precision.INT8_CORE, Precision.INT8_FULL)
RECIPES = (
    *(Recipe(precision=precision, format=Format.LITE) for precision in PRECISIONS),
    Recipe(precision=Precision.FLOAT32, format=Format.FLATBUFFER),
    Recipe(precision=Precision.FLOAT32, format=Format.LITE, memory_format="channels_last"),
    *(
        Recipe(precision=precision, format=Format.LITE, target="nnapi", memory_format="channels_last")
        for precision in PRECISIONS
    ),
)
HEADS = ("backend", "precision", "format", "layout", "size", "load", "time", *COMPARED_HEADS, "placement")
LEGEND = """
MobileNetV2 of random weights, 1x3x224x224, one thread.
On a virtual phone: these are times of this machine's CPU.
load: the median of 20 loads by torch's lite interpreter beside the runs.
float32 files for the CPU are unoptimized: torch on a PC cannot pack their weights for XNNPACK.
A file for NNAPI is compiled by its first run.
placement: operations by hardware, and who had them, by the phone's log; a file for the CPU runs nowhere else.
fallback: the backend was asked for, and the CPU computed. Such a time is kept, and enters no speedup.
On this phone NNAPI is benchfarm's reference library; what NNAPI gains on hardware, a phone with drivers says.
"""


def load_times_s(files: Sequence[Path]) -> list[float]:
    """Return how long each file takes to load, in a process of its own: seconds."""
    command = [sys.executable, "-W", "ignore", str(HERE / "load_time.py"), *map(str, files)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [float(line) for line in printed.splitlines()]


def run_matrix(farm: FarmClient, folder: Path) -> MatrixView:
    """Build and register the files, and run the matrix."""
    build_and_register(farm, zoo_source(MODEL), RECIPES, folder, err())
    matrix_id = farm.submit_matrix(yaml.safe_load((HERE / "matrix.yaml").read_text())).matrix_id
    return follow(farm, matrix_id, leaving="The farm of this demo ends with it.")


def rows(
    cells: Sequence[CellView],
    speedups: Mapping[CellId, SpeedupView],
    placed: Mapping[Recipe, PlacedSeries],
    files: Mapping[Digest, Path],
) -> Iterator[list[str]]:
    """Yield the row of each cell: the CPU's first, by file."""
    load_s = dict(zip(files, load_times_s(list(files.values())), strict=True))
    for cell in sorted(cells, key=lambda cell: cell.backend != "cpu"):
        assert cell.variant_digest is not None
        speedup, series = speedups.get(cell.cell_id), placed.get(recipe_of(cell))
        has_fallen_back = series is not None and series.quality is Quality.FALLBACK
        yield [
            cell.backend,
            f"{cell.precision} (A/A)" if speedup is not None and speedup.aa else str(cell.precision),
            str(cell.format),
            str(cell.memory_format),
            size_text(files[cell.variant_digest].stat().st_size),
            duration_text(load_s[cell.variant_digest] * 1e9),
            "-" if cell.value_ns is None else duration_text(cell.value_ns),
            *(("", "", "fallback") if has_fallen_back else compared(speedup)),
            placement(series),
        ]


def recipe_of(cell: CellView) -> Recipe:
    """Return the recipe of a cell's file."""
    assert cell.precision is not None
    assert cell.format is not None
    layout, target = str(cell.memory_format), str(cell.target)
    return Recipe(precision=cell.precision, format=cell.format, memory_format=layout, target=target)


def placement(series: PlacedSeries | None) -> str:
    """Return operations by hardware, and the software that had them where it was named."""
    if series is None:
        return "unknown"
    by = {share.by for share in series.placement.shares} if series.placement is not None else set()
    return " by ".join(filter(None, [series.words, ", ".join(sorted(by))]))


def main() -> None:
    """Run everything, and print the table."""
    began_s = time.monotonic()
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "build/mobilenet_v2").resolve()
    # Before the farm starts, which does it within the time that a start may take.
    build_nnapi_library(folder / "farm" / "virtual" / NNAPI_FOLDER)
    with (
        farm_process(folder / "farm", virtual=1, virtual_nnapi=True) as url,
        connect_to(url) as farm,
    ):
        wait_for_devices(farm, 1, err())
        matrix = run_matrix(farm, folder / "files")
        cells = list(farm.cells(matrix.matrix_id))
        speedups = {row.cell_id: row for row in farm.speedups(matrix_id=matrix.matrix_id)}
        series = farm.placements(matrix_id=matrix.matrix_id)
    paths = [path for path in sorted((folder / "files").iterdir()) if path.suffix != ".json"]
    files = {digest_of(path.read_bytes()): path for path in paths if path.is_file()}
    placed = {entry.recipe: entry for entry in series if entry.recipe is not None}
    lines = list(rows(cells, speedups, placed, files))
    took_s = time.monotonic() - began_s
    sys.stdout.write("\n".join([table(HEADS, lines), LEGEND, f"It took {took_s:.0f} s.", ""]))


if __name__ == "__main__":
    main()
