"""What `farm variant build` makes, by runtime, and the command that makes a variant."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from farm.core.models.variant import TORCH_FORMATS, Format, Manifest, Precision, PrecisionWord, Recipe

#: The runtime whose files the farm's own torch makes.
TORCH = "torch"
#: The environment of an older torch, whose builds for PCs have XNNPACK.
TORCH_WITH_XNNPACK = "torch-xnnpack"
XNNPACK = "xnnpack"
#: Weights in int8; activations are quantized by their range in each run. LiteRT calls it so.
INT8_DYNAMIC = "int8-dynamic"
#: The same with weights in 4 bits.
INT4_DYNAMIC = "int4-dynamic"
#: Weights in int8, activations in floating point: a smaller file.
INT8_WEIGHT_ONLY = "int8-weight-only"


@dataclass(frozen=True, slots=True, kw_only=True)
class Builder:
    """What a runtime's builder makes for one target: every combination of its words."""

    runtime: str
    target: str
    #: The first one is made where none is named.
    formats: tuple[Format, ...]
    precisions: tuple[PrecisionWord, ...]
    #: The first one is made where none is named.
    memory_formats: tuple[str, ...] = ("contiguous",)
    #: What people look for and it does not make, with the reason.
    omission: str = ""

    def makes(self, recipe: Recipe) -> bool:
        """Return whether this builder makes such a file."""
        return (
            recipe.target == self.target
            and recipe.format in self.formats
            and recipe.precision in self.precisions
            and recipe.memory_format in self.memory_formats
        )


_TORCH_PRECISIONS = (Precision.FLOAT32, Precision.INT8_CORE, Precision.INT8_FULL)

#: Of TVM's files: the loops are as its code generator orders them, many times slower than tuned ones.
UNTUNED = "-untuned"
#: The loops are ordered as records of measured schedules say.
TUNED = "-tuned"

#: The first one of a runtime is for the target that is taken where none is named.
BUILDERS = (
    Builder(
        runtime=TORCH,
        target="cpu",
        formats=TORCH_FORMATS,
        precisions=_TORCH_PRECISIONS,
        memory_formats=("contiguous", "channels_last"),
    ),
    # Its mobile optimizer packs the weights. Builds of torch for phones have XNNPACK, which loads them.
    Builder(
        runtime=TORCH,
        target=XNNPACK,
        formats=TORCH_FORMATS,
        precisions=(Precision.FLOAT32,),
        memory_formats=("contiguous", "channels_last"),
    ),
    Builder(
        runtime=TORCH,
        target="nnapi",
        formats=TORCH_FORMATS,
        precisions=_TORCH_PRECISIONS,
        # NNAPI computes in NHWC: any other input is copied into it, within the harness's clock.
        memory_formats=("channels_last", "contiguous"),
    ),
    Builder(
        runtime="onnxruntime",
        target="cpu",
        formats=(Format.ONNX, Format.ORT),
        precisions=(Precision.FLOAT32, Precision.INT8_CORE),
    ),
    Builder(
        runtime="executorch",
        target=XNNPACK,
        formats=(Format.EXECUTORCH,),
        precisions=(Precision.FLOAT32, Precision.INT8_CORE),
    ),
    # Its portable kernels.
    Builder(
        runtime="executorch",
        target="cpu",
        formats=(Format.EXECUTORCH,),
        precisions=(Precision.FLOAT32,),
    ),
    # For GPUs; what Vulkan does not take stays with the portable kernels.
    Builder(
        runtime="executorch",
        target="vulkan",
        formats=(Format.EXECUTORCH,),
        precisions=(Precision.FLOAT32,),
    ),
    Builder(
        runtime="litert",
        target="cpu",
        formats=(Format.TFLITE,),
        precisions=(
            Precision.FLOAT32,
            Precision.FLOAT16,
            Precision.INT8_CORE,
            Precision.INT8_FULL,
            INT8_DYNAMIC,
            INT4_DYNAMIC,
        ),
    ),
    Builder(
        runtime="ncnn",
        target="cpu",
        formats=(Format.NCNN,),
        precisions=(Precision.FLOAT32,),
    ),
    Builder(
        runtime="mnn",
        target="cpu",
        formats=(Format.MNN,),
        precisions=(Precision.FLOAT32, INT8_WEIGHT_ONLY),
        omission="no static int8: MNN's quantizer of it aborts",
    ),
    Builder(
        runtime="tvm",
        target=f"x86_64{UNTUNED}",
        formats=(Format.TVM,),
        precisions=(Precision.FLOAT32,),
    ),
    Builder(
        runtime="tvm",
        target=f"arm64-v8a{UNTUNED}",
        formats=(Format.TVM,),
        precisions=(Precision.FLOAT32,),
    ),
)
#: Made instead of the untuned ones where tuning or its records are asked for.
TUNED_BUILDERS = tuple(
    replace(each, target=each.target.replace(UNTUNED, TUNED)) for each in BUILDERS if UNTUNED in each.target
)

#: Backends that can run any file of a format. TorchScript and ExecuTorch compile the backend into the file,
#: so only the CPU is assumed.
BACKENDS_BY_FORMAT: Mapping[Format, tuple[str, ...]] = {
    Format.TORCHSCRIPT: ("cpu",),
    Format.LITE: ("cpu",),
    Format.FLATBUFFER: ("cpu",),
    Format.EXECUTORCH: ("cpu",),
    Format.TFLITE: ("cpu", "xnnpack", "gpu", "nnapi", "hexagon", "qnn", "npu", "external"),
    Format.ONNX: ("cpu", "xnnpack", "nnapi", "qnn", "acl", "webgpu"),
    Format.ORT: ("cpu", "xnnpack", "nnapi", "qnn", "acl", "webgpu"),
    Format.NCNN: ("cpu", "vulkan"),
    Format.TVM: ("cpu",),
    Format.MNN: ("cpu", "opencl", "nnapi", "opengl", "vulkan"),
    Format.GGUF: ("cpu", "opencl", "vulkan", "hexagon"),
    Format.LITERTLM: ("cpu", "gpu", "npu"),
}


def backends_of(recipe: Recipe) -> tuple[str, ...]:
    """Return the backends that can run a file built by a recipe."""
    is_for_cpu = recipe.target == "cpu" or environment_of(recipe) == TORCH_WITH_XNNPACK or abi_of(recipe)
    return BACKENDS_BY_FORMAT[recipe.format] if is_for_cpu else (recipe.target,)


def abi_of(recipe: Recipe) -> str | None:
    """Return the ABI that a file is compiled for; None of files that every CPU reads."""
    return recipe.target.removesuffix(UNTUNED).removesuffix(TUNED) if recipe.format is Format.TVM else None


def is_tuned(recipe: Recipe) -> bool:
    """Return whether a file is machine code that records of measured schedules ordered."""
    return recipe.target.endswith(TUNED)


def is_untuned(recipe: Recipe) -> bool:
    """Return whether a file is machine code whose loops nothing tuned."""
    return recipe.target.endswith(UNTUNED)


def is_unoptimized(manifest: Manifest) -> bool:
    """Return whether phones may run another file of the network faster.

    Its weights are not packed for XNNPACK, or it is machine code whose loops nothing tuned.
    """
    return manifest.mobile_optimized is False or is_untuned(manifest.recipe)


def runtime_of(format: Format) -> str:
    """Return the runtime whose builder makes files of a format.

    Raises:
        LookupError: none does.
    """
    for builder in BUILDERS:
        if format in builder.formats:
            return builder.runtime
    raise LookupError(format)


def environment_of(recipe: Recipe) -> str:
    """Return where a recipe is built: by the farm's own torch, or the environment of a runtime.

    Raises:
        LookupError: no builder makes its format.
    """
    runtime = runtime_of(recipe.format)
    return TORCH_WITH_XNNPACK if (runtime, recipe.target) == (TORCH, XNNPACK) else runtime


def build_command(model: str, recipe: Recipe) -> str:
    """Return the command that builds such a variant, or registers a file made elsewhere."""
    builder = next((each for each in (*BUILDERS, *TUNED_BUILDERS) if each.makes(recipe)), None)
    if builder is not None:
        command = f"farm variant build {model} --precision {recipe.precision} --format {recipe.format}"
        command += " --tune TRIALS" if recipe.target.endswith(TUNED) else ""
    else:
        command = f"farm variant add FILE --model {model} --precision {recipe.precision}"
    # Always given for nnapi, whose files are built channels-last unless the recipe says otherwise.
    if recipe.memory_format != "contiguous" or recipe.target == "nnapi":
        command += f" --memory-format {recipe.memory_format}"
    return command if recipe.target == _usual_target(builder) else f"{command} --target {recipe.target}"


def _usual_target(builder: Builder | None) -> str:
    """Return the target of files for which none is named."""
    if builder is None:
        return "cpu"
    return next(each.target for each in BUILDERS if each.runtime == builder.runtime)
