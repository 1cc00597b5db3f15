"""One's own networks, really loaded and built: tiny ones, in processes of their own."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

from farm.blobs.inspection import check_model_file
from farm.core.errors import VariantInvalid
from farm.variants.build import BuiltVariant, build_variants
from farm.variants.model_zoo import recipes_of
from farm.variants.sources.source import parse_source

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(900),
    pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed"),
]

ROOT = Path(__file__).parents[3]
IMAGE = "1x3x16x16:float32"
NETS = """
import torch
from torch import nn

def small():
    ends = nn.Conv2d(3, 8, 3), nn.Linear(32, 5)
    return nn.Sequential(ends[0], nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), ends[1])

class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.last = nn.Embedding(10, 8), nn.Linear(8, 4)
    def forward(self, words, scale):
        mean = self.last(self.table(words).mean(1))
        return mean * scale, mean

def numbers():
    return {"weights": 1}

def needs_more():
    import a_module_that_nobody_has

def broken():
    raise ValueError("no such size")
"""
#: Writes the network `small` as each kind of file.
FILES = """
import torch, nets
torch.manual_seed(1)
net, image = nets.small().eval(), torch.randn(1, 3, 16, 16)
torch.export.save(torch.export.export(net, (image,)), "net.pt2")
torch.jit.script(net).save("net.pt")
weights = net.state_dict()
torch.save(weights, "net.pth")
torch.save({"state_dict": weights, "epoch": 3}, "nested.pth")
torch.save({f"module.{key}": value for key, value in weights.items()}, "wrapped.pth")
torch.save({**weights, "0.weight": torch.zeros(4, 3, 3, 3)}, "wide.pth")
torch.save(net, "whole.pth")
"""
#: Loads sources and prints why each is refused, as JSON; None where it is not.
LOADED = """
import json, sys
import torch
from farm.core.errors import VariantInvalid
from farm.variants.sources.source import source_of_json
from farm.variants.sources.user_network import load_network
refusals = []
for text in sys.argv[1:]:
    try:
        load_network(source_of_json(text))
    except VariantInvalid as error:
        refusals.append([error.message, error.hint])
    else:
        refusals.append(None)
print(json.dumps(refusals))
"""
#: Source, inputs, file of weights; then the message and the hint.
REFUSED = (
    ("gone:small", IMAGE, "", "there is no module 'gone'", "torch.export.save"),
    ("nets:smal", IMAGE, "", "nets has no 'smal'", "did you mean small"),
    ("nets:numbers", IMAGE, "", "returned no nn.Module but a dict", "returns the network"),
    ("nets:needs_more", IMAGE, "", "No module named 'a_module_that_nobody_has'", "torch.export.save"),
    ("nets:broken", IMAGE, "", "nets:broken failed: ValueError: no such size", "takes no argument"),
    ("nets:small", "1x4x16x16:float32", "", "does not run with 1x4x16x16:float32", "--input"),
    ("nets:small", f"{IMAGE} {IMAGE}", "", "does not run with", "--input"),
    ("net.pt2", "1x3x9x9:float32", "", "does not run with 1x3x9x9:float32", "--input"),
    ("nets:small", IMAGE, "nested.pth", "is no state dict", "save its item 'state_dict' alone"),
    ("nets:small", IMAGE, "wrapped.pth", "it misses 0.weight, 0.bias, 4.weight and 1 more", "'module.'"),
    ("nets:small", IMAGE, "wide.pth", "0.weight has (4, 3, 3, 3) instead of (8, 3, 3, 3)", "very network"),
    ("nets:small", IMAGE, "whole.pth", "is no state dict", "torch.save(net.state_dict()"),
)


@contextmanager
def installed_here(_runtime: str, _say: Callable[[str], None]) -> Iterator[Path]:
    """The packages that an environment would have are those of the tests."""
    yield Path(sys.executable)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nets")
    (folder / "nets.py").write_text(NETS)
    subprocess.run([sys.executable, "-W", "ignore", "-c", FILES], cwd=folder, check=True)
    return folder


def sources(folder: Path, text: str, inputs: str, weights: str = "") -> str:
    from farm.variants.sources.source import source_json

    name = str(folder / text) if (folder / text).exists() else text
    path = folder / weights if weights else None
    return source_json(parse_source(name, inputs=inputs.split(), state_dict=path, folder=folder))


def test_what_is_no_network_is_refused_with_a_way_out(folder: Path) -> None:
    asked = [sources(folder, text, inputs, weights) for text, inputs, weights, _, _ in REFUSED]
    accepted = sources(folder, "nets:small", IMAGE, "net.pth")
    words = [sys.executable, "-W", "ignore", "-c", LOADED, accepted, *asked]
    ran = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    first, *refusals = json.loads(ran.stdout)
    assert first is None
    for (text, _, _, message, hint), refusal in zip(REFUSED, refusals, strict=True):
        assert refusal is not None, text
        assert message in refusal[0]
        assert hint in refusal[1]


def built(
    folder: Path, out: Path, text: str, format: str, *inputs: str, precision: str = "float32"
) -> BuiltVariant:
    name = str(folder / text) if (folder / text).exists() else text
    source = parse_source(name, inputs=inputs, folder=folder)
    [variant] = build_variants(source, recipes_of([precision], [format]), out, interpreter=installed_here)
    assert check_model_file(variant.path) is variant.manifest.recipe.format
    return variant


def test_a_factory_is_built_each_time_to_the_same_file_and_recipe(folder: Path, tmp_path: Path) -> None:
    first = built(folder, tmp_path, "nets:small", "lite", IMAGE)
    again = built(folder, tmp_path, "nets:small", "lite", IMAGE)
    assert first.path.name == "small-float32.ptl"
    assert (first.manifest.parameters, first.manifest.inputs[0].shape) == (389, (1, 3, 16, 16))
    assert not again.reused
    assert again.manifest == first.manifest


def test_a_program_of_torch_export_states_its_inputs(folder: Path, tmp_path: Path) -> None:
    made = built(folder, tmp_path, "net.pt2", "torchscript")
    assert [spec.shape for spec in made.manifest.inputs] == [(1, 3, 16, 16)]
    assert built(folder, tmp_path, "net.pt2", "torchscript").reused


def test_torchscript_is_built_for_other_interpreters(folder: Path, tmp_path: Path) -> None:
    made = built(folder, tmp_path, "net.pt", "flatbuffer", IMAGE)
    assert made.manifest.flops is None
    assert made.manifest.built_with["weights"].startswith("of a TorchScript file")


@pytest.mark.skipif(find_spec("onnx") is None, reason="onnx is not installed")
def test_onnx_runtime_takes_several_inputs_and_outputs_and_quantizes_its_own_files(
    folder: Path, tmp_path: Path
) -> None:
    inputs = ("1x6:int64", "1x4:float32")
    made = built(folder, tmp_path, "nets:Two", "onnx", *inputs)
    assert made.manifest.fidelity is not None
    assert made.manifest.fidelity.correlation > 0.9999
    exported = built(folder, tmp_path, "net.pt2", "onnx")
    quantized = built(folder, tmp_path, str(exported.path), "onnx", precision="int8-core")
    assert quantized.manifest.fidelity is not None
    assert 0.9 < quantized.manifest.fidelity.correlation < 1
    assert [spec.name for spec in quantized.manifest.inputs] == ["input"]


def test_a_network_that_cannot_be_scripted_or_traced_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(VariantInvalid, match="does not run with"):
        built(folder, tmp_path, "nets:small", "lite", "1x3:float32")
    assert list(tmp_path.iterdir()) == []
