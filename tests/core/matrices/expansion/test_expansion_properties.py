import contextlib
from collections import Counter
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from farm.core.base.ids import DeviceId, HostId, VariantId, digest_of
from farm.core.devices.device import DeviceFacts
from farm.core.devices.selector import KnownDevice
from farm.core.errors import MatrixInvalid
from farm.core.matrices.blocks import shuffled
from farm.core.matrices.expansion import expand
from farm.core.matrices.matrix import (
    KnownHarness,
    KnownVariant,
    MatrixSpec,
    cell_label_by_axes,
    varying_axes,
)
from farm.core.models.variant import Format, Manifest, Precision, Recipe
from farm.wire.documents.matrices.matrix import matrix_spec
from farm.wire.yaml_positions import line_of
from tests.support.farm.matrix_text import matrix_from_text

RECIPES = [Recipe(precision=precision, format=format) for precision in Precision for format in Format]
VALUES: dict[str, list[Any]] = {
    "model": ["a", "b", "c"],
    "precision": [precision.value for precision in Precision],
    "format": [format.value for format in Format],
    "backend": ["cpu", "vulkan"],
    "threads": [1, 2, 4],
}
AXES = st.fixed_dictionaries(
    {axis: st.lists(st.sampled_from(values), min_size=1, unique=True) for axis, values in VALUES.items()}
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=10,
)
PARTS = (
    "name harness axes settings include exclude devices rounds baseline aa seed timeout_s gates noise_limit"
)


def variant(number: int, model: str, recipe: Recipe) -> KnownVariant:
    digest = digest_of(str(number).encode())
    manifest = Manifest(
        model=model,
        recipe=recipe,
        digest=digest,
        size_bytes=1,
        backends=("cpu",),
        inputs=(),
        recipe_digest=digest,
    )
    return KnownVariant(variant_id=VariantId(number), manifest=manifest)


def device(number: int) -> KnownDevice:
    name = f"phone-{number}"
    facts = DeviceFacts(serialno=name, device_model="virtual", abis=("x86_64",), work_root="/tmp")
    return KnownDevice(device_id=DeviceId(name), host=HostId("host-1"), facts=facts)


HARNESS = KnownHarness(
    name="h",
    defaults={"threads": 1, "iter": 10},
    backends=("cpu", "vulkan"),
    abis=("x86_64",),
    unsupported=lambda manifest, backend: None,
)
VARIANTS = [
    variant(number, model, recipe)
    for number, (model, recipe) in enumerate((model, recipe) for model in "abc" for recipe in RECIPES)
]


@given(AXES, st.integers(1, 3), st.booleans(), st.randoms(use_true_random=False))
def test_every_cell_runs_or_has_a_reason_and_knows_its_baseline(
    axes: dict[str, list[Any]], devices: int, aa: bool, source: Any
) -> None:
    axes["backend"] = sorted({"cpu", *axes["backend"]})
    threads = axes["threads"][0]
    plan = MatrixSpec(
        name="m",
        harness="h",
        axes={axis: tuple(values) for axis, values in axes.items()},
        devices=({},),
        baseline={"threads": threads},
        aa=aa,
    )
    known = [device(number) for number in range(devices)]
    answer = expand(plan, variants=VARIANTS, harnesses=[HARNESS], devices=known)
    shuffled = expand(
        plan, variants=source.sample(VARIANTS, len(VARIANTS)), harnesses=[HARNESS], devices=known
    )
    assert shuffled == answer

    size = 1
    for values in axes.values():
        size *= len(values)
    # Each access makes them anew.
    cells = answer.cells
    originals = [cell for cell in cells if cell.replica == 1]
    assert len(originals) + devices * len(answer.rejected) == devices * size
    assert [cell.index for cell in cells] == list(range(len(cells)))
    for cell in cells:
        assert cell.is_baseline == (cell.key["threads"] == threads and cell.replica == 1)
        assert cell.is_baseline == (cell.baseline_index is None)
        if cell.baseline_index is not None:
            baseline = cells[cell.baseline_index]
            assert baseline.is_baseline
            assert baseline.device_id == cell.device_id
            assert baseline.key == {**cell.key, "threads": threads}


@given(AXES)
def test_labels_tell_the_cells_of_a_device_apart(axes: dict[str, list[Any]]) -> None:
    axes["backend"] = ["cpu"]
    plan = MatrixSpec(
        name="m",
        harness="h",
        axes={axis: tuple(values) for axis, values in axes.items()},
        devices=({},),
        baseline={"threads": axes["threads"][0]},
        aa=True,
    )
    cells = expand(plan, variants=VARIANTS, harnesses=[HARNESS], devices=[device(1)]).cells
    varying = varying_axes(cell.key for cell in cells)
    assert set(
        Counter(cell_label_by_axes(cell.key, varying, replica=cell.replica) for cell in cells).values()
    ) == {1}
    order = shuffled(range(len(cells)), "1/phone-1/1/0/")
    assert Counter(order) == Counter(range(len(cells)))


@given(st.dictionaries(st.sampled_from(PARTS.split()) | st.text(max_size=5), JSON) | JSON)
def test_any_json_is_a_matrix_or_refused(data: object) -> None:
    with contextlib.suppress(MatrixInvalid):
        matrix_spec(data)


@given(st.text(max_size=200) | st.text(alphabet="ab:-[]{}&*!|>\n '\"#,?%@<=1.", max_size=60))
def test_any_text_is_a_matrix_or_refused(text: str) -> None:
    line_of(text, ("a", 0, "b"))
    with contextlib.suppress(MatrixInvalid):
        matrix_from_text(text)


@given(
    st.lists(st.sampled_from([1, 2, 4]), min_size=1, unique=True),
    st.lists(st.sampled_from(["cpu", "vulkan"]), min_size=1, unique=True),
    st.sets(st.sampled_from(["threads", "iter"])),
    st.sampled_from([None, 1, 2, 4]),
    st.booleans(),
)
def test_without_models_and_with_flags_that_a_program_lacks_every_cell_has_its_fate(
    threads: list[int], backends: list[str], missing_flags: set[str], baseline: int | None, aa: bool
) -> None:
    harness = replace(
        HARNESS,
        needs_model=False,
        abis=("x86_64", "any"),
        missing_flags={"x86_64": frozenset(missing_flags)},
    )
    known = baseline in threads
    plan = MatrixSpec(
        name="m",
        harness="h",
        axes={"backend": tuple(backends), "threads": tuple(threads)},
        devices=({},),
        baseline={"threads": baseline} if baseline is not None and known else None,
        aa=aa and known,
    )
    answer, refused = None, None
    try:
        answer = expand(plan, variants=(), harnesses=[harness], devices=[device(1), device(2)])
    except MatrixInvalid as error:
        refused = error
    if answer is None:
        # Only where no cell can run at all.
        assert refused is not None
        assert "none of its cells can run" in refused.message
        assert "threads" in missing_flags
        assert 1 not in threads
        return
    assert all(cell.variant_id is None for cell in answer.cells)
    originals = [cell for cell in answer.cells if cell.replica == 1]
    assert len(originals) + len(answer.rejected) == 2 * len(threads) * len(backends)
    for rejected in answer.rejected:
        assert rejected.key["threads"] != 1
        assert "threads" in missing_flags
    for cell in answer.cells:
        if cell.baseline_index is not None:
            its = answer.cells[cell.baseline_index]
            assert its.is_baseline
            assert its.device_id == cell.device_id
            assert its.key["threads"] == baseline
