"""Manifests of files made elsewhere: told from the file, said by its owner, or refused."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from farm.cli.files.local_variants import (
    manifest_of_file,
    missing_input_hint,
    model_name,
    replacement_note,
)
from farm.core.base.ids import VariantId, digest_of
from farm.core.errors import InvalidInput, VariantInvalid
from farm.core.models.declared_inputs import declared_input
from farm.core.models.variant import Format, Manifest, Precision, TensorSpec, Variant, variant_name
from tests.support.farm.service_fixture import model_file
from tests.support.models.flatbuffer_samples import tflite_model
from tests.support.models.onnx_samples import model as onnx_model


@pytest.fixture
def lite(tmp_path: Path) -> Path:
    path = tmp_path / "My net (v2).pt"
    path.write_bytes(model_file("lite", marker="made elsewhere", bundled=False))
    return path


@pytest.fixture
def onnx(tmp_path: Path) -> Path:
    path = tmp_path / "net.onnx"
    path.write_bytes(onnx_model())
    return path


def test_what_no_one_says_is_told_from_the_file_or_left_open(lite: Path) -> None:
    manifest = manifest_of_file(lite)
    assert manifest.model == "My_net_v2_"
    assert manifest.recipe.format is Format.LITE
    assert manifest.recipe.precision == Precision.UNSTATED
    assert (manifest.digest, manifest.size_bytes) == (digest_of(lite.read_bytes()), lite.stat().st_size)
    assert (manifest.backends, manifest.inputs, manifest.fidelity) == (("cpu",), (), None)


def test_what_its_owner_says_is_taken_over(onnx: Path) -> None:
    manifest = manifest_of_file(
        onnx,
        model="net",
        precision="float16",
        backends=("nnapi", "cpu", "nnapi"),
        inputs=("1x3x224x224:float32", "1:int64"),
        memory_format="channels_last",
    )
    assert manifest.recipe.precision == Precision.FLOAT16
    assert manifest.recipe.memory_format == "channels_last"
    assert manifest.backends == ("nnapi", "cpu")
    assert manifest.inputs == (
        TensorSpec(shape=(1, 3, 224, 224), dtype="float32"),
        TensorSpec(shape=(1,), dtype="int64"),
    )


def test_runtimes_that_choose_at_the_start_leave_the_backends_open(onnx: Path) -> None:
    assert {"cpu", "nnapi", "xnnpack"} <= set(manifest_of_file(onnx).backends)


@pytest.mark.parametrize("said", [{"backends": ("nnapi",)}, {"target": "nnapi"}])
def test_torchscript_for_nnapi_was_made_for_it(lite: Path, said: dict[str, str]) -> None:
    manifest = manifest_of_file(lite, **said)  # type: ignore[arg-type]
    assert (manifest.backends, manifest.recipe.target) == (("nnapi",), "nnapi")


@pytest.mark.parametrize("format", ["torchscript", "lite"])
def test_a_file_that_was_converted_for_nnapi_is_known_by_its_code(tmp_path: Path, format: str) -> None:
    path = tmp_path / "net.pt"
    path.write_bytes(model_file(format, marker="comp : __torch__.torch.classes._nnapi.Compilation"))
    manifest = manifest_of_file(path)
    assert (manifest.backends, manifest.recipe.target) == (("nnapi",), "nnapi")


@pytest.mark.parametrize(
    "said",
    [
        {"backends": ("cpu", "nnapi")},
        {"backends": ("nnapi",), "target": "cpu"},
        {"backends": ("cpu",), "target": "nnapi"},
    ],
)
def test_one_torchscript_file_is_not_for_nnapi_and_something_else(lite: Path, said: dict[str, str]) -> None:
    with pytest.raises(InvalidInput, match="then on no other backend"):
        manifest_of_file(lite, **said)  # type: ignore[arg-type]


def test_the_same_file_said_to_be_something_else_is_another_recipe(lite: Path) -> None:
    said = [
        manifest_of_file(lite),
        manifest_of_file(lite, precision="float32"),
        manifest_of_file(lite, model="b"),
    ]
    assert len({manifest.recipe_digest for manifest in said}) == 3
    assert manifest_of_file(lite) == said[0]


@pytest.mark.parametrize(
    ("said", "message", "hint"),
    [
        ({"precision": "int8 coer"}, "no precision 'int8 coer'", "int8-core"),
        ({"memory_format": "nhwc"}, "no memory format 'nhwc'", "channels_last"),
        ({"inputs": ("1,3,224,224",)}, "'1,3,224,224' is not an input", "1x3x224x224:float32"),
        ({"inputs": ("1x3:double",)}, "'1x3:double' is not an input", "float32"),
    ],
)
def test_a_word_that_cannot_be_is_answered_with_those_that_can(
    lite: Path, said: dict[str, str], message: str, hint: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        manifest_of_file(lite, **said)  # type: ignore[arg-type]
    assert message in caught.value.message
    assert hint in caught.value.hint


def test_what_is_no_model_gets_no_manifest(tmp_path: Path) -> None:
    page = tmp_path / "model.ptl"
    page.write_bytes(b"<html>404</html>")
    with pytest.raises(VariantInvalid, match="a web page"):
        manifest_of_file(page)


def test_a_file_without_a_bundled_input_needs_to_be_told_its_input(lite: Path) -> None:
    assert "`farm variant set net/unstated/lite --input 1x3x224x224:float32`" in (
        missing_input_hint(of(manifest_of_file(lite, model="net"))) or ""
    )
    assert missing_input_hint(of(manifest_of_file(lite, inputs=("1x3x8x8:float32",)))) is None


def test_other_runtimes_make_their_own_inputs(onnx: Path) -> None:
    assert missing_input_hint(of(manifest_of_file(onnx))) is None


def test_inputs_that_the_file_contradicts_are_refused_before_anything_is_sent(tmp_path: Path) -> None:
    path = tmp_path / "net.tflite"
    path.write_bytes(tflite_model(("image", (1, 224, 224, 3), 0, ())))
    assert manifest_of_file(path).inputs == (declared_input("image=1x224x224x3:float32"),)
    with pytest.raises(VariantInvalid, match="not 1x3x224x224:float32"):
        manifest_of_file(path, inputs=("1x3x224x224:float32",))


def test_a_variant_says_which_file_it_replaces(lite: Path) -> None:
    first = of(manifest_of_file(lite))
    assert replacement_note(first) is None
    other = digest_of(b"2")
    assert f"replaces {other[:8]}, which is still run" in (
        replacement_note(replace(first, replaces=other)) or ""
    )


def of(manifest: Manifest) -> Variant:
    """The variant of a manifest, as the first of a farm."""
    name = variant_name(manifest.model, manifest.recipe)
    return Variant(variant_id=VariantId(1), name=name, manifest=manifest, created_at=datetime.now(UTC))


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("net.pt", "net"),
        ("a b+c.onnx", "a_b_c"),
        ("_x.tflite", "x"),
        ("v1.2.ptl", "v1.2"),
        ("é" * 9 + "n", "n"),
    ],
)
def test_a_model_is_called_like_its_file(file: str, name: str) -> None:
    assert model_name(Path(file)) == name


def test_a_file_without_a_name_needs_one() -> None:
    with pytest.raises(InvalidInput) as caught:
        model_name(Path("模型.onnx"))
    assert "--model" in caught.value.hint
