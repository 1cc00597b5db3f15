"""Our programs on the libraries of wheels: what bundles are made of, and scripts that find no wheels."""

import sys
from pathlib import Path

import pytest

from farm.bundles.recipes.ncnn import NCNN
from farm.bundles.recipes.wheels import EXECUTORCH, LITERT, LITERT_LM, MNN, ONNXRUNTIME, TVM
from farm.bundles.workshop import BundleRecipe
from harnesses.compiled.wheel_runner import WheelRunner, main

ROOT = Path(__file__).parents[2]
RUNNER = WheelRunner(
    name="timer",
    versions={"fake-runtime": "1", "fake-runtime-part": "1"},
    sources=(),
    libraries={},
    arguments=lambda wheels: [str(wheels)],
)


@pytest.mark.parametrize(
    "recipe", [EXECUTORCH, LITERT, LITERT_LM, MNN, NCNN, ONNXRUNTIME, TVM], ids=lambda recipe: recipe.name
)
def test_other_arguments_of_the_compiler_make_another_bundle_and_other_folders_do_not(
    recipe: BundleRecipe,
) -> None:
    assert {"-std=c++17", "-O2", "-s"} <= set(recipe.ingredients)
    assert not [word for word in recipe.ingredients if str(ROOT) in word]


def test_wheels_of_two_environments_build_no_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    compiler = tmp_path / "c++"
    compiler.write_text("#!/bin/sh\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in RUNNER.versions:
        facts = tmp_path / name / f"{name.replace('-', '_')}-1.dist-info"
        facts.mkdir(parents=True)
        (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
        monkeypatch.syspath_prepend(str(tmp_path / name))
    monkeypatch.setattr(sys, "argv", ["build.py", str(tmp_path / "out")])
    assert main(RUNNER) == 1
    said = capsys.readouterr().err
    assert "install both into one environment" in said
    assert all(str(tmp_path / name) in said for name in RUNNER.versions)
    assert not (tmp_path / "out").exists()
