"""Files beside a model: which it names or needs, which paths they can have, and the digest over all."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from farm.blobs.inspection import check_model_file
from farm.cli.files.local_variants import manifest_of_file, named_files
from farm.core.base.ids import Digest
from farm.core.errors import InvalidInput, VariantInvalid
from farm.core.models.further_files import files_problem
from farm.core.models.llm.executorch import is_language_model
from farm.core.models.variant import Format, Manifest, files_digest, find_tokenizer, variant_files
from tests.support.models import onnx_samples as onnx
from tests.support.models.flatbuffer_samples import executorch_program

DATA = "m.onnx.data"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model whose weights are in `m.onnx.data`."""
    path = tmp_path / "net.onnx"
    path.write_bytes(onnx.initializer(onnx.EXTERNAL))
    return path


@pytest.fixture
def llama(tmp_path: Path) -> Path:
    path = tmp_path / "llama.pte"
    path.write_bytes(executorch_program(method="get_max_seq_len"))
    for name in ("tokenizer.bin", "other.bin"):
        (tmp_path / name).write_bytes(name.encode())
    return path


def test_weights_beside_a_model_that_names_them_come_along(model: Path) -> None:
    (model.parent / DATA).write_bytes(bytes(12))
    manifest = manifest_of_file(model)
    assert [file.path for file in manifest.files] == ["", DATA]
    assert manifest.size_bytes == model.stat().st_size + 12
    assert manifest.digest == files_digest(manifest.files) != manifest.files[0].digest
    assert files_problem(manifest) is None


def test_weights_that_are_not_there_are_asked_for_by_their_name(model: Path) -> None:
    with pytest.raises(VariantInvalid, match=f"keeps weights in '{DATA}'") as refused:
        manifest_of_file(model)
    assert f"--file {DATA}=PATH" in refused.value.hint
    elsewhere = model.parent / "weights.bin"
    elsewhere.write_bytes(bytes(12))
    assert manifest_of_file(model, files=[f"{DATA}={elsewhere}"]).files[1].path == DATA


@pytest.mark.parametrize("path", ["../secret", "/etc/passwd", "a//b"])
def test_a_model_gets_no_file_from_outside_of_its_folder(tmp_path: Path, path: str) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    model = tmp_path / "net" / "net.onnx"
    model.parent.mkdir()
    location = onnx.field(13, onnx.field(1, b"location") + onnx.field(2, path.encode()))
    model.write_bytes(onnx.initializer(onnx.INSIDE + location + onnx.number(14, 1)))
    with pytest.raises(VariantInvalid, match="no such file was given"):
        manifest_of_file(model)
    with pytest.raises(VariantInvalid, match="has the path"):
        manifest_of_file(model, files=[f"{path}={tmp_path / 'secret'}"])


def test_a_hidden_file_or_one_that_a_link_leads_to_is_not_taken_because_a_model_names_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    model = tmp_path / "net" / "net.onnx"
    (model.parent / ".ssh").mkdir(parents=True)
    (model.parent / ".ssh" / "id").write_bytes(b"secret")
    (model.parent / "link").symlink_to(tmp_path / "secret")
    for path in (".ssh/id", "link"):
        location = onnx.field(13, onnx.field(1, b"location") + onnx.field(2, path.encode()))
        model.write_bytes(onnx.initializer(onnx.INSIDE + location + onnx.number(14, 1)))
        with pytest.raises(VariantInvalid, match="no such file was given"):
            manifest_of_file(model)


def test_weights_in_the_folder_of_the_model_are_found_by_a_relative_path(model: Path) -> None:
    location = onnx.field(13, onnx.field(1, b"location") + onnx.field(2, b"./w.data"))
    model.write_bytes(onnx.initializer(onnx.INSIDE + location + onnx.number(14, 1)))
    (model.parent / "w.data").write_bytes(bytes(12))
    assert [file.path for file in manifest_of_file(model).files] == ["", "w.data"]


@pytest.mark.parametrize("names", [("a", "a/b"), ("model.onnx/x", "b"), ("model.pte", "b"), ("llm.mnn", "b")])
def test_a_path_is_one_file_and_no_folder(model: Path, names: Sequence[str]) -> None:
    (model.parent / DATA).write_bytes(bytes(12))
    with pytest.raises(VariantInvalid, match="is there twice"):
        manifest_of_file(model, files=[f"{name}={model.parent / DATA}" for name in names])


def test_a_language_model_of_executorch_needs_its_tokenizer_and_other_programs_none(llama: Path) -> None:
    assert check_model_file(llama) is Format.EXECUTORCH
    for files in ([], [str(llama.parent / "other.bin")]):
        with pytest.raises(VariantInvalid, match="no tokenizer was given") as refused:
            manifest_of_file(llama, files=files)
        assert "--file tokenizer.bin" in refused.value.hint
    for file in ("tokenizer.bin", f"tokenizer.model={llama.parent / 'other.bin'}"):
        given = file if "=" in file else str(llama.parent / file)
        tokenizer = find_tokenizer(manifest_of_file(llama, files=[given]))
        assert tokenizer is not None
        assert tokenizer.path == file.partition("=")[0]
    assert not is_language_model(memoryview(b"ET12"))
    llama.write_bytes(executorch_program())
    assert manifest_of_file(llama).files == ()


def test_another_tokenizer_is_another_variant_and_the_same_files_are_the_same(llama: Path) -> None:
    tokenizer = llama.parent / "tokenizer.bin"
    first = manifest_of_file(llama, files=[str(tokenizer)])
    elsewhere = llama.with_name("renamed.pte")
    llama.rename(elsewhere)
    again = manifest_of_file(elsewhere, files=[str(tokenizer)], model="llama")
    assert (again.digest, again.recipe_digest) == (first.digest, first.recipe_digest)
    tokenizer.write_bytes(b"another")
    assert manifest_of_file(elsewhere, files=[str(tokenizer)], model="llama").digest != first.digest


def test_a_single_file_keeps_its_own_digest(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(onnx.model())
    manifest = manifest_of_file(path)
    [file] = variant_files(manifest)
    assert (file.path, file.digest) == ("", manifest.digest)
    assert manifest.files == ()


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"two files are called 'tokenizer\.bin'"):
        named_files(["a/tokenizer.bin", "b/tokenizer.bin"])
    file = tmp_path / "a=b.bin"
    file.write_bytes(b"")
    assert named_files([str(file)]) == {"a=b.bin": file}


CHANGES: dict[str, Callable[[Manifest], dict[str, Any]]] = {
    "first file is not the model, or its only one": lambda manifest: {"files": manifest.files[:1]},
    "first file is not": lambda manifest: {"files": manifest.files[::-1]},
    "is there twice": lambda manifest: {"files": (*manifest.files, manifest.files[1])},
    "bytes together": lambda manifest: {"size_bytes": manifest.size_bytes + 1},
    "not that of its files": lambda manifest: {"digest": manifest.files[0].digest},
    "is none": lambda manifest: {
        "files": (manifest.files[0], replace(manifest.files[1], digest=Digest("x")))
    },
}


@pytest.mark.parametrize("problem", CHANGES)
def test_a_list_of_files_that_contradicts_its_manifest_is_found(llama: Path, problem: str) -> None:
    manifest = manifest_of_file(llama, files=[str(llama.parent / "tokenizer.bin")])
    assert problem in (files_problem(replace(manifest, **CHANGES[problem](manifest))) or "")
