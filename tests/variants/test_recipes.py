"""Which files the words of `farm variant build` ask for, by runtime."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from farm.core.errors import InvalidInput
from farm.core.models.builders import (
    BUILDERS,
    TORCH_WITH_XNNPACK,
    abi_of,
    backends_of,
    build_command,
    environment_of,
    is_tuned,
    is_untuned,
)
from farm.core.models.variant import Format, Precision, Recipe, variant_name
from farm.variants.build import build_variants
from farm.variants.environments.pins import ENVIRONMENT_PINS, NEEDED_BYTES, PINS, TOOL_PINS, pinned_versions
from farm.variants.model_zoo import MODEL_ZOO, recipes_of
from farm.variants.recipe import built_with, recipe_digest, runs_here
from farm.variants.sources.source import zoo_source

ROOT = Path(__file__).parents[2]
MOBILENET, RESNET = zoo_source("mobilenet_v2"), zoo_source("resnet18")
FLOAT32_LITE = Recipe(precision=Precision.FLOAT32, format=Format.LITE)


def names(*precisions: str, formats: str = "", runtimes: str = "", targets: str = "") -> list[str]:
    recipes = recipes_of(precisions, formats.split(), runtimes=runtimes.split(), targets=targets.split())
    return [variant_name("net", recipe).removeprefix("net/") for recipe in recipes]


def test_without_a_runtime_torch_builds_as_before() -> None:
    assert names("float32") == ["float32/torchscript"]


def test_a_format_says_whose_builder_is_meant() -> None:
    assert names("float32", formats="ort lite") == ["float32/ort", "float32/lite"]


def test_every_runtime_makes_its_main_format_for_its_usual_target() -> None:
    assert names("float32", runtimes="all") == [
        "float32/torchscript",
        "float32/onnx",
        "float32/executorch/xnnpack",
        "float32/tflite",
        "float32/ncnn",
        "float32/mnn",
        "float32/tvm/x86_64-untuned",
    ]


def test_int8_is_what_all_runtimes_with_static_int8_make() -> None:
    built = names("float32", "int8", runtimes="all")
    assert built == names("float32", "int8-core", runtimes="all")
    assert {"int8-core/torchscript", "int8-core/onnx", "int8-core/tflite"} <= set(built)


def test_what_a_runtime_does_not_make_is_left_out_where_another_one_does() -> None:
    assert names("int8-full", "int8-dynamic", runtimes="all") == [
        "int8-full/torchscript",
        "int8-full/tflite",
        "int8-dynamic/tflite",
    ]


def test_all_of_a_kind_leaves_out_what_cannot_be_combined() -> None:
    assert names("all", runtimes="executorch", targets="all") == [
        "float32/executorch/xnnpack",
        "float32/executorch",
        "float32/executorch/vulkan",
        "int8-core/executorch/xnnpack",
    ]


@pytest.mark.parametrize(
    ("precisions", "formats", "runtimes", "targets", "message", "hint"),
    [
        ("int8-full", "", "onnxruntime", "", "no precision 'int8-full' can be built", "int8-core"),
        ("float32", "ort", "torch", "", "no format 'ort' can be built", "torchscript"),
        (
            "float32",
            "",
            "onnx",
            "",
            "no runtime 'onnx' can be built",
            "did you mean mnn or onnxruntime or ncnn?",
        ),
        ("float32", "", "executorch-qnn", "", "it needs Qualcomm's SDK", "--target qnn --backend qnn"),
        (
            "float32",
            "",
            "executorch",
            "qnn",
            "no target 'qnn' can be built",
            "where Qualcomm's SDK is installed",
        ),
        ("float32", "", "litert", "nnapi", "no target 'nnapi' can be built", "there is cpu"),
        ("int8-core", "", "executorch", "cpu", "no builder combines these words", "(executorch: float32)"),
        ("int8-core", "", "mnn", "", "no precision 'int8-core' can be built", "no static int8"),
        (
            "float32 int8-core",
            "",
            "executorch",
            "cpu",
            "'int8-core' cannot be built with the other",
            "for cpu",
        ),
    ],
)
def test_what_no_builder_makes_is_answered_with_what_they_make(
    precisions: str, formats: str, runtimes: str, targets: str, message: str, hint: str
) -> None:
    with pytest.raises(InvalidInput, match=re.escape(message)) as caught:
        names(*precisions.split(), formats=formats, runtimes=runtimes, targets=targets)
    assert hint in caught.value.hint


def test_a_file_runs_on_what_it_was_built_for() -> None:
    for builder in BUILDERS:
        recipe = Recipe(precision="float32", format=builder.formats[0], target=builder.target)
        is_for_cpu = environment_of(recipe) == TORCH_WITH_XNNPACK or abi_of(recipe)
        assert ("cpu" if is_for_cpu else builder.target) in backends_of(recipe)
    xnnpack = Recipe(precision="float32", format=Format.EXECUTORCH, target="xnnpack")
    assert backends_of(xnnpack) == ("xnnpack",)


def test_a_file_of_machine_code_is_for_one_abi_and_for_the_cpu() -> None:
    recipes = recipes_of(["float32"], runtimes=["tvm"], targets=["all"])
    assert [abi_of(recipe) for recipe in recipes] == ["x86_64", "arm64-v8a"]
    assert {backends_of(recipe) for recipe in recipes} == {("cpu",)}
    assert [runs_here(recipe) for recipe in recipes].count(True) <= 1
    assert all(map(is_untuned, recipes))
    plain = Recipe(precision="float32", format=Format.ONNX)
    assert (abi_of(plain), is_untuned(plain)) == (None, False)


def test_tuned_files_are_made_instead_of_untuned_ones_where_tuning_is_asked_for() -> None:
    recipes = recipes_of(["float32"], runtimes=["onnxruntime", "tvm"], targets=["all"], tuned=True)
    assert [recipe.target for recipe in recipes] == ["cpu", "x86_64-tuned", "arm64-v8a-tuned"]
    [first] = recipes_of(["float32"], runtimes=["tvm"], tuned=True)
    assert (first.target, abi_of(first), is_tuned(first)) == ("x86_64-tuned", "x86_64", True)
    assert backends_of(first) == ("cpu",)
    assert build_command("net", first) == (
        "farm variant build net --precision float32 --format tvm --tune TRIALS --target x86_64-tuned"
    )
    with pytest.raises(InvalidInput, match="for x86_64-tuned, nothing says how") as caught:
        recipes_of(["float32"], runtimes=["tvm"], targets=["x86_64-tuned"])
    assert "--tune TRIALS" in caught.value.hint
    with pytest.raises(InvalidInput, match="nothing of torch can be tuned"):
        recipes_of(["float32"], tuned=True)


def test_a_recipe_of_another_runtime_needs_no_torch_here_and_states_its_pins() -> None:
    [recipe] = recipes_of(["int8-core"], ["ort"])
    source = zoo_source("resnet18")
    assert built_with(source, recipe)["onnxruntime"] == pinned_versions("onnxruntime")["onnxruntime"]
    digests = {recipe_digest(source, each) for each in recipes_of(["float32"], runtimes=["all"])}
    assert len(digests) == 7


def test_pins_are_those_of_the_makefile_and_of_the_extras() -> None:
    makefile = (ROOT / "Makefile").read_text()
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for runtime in PINS:
        pinned = pinned_versions(runtime)
        assert f"torch=={pinned['torch']}\n" in makefile
        assert f"torchvision=={pinned['torchvision']}\n" in makefile
    assert extras["onnxruntime"] == [f"onnxruntime=={pinned_versions('onnxruntime')['onnxruntime']}"]
    assert extras["executorch"] == [f"executorch=={pinned_versions('executorch')['executorch']}"]
    assert f"ziglang=={pinned_versions('zig')['ziglang']}" in extras["dev"]
    assert extras["litert"] == [f"ai-edge-litert=={pinned_versions('litert')['ai-edge-litert']}"]
    versions = {word for name in (*PINS, "zig") for word in map("==".join, pinned_versions(name).items())}
    for variable in ("FURTHER_RUNTIMES", "RUNTIMES_ALONE"):
        assert set(makefile.partition(f"\n{variable} := ")[2].partition("\n")[0].split()) < versions


def test_every_runtime_but_torch_has_an_environment_and_an_exporter() -> None:
    others = {builder.runtime for builder in BUILDERS} - {"torch"}
    assert set(PINS) == others
    environments = {
        environment_of(Recipe(precision="float32", format=builder.formats[0], target=builder.target))
        for builder in BUILDERS
    } - {"torch"}
    assert environments == {*others, TORCH_WITH_XNNPACK}
    assert set(NEEDED_BYTES) == set(ENVIRONMENT_PINS) == {*environments, *TOOL_PINS}
    exporters = ROOT / "farm" / "variants" / "exporters"
    assert others == {path.stem for path in exporters.glob("*.py")} - {"__init__"}


def test_torch_comes_first_and_alone() -> None:
    for steps in PINS.values():
        assert [word.partition("==")[0] for word in steps[0]] == ["torch"]


def test_every_format_that_is_built_has_one_runtime() -> None:
    formats = [(builder.runtime, format) for builder in BUILDERS for format in builder.formats]
    built = {format for _, format in formats}
    assert len(built) == len(set(formats))
    assert set(Format) - built == {Format.GGUF, Format.LITERTLM}


@pytest.mark.parametrize(
    ("model", "precisions", "formats", "hint"),
    [
        ("mobilnet_v2", ["float32"], ["lite"], "mobilenet_v2"),
        ("mobilenet_v2", ["int8-cor"], ["lite"], "int8-core"),
        ("mobilenet_v2", ["float32"], ["light"], "lite"),
        ("mobilenet_v2", ["float16"], ["lite"], "float32"),
        ("mobilenet_v2", ["float32"], ["nccn"], "ncnn"),
    ],
)
def test_a_misspelt_word_is_answered_with_the_right_one(
    model: str, precisions: list[str], formats: list[str], hint: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidInput) as caught:
        build_variants(zoo_source(model), recipes_of(precisions, formats), tmp_path)
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        (Recipe(precision=Precision.FLOAT32, format=Format.LITE, memory_format="nhwc"), "memory format"),
        (Recipe(precision=Precision.FLOAT32, format=Format.LITE, target="vulkan"), "target"),
        (Recipe(precision=Precision.FLOAT16, format=Format.LITE), "precision"),
        (Recipe(precision=Precision.FLOAT32, format=Format.GGUF), "format"),
    ],
)
def test_what_the_builder_does_not_make_is_refused(recipe: Recipe, message: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=f"no {message} .* can be built"):
        build_variants(MOBILENET, [recipe], tmp_path)


def test_all_stands_for_every_word() -> None:
    recipes = recipes_of(["all"], ["all"], memory_formats=["all"], targets=["all"])
    # Precisions, formats and layouts for two targets; float32 alone for XNNPACK.
    assert len({recipe_digest(RESNET, recipe) for recipe in recipes}) == len(recipes) == 3 * 3 * 2 * 2 + 3 * 2


def test_files_for_nnapi_take_channels_last_unless_someone_says_otherwise() -> None:
    [plain] = recipes_of(["float32"], ["lite"], targets=["nnapi"])
    [said] = recipes_of(["float32"], ["lite"], targets=["nnapi"], memory_formats=["contiguous"])
    assert (plain.memory_format, said.memory_format) == ("channels_last", "contiguous")


def test_nothing_to_build_is_said() -> None:
    with pytest.raises(InvalidInput, match="nothing to build"):
        recipes_of([], ["lite"])


def test_recipes_are_told_apart_without_torch() -> None:
    code = (
        "import sys\n"
        "from farm.variants import build, model_zoo, recipe\n"
        "from farm.variants.sources.source import zoo_source\n"
        "recipes = model_zoo.recipes_of(['float32', 'int8-core'], ['lite'])\n"
        "models = [entry.model for entry in model_zoo.MODEL_ZOO]\n"
        "digests = {recipe.recipe_digest(zoo_source(model), made) for model in models for made in recipes}\n"
        "print(len(digests), 'torch' in sys.modules)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ran.stdout.split() == [str(2 * len(MODEL_ZOO)), "False"]


def test_without_torch_the_way_to_get_it_is_said() -> None:
    code = (
        "from farm.core.errors import InvalidInput\n"
        "from farm.core.models.variant import Format, Precision, Recipe\n"
        "from farm.variants.recipe import recipe_digest\n"
        "from farm.variants.sources.source import zoo_source\n"
        "try:\n"
        "    recipe_digest(zoo_source('resnet18'), Recipe(precision=Precision.FLOAT32, format=Format.LITE))\n"
        "except InvalidInput as error:\n"
        "    print(error, '|', error.hint)\n"
    )
    words = [sys.executable, "-S", "-c", code]  # -S: no site-packages, so nothing is installed
    ran = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "torch is not installed" in ran.stdout
    assert "make install" in ran.stdout


def test_a_recipe_has_the_same_digest_every_time() -> None:
    assert recipe_digest(RESNET, FLOAT32_LITE) == recipe_digest(RESNET, FLOAT32_LITE)
