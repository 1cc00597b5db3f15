"""Which source a text names, and what is not built from it; nothing of a source is run."""

import re
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from farm.core.errors import FarmError, InvalidInput, VariantInvalid
from farm.core.models.variant import Recipe
from farm.variants.model_zoo import recipes_of
from farm.variants.recipe import built_with, recipe_digest
from farm.variants.sources.onnx_source import completed_onnx_inputs
from farm.variants.sources.source import (
    Source,
    SourceKind,
    parse_source,
    source_json,
    source_of_json,
    usual_runtimes,
    zoo_source,
)

IMAGE = "1x3x8x8:float32"
DIGEST = "0" * 64
#: An ONNX model of no node: ir_version 8, an empty graph, and version 17 of the operators.
ONNX = b"\x08\x08\x3a\x00\x42\x02\x10\x11"


def archive(path: Path, *names: str) -> Path:
    with zipfile.ZipFile(path, "w") as target:
        for name in names:
            target.writestr(f"net/{name}", b"x")
    return path


@pytest.fixture
def files(tmp_path: Path) -> Path:
    archive(tmp_path / "net.pt2", "archive_format", "models/model.json")
    archive(tmp_path / "net.pt", "data.pkl", "constants.pkl", "code/net.py")
    archive(tmp_path / "net.pth", "data.pkl", "data/0")
    (tmp_path / "net.onnx").write_bytes(ONNX)
    (tmp_path / "net.txt").write_text("text")
    return tmp_path


def source(text: str, *inputs: str, folder: Path, model: str | None = None, weights: str = "") -> Source:
    path = folder / text if (folder / text).exists() else Path(text)
    weights_path = folder / weights if weights else None
    return parse_source(str(path), inputs=inputs, model=model, state_dict=weights_path, folder=folder)


@pytest.mark.parametrize(
    ("text", "inputs", "kind", "model"),
    [
        ("mobilenet_v2", "", SourceKind.ZOO, "mobilenet_v2"),
        ("my.nets:small", IMAGE, SourceKind.FACTORY, "small"),
        ("net.pt2", "", SourceKind.EXPORTED, "net"),
        ("net.pt", IMAGE, SourceKind.TORCHSCRIPT, "net"),
        ("net.onnx", "", SourceKind.ONNX, "net"),
    ],
)
def test_a_source_is_told_by_its_form_or_its_content(
    files: Path, text: str, inputs: str, kind: SourceKind, model: str
) -> None:
    found = source(text, *inputs.split(), folder=files)
    assert (found.kind, found.model) == (kind, model)
    assert source_of_json(source_json(found)) == found
    assert source(text, *inputs.split(), folder=files, model="other").model == "other"


def test_the_name_of_a_file_is_no_sign_of_its_kind(files: Path) -> None:
    (files / "net.pt2").rename(files / "a net.onnx")
    found = source("a net.onnx", folder=files)
    assert (found.kind, found.model) == (SourceKind.EXPORTED, "a_net")


@pytest.mark.parametrize(
    ("text", "inputs", "weights", "message", "hint"),
    [
        ("mobilnet_v2", "", "", "no model 'mobilnet_v2'", "mobilenet_v2"),
        ("gone.pt2", "", "", "there is no file", "check the path"),
        ("my.nets:small()", IMAGE, "", "names no factory", "without parentheses"),
        ("my.nets:small", "", "", "nothing states the inputs", "--input"),
        ("net.pt", "", "", "nothing states the inputs", "--input"),
        ("my.nets:small", "1x?x8x8:float32", "", "cannot be run with the input", "--input"),
        ("my.nets:small", "1x3:quint8", "", "cannot be run with the input", "--input"),
        ("mobilenet_v2", IMAGE, "", "are known: 1x3x224x224:float32", "torchvision.models:resnet18"),
        ("net.pth", IMAGE, "", "nothing is built from weights alone", "--state-dict net.pth"),
        ("net.txt", "", "", "nothing is built from such a file", "farm variant add"),
        ("net.pt2", "", "net.pth", "has its own weights", "leave --state-dict out"),
        ("my.nets:small", IMAGE, "gone.pth", "there is no file", "torch.save"),
    ],
)
def test_what_is_no_source_is_refused_with_a_way_out(
    files: Path, text: str, inputs: str, weights: str, message: str, hint: str
) -> None:
    with pytest.raises(FarmError, match=re.escape(message)) as caught:
        source(text, *inputs.split(), folder=files, weights=weights)
    assert hint in caught.value.hint


def test_a_name_that_no_matrix_could_use_is_refused(files: Path) -> None:
    with pytest.raises(InvalidInput, match="is not a name") as caught:
        source("net.onnx", folder=files, model="a b")
    assert "--model" in caught.value.hint


@pytest.mark.parametrize(
    ("text", "precision", "runtime", "message", "hint"),
    [
        ("net.onnx", "float32", "litert", "cannot be built from an ONNX file", "--runtime onnxruntime"),
        ("net.onnx", "float32", "torch", "cannot be built from an ONNX file", "--runtime onnxruntime"),
        ("net.pt", "float32", "executorch", "cannot be built from TorchScript", "torch.export.save"),
        ("net.pt2", "int8-core", "torch", "for networks by name only", "--runtime onnxruntime"),
    ],
)
def test_what_a_source_does_not_yield_is_refused_before_anything_runs(
    files: Path, text: str, precision: str, runtime: str, message: str, hint: str
) -> None:
    [recipe] = recipes_of([precision], runtimes=[runtime])
    with pytest.raises(InvalidInput, match=message) as caught:
        recipe_digest(source(text, IMAGE, folder=files), recipe)
    assert hint in caught.value.hint


def onnx_recipe() -> Recipe:
    [recipe] = recipes_of(["float32"], ["onnx"])
    return recipe


def test_a_recipe_depends_on_the_content_of_files_and_not_on_their_place(files: Path) -> None:
    recipe = onnx_recipe()
    first = recipe_digest(source("net.pt2", folder=files), recipe)
    (files / "net.pt2").rename(files / "moved.pt2")
    assert recipe_digest(source("moved.pt2", folder=files, model="net"), recipe) == first
    archive(files / "moved.pt2", "archive_format", "models/other.json")
    assert recipe_digest(source("moved.pt2", folder=files, model="net"), recipe) != first


def test_weights_and_names_of_a_network_make_another_recipe(files: Path) -> None:
    recipe = onnx_recipe()
    plain = recipe_digest(zoo_source("resnet18"), recipe)
    assert recipe_digest(source("resnet18", folder=files), recipe) == plain
    assert recipe_digest(source("resnet18", folder=files, weights="net.pth"), recipe) != plain
    weighted = built_with(source("resnet18", folder=files, weights="net.pth"), recipe)
    assert weighted["weights"].startswith("state dict ")


def test_only_the_built_file_tells_what_a_factory_made(files: Path) -> None:
    factory, recipe = source("my.nets:small", IMAGE, folder=files), onnx_recipe()
    assert recipe_digest(factory, recipe) is None
    one, other = (recipe_digest(factory, recipe, content) for content in (DIGEST, "1" * 64))
    assert one is not None
    assert one != other


def test_onnx_is_built_for_its_own_runtime_where_none_is_named(files: Path) -> None:
    assert usual_runtimes(source("net.onnx", folder=files)) == ("onnxruntime",)
    assert usual_runtimes(source("net.pt2", folder=files)) == ()


def test_open_sizes_of_an_onnx_file_are_declared(files: Path) -> None:
    stated = source("my.nets:small", "image=1x3x8x8:float32", folder=files).inputs
    is_open = [replace(spec, shape=(-1, *spec.shape[1:])) for spec in stated]
    plain = source("net.onnx", folder=files)
    with pytest.raises(VariantInvalid, match="leaves sizes of its inputs open") as caught:
        completed_onnx_inputs(is_open, plain)
    assert "--input image=1x3x8x8:float32" in caught.value.hint
    [spec] = completed_onnx_inputs(is_open, source("net.onnx", "2x3x8x8:float32", folder=files))
    assert spec.shape == (2, 3, 8, 8)
    with pytest.raises(VariantInvalid, match="no input other"):
        completed_onnx_inputs(is_open, source("net.onnx", "other=2x3x8x8:float32", folder=files))
