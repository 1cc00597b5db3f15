"""The table of placements as people see it."""

from datetime import UTC, datetime

from rich.console import Console

from farm.cli.results.placement import placement_table
from farm.core.base.ids import AttemptId, DeviceId, SeriesId
from farm.core.models.variant import Format, Precision, Recipe
from farm.core.runs.measurement import Quality
from farm.wire.documents.results.results import PlacedSeries


def view(device: str = "phone-1", **changes: object) -> PlacedSeries:
    target = "nnapi" if changes.get("backend") == "nnapi" else "cpu"
    values: dict[str, object] = {
        "series_id": SeriesId(1),
        "device_id": DeviceId(device),
        "device_label": None,
        "model": "mobilenet_v2",
        "recipe": Recipe(precision=Precision.FLOAT32, format=Format.TORCHSCRIPT, target=target),
        "harness": "speed_benchmark_torch",
        "backend": "cpu",
        "settings": {},
        "actual_backend": "cpu",
        "accelerator": "cpu",
        "words": "cpu",
        "quality": Quality.VALID,
        "proof": "cpu by construction",
        "placement": None,
        "attempt_id": AttemptId(3),
        "measured_at": datetime(2031, 5, 6, tzinfo=UTC),
        **changes,
    }
    return PlacedSeries.model_validate(values)


def plain(*views: PlacedSeries, width: int = 140) -> list[list[str]]:
    """Its lines, each split where columns are apart."""
    console = Console(width=width, color_system=None, force_terminal=False)
    with console.capture() as captured:
        console.print(placement_table(views))
    return [[cell for cell in line.split("  ") if cell.strip()] for line in captured.get().splitlines()]


def stripped(rows: list[list[str]]) -> list[list[str]]:
    return [[cell.strip() for cell in row] for row in rows]


def test_rows_are_what_was_asked_for_and_columns_the_phones() -> None:
    nnapi = view(
        backend="nnapi",
        settings={"iter": 50},
        words="dsp 136/139, cpu 3",
        actual_backend="nnapi",
        accelerator="dsp",
    )
    assert stripped(plain(nnapi, view(), view("phone-2"))) == [
        ["what", "backend", "settings", "phone-1", "phone-2"],
        ["mobilenet_v2 float32 torchscript", "cpu", "-", "cpu", "cpu"],
        ["mobilenet_v2 float32 torchscript nnapi", "nnapi", "iter=50", "dsp 136/139, cpu 3", "-"],
    ]


def test_a_series_whose_runs_were_capped_says_in_how_many() -> None:
    _, row = stripped(plain(view(runs=20, capped=3)))
    assert row[-1] == "cpu, capped 3 of 20"


def test_what_is_no_proof_of_the_backend_says_so_in_words() -> None:
    fell_back = view(backend="nnapi", words="cpu 9/9", quality=Quality.FALLBACK)
    unproven = view(
        "phone-2", backend="nnapi", words="unknown", quality=Quality.UNPROVEN, accelerator="unknown"
    )
    _, row = stripped(plain(fell_back, unproven))
    assert row[-2:] == ["cpu 9/9: fallback", "unknown: unproven"]


def test_other_qualities_are_no_matter_of_placement() -> None:
    _, row = stripped(plain(view(quality=Quality.NOISY)))
    assert row[-1] == "cpu"


def test_what_runs_no_model_goes_by_its_harness() -> None:
    _, row = stripped(plain(view(model=None, recipe=None, harness="hash_bench")))
    assert row[0] == "hash_bench"
