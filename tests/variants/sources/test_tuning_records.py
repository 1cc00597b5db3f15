"""Records of TVM's tuner, as a document and as the tuner's folder."""

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from farm.core.base.ids import digest_of
from farm.core.errors import InvalidInput, VariantInvalid
from farm.core.models.variant import Manifest, Recipe, Tuning
from farm.variants.build import BuiltVariant, TuningRequest, build_variants, known_digest, records_path
from farm.variants.manifest_file import manifest_path, write_manifest
from farm.variants.model_zoo import recipes_of
from farm.variants.recipe import host_abi
from farm.variants.sources.source import zoo_source
from farm.variants.sources.tuning_records import TuningRecords, check_records, read_records

NET = zoo_source("mobilenet_v2")


def a_record(triple: str = "x86_64-linux-gnu", *, workload: int = 0, seconds: float = 1e-5) -> Any:
    return [workload, [[[], []], [seconds], {"kind": "llvm", "mtriple": triple, "num-cores": 1}, []]]


def some_records(*records: Any) -> TuningRecords:
    return TuningRecords(workloads=(["12345", "e30="],), records=records or (a_record(),))


def recipe_for(abi: str) -> Recipe:
    [recipe] = recipes_of(["float32"], runtimes=["tvm"], targets=[f"{abi}-tuned"], tuned=True)
    return recipe


def test_the_tuners_folder_and_the_document_are_the_same_records(tmp_path: Path) -> None:
    records = some_records(a_record(seconds=0.00012345678901234567), a_record())
    document = tmp_path / "net.records.json"
    document.write_bytes(records.content())
    records.write_folder(tmp_path)
    for path in (document, tmp_path):
        again = read_records(path)
        assert again.digest() == records.digest()
        assert (again.trials, again.abis) == (2, {"x86_64"})


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{}",
        "[]",
        '{"workloads": [], "records": [7]}',
        '{"workloads": [[]], "records": [[1, [[], [], {}, []]]]}',
        '{"workloads": [[]], "records": [[0, [[], [], "llvm", []]]]}',
        '{"workloads": [[]], "records": [[0, [[], null, {}, []]]]}',
        '{"workloads": [[]], "records": [[0, [[], ["1.0"], {}, []]]]}',
        '{"workloads": [[]], "records": [[0, [[], [true], {}, []]]]}',
        pytest.param("[" * 200_000, id="deep"),
        '{"workloads": 3, "records": []}',
    ],
)
def test_what_is_no_file_of_records_is_refused_by_name(content: str, tmp_path: Path) -> None:
    path = tmp_path / "net.records.json"
    path.write_text(content)
    with pytest.raises(VariantInvalid, match=r"net\.records\.json has no records of TVM's tuner") as caught:
        read_records(path)
    assert "farm variant records" in caught.value.hint


def test_a_folder_without_records_is_refused(tmp_path: Path) -> None:
    with pytest.raises(VariantInvalid, match="has no records"):
        read_records(tmp_path)


def test_records_of_another_cpu_order_no_loops() -> None:
    check_records(some_records(a_record("aarch64-linux-android"), a_record("arm64-linux")), "arm64-v8a")
    with pytest.raises(VariantInvalid, match="measured for x86_64, and the library is for arm64-v8a"):
        check_records(some_records(), "arm64-v8a")
    with pytest.raises(VariantInvalid, match="measured for riscv64"):
        check_records(some_records(a_record("riscv64-linux-gnu")), "x86_64")
    with pytest.raises(VariantInvalid, match="no schedule was timed in 0 trials"):
        check_records(TuningRecords(workloads=(), records=()), "x86_64")


def test_trials_that_failed_were_not_timed() -> None:
    unmeasured = a_record()
    unmeasured[1][1] = []
    failed = [a_record(seconds=1e10), unmeasured, a_record(seconds=float("nan"))]
    records = some_records(*failed)
    assert (records.trials, records.timed) == (3, 0)
    with pytest.raises(VariantInvalid, match="no schedule was timed in 3 trials"):
        check_records(records, "x86_64")
    mixed = some_records(*failed, a_record(seconds=1.0))
    assert (mixed.trials, mixed.timed) == (4, 1)
    check_records(mixed, "x86_64")


def test_schedules_of_a_cpu_that_is_not_here_are_not_timed_here(tmp_path: Path) -> None:
    other = "arm64-v8a" if host_abi() == "x86_64" else "x86_64"
    with pytest.raises(InvalidInput, match=f"schedules for {other} cannot be timed") as caught:
        build_variants(NET, [recipe_for(other)], tmp_path, tuning=TuningRequest(trials=8))
    assert "--records" in caught.value.hint


def test_a_tuned_file_needs_trials_or_records(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="x86_64-tuned needs trials or records"):
        build_variants(NET, [recipe_for("x86_64")], tmp_path)


def test_records_are_a_part_of_the_recipe_and_trials_make_a_new_file_each_time() -> None:
    recipe = recipe_for("x86_64")
    quick, slow = some_records(), some_records(a_record(seconds=1.0))
    digests = [known_digest(NET, recipe, TuningRequest(records=records)) for records in (quick, quick, slow)]
    assert digests[0] == digests[1] != digests[2]
    assert known_digest(NET, recipe, TuningRequest(trials=8)) is None
    assert known_digest(NET, recipe, TuningRequest(trials=8, records=quick)) is None


def test_the_document_has_tvms_own_values() -> None:
    record = a_record()
    document = json.loads(some_records(record).content())
    assert document == {"workloads": [["12345", "e30="]], "records": [record]}


def nothing_to_build_with(_runtime: str, _say: Callable[[str], None]) -> AbstractContextManager[Path]:
    """An environment that cannot be created, to tell a file that is there from one that has to be built."""
    raise InvalidInput("there is no environment")


def test_a_file_whose_records_are_others_is_built_again(tmp_path: Path) -> None:
    recipe, tuning = recipe_for("x86_64"), TuningRequest(records=some_records())
    path, content = tmp_path / "mobilenet_v2-float32-x86_64-tuned.so", b"a library"
    digest = known_digest(NET, recipe, tuning)
    assert tuning.records is not None
    assert digest is not None
    kept = tuning.records.content()
    manifest = Manifest(
        model=NET.model,
        recipe=recipe,
        digest=digest_of(content),
        size_bytes=len(content),
        backends=("cpu",),
        inputs=(),
        tuning=Tuning(trials=1, records=digest_of(kept), size_bytes=len(kept)),
        recipe_digest=digest,
    )
    path.write_bytes(content)
    write_manifest(manifest, manifest_path(path))
    records_path(path).write_bytes(kept)

    def built() -> list[BuiltVariant]:
        return list(build_variants(NET, [recipe], tmp_path, tuning=tuning, interpreter=nothing_to_build_with))

    [there] = built()
    assert (there.reused, there.records) == (True, records_path(path))
    records_path(path).write_bytes(some_records(a_record(seconds=1.0)).content())
    with pytest.raises(InvalidInput, match="there is no environment"):
        built()
    records_path(path).unlink()
    with pytest.raises(InvalidInput, match="there is no environment"):
        built()
