"""Variants as the terminal shows them: the report of one, and tables."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from farm.cli.shell.tables import Field, Listing, name, number, prose, sections, text_report
from farm.core.base.units import size_text, whole_text
from farm.core.models.declared_inputs import shape_text
from farm.core.models.variant import UNNAMED, Fidelity, Manifest, TensorSpec, Variant, model_file_name
from farm.presentation.text import EMPTY_CELL, local_time_text, plural

#: Of the kinds of operators, the most frequent.
_KINDS_SHOWN = 6


def variant_report(view: Variant) -> Text:
    """Return the report of a variant."""
    return text_report(view.name, _fields(view), width=11)


def built_with_text(manifest: Manifest) -> str:
    """Return `torch 2.8.0, torchvision 0.23.0`."""
    return ", ".join(f"{tool} {version}" for tool, version in manifest.built_with.items())


def input_texts(inputs: Sequence[TensorSpec]) -> str:
    """Return `1x3x224x224 float32`; `-` if the inputs are unknown."""
    return ", ".join(f"{shape_text(spec)} {spec.dtype}" for spec in inputs) or EMPTY_CELL


def _fields(view: Variant) -> Iterator[Field]:
    manifest, recipe = view.manifest, view.manifest.recipe
    yield "recipe", f"{recipe.precision}, {recipe.format}, {recipe.memory_format}, for {recipe.target}"
    yield from file_lines(manifest)
    if (tuning := manifest.tuning) is not None:
        yield "tuned by", f"{plural(tuning.trials, 'trial')}"
        yield "records", f"{size_text(tuning.size_bytes)}, {tuning.records}"
    yield "backends", ", ".join(manifest.backends) or EMPTY_CELL
    yield "inputs", ", ".join(_input_lines(manifest)) or EMPTY_CELL
    yield "parameters", _count(manifest.parameters)
    yield "MACs", _macs_line(manifest)
    if manifest.flops is not None:
        yield "FLOPs", f"{whole_text(manifest.flops)}, 2 x MAC, of the float32 network"
    if manifest.operators:
        yield "operators", _operators_line(manifest.operators)
    yield "fidelity", _fidelity_line(manifest.fidelity)
    yield "built with", built_with_text(manifest) or EMPTY_CELL
    yield "registered", local_time_text(view.created_at)
    if view.replaces is not None:
        yield "replaces", f"{view.replaces[:12]}, which is still run by that digest"
    if view.replaced_by is not None:
        yield "replaced", f"by {view.replaced_by[:12]}, which new matrices run"


def file_lines(manifest: Manifest, *, name: str = "") -> Iterator[Field]:
    """Yield the line of a variant's file; of several, that of all together and one for each."""
    called = f"{name}, " if name else ""
    together = f"{called}{size_text(manifest.size_bytes)}"
    yield ("files" if manifest.files else "file"), f"{together}, {manifest.digest}"
    for file in manifest.files:
        path = file.path or model_file_name(manifest.recipe.format)
        yield "", f"{path}, {size_text(file.size_bytes)}, {file.digest}"


def _input_lines(manifest: Manifest) -> Iterator[str]:
    """Yield each input with its name and what is free in it, and where that is from."""
    for spec in manifest.inputs:
        name = f"{spec.name} " if spec.name else ""
        free = ", ".join(dict.fromkeys(symbol for symbol in spec.free if symbol not in ("", UNNAMED)))
        yield f"{name}{shape_text(spec)} {spec.dtype}" + (f" ({free} is free)" if free else "")
    if manifest.bundled_inputs is not None:
        yield "bundled in the file" if manifest.bundled_inputs else "none bundled in the file"
    elif not manifest.inputs and manifest.inputs_unread is not None:
        yield f"unknown: {manifest.inputs_unread}"


def _fidelity_line(fidelity: Fidelity | None) -> str:
    if fidelity is None:
        return "not compared with float32"
    return (
        f"with float32 on {fidelity.inputs} inputs: correlation {fidelity.correlation:.4f}, largest"
        f" difference {fidelity.max_difference:.3g}, same best class for {fidelity.top1_share:.0%}"
    )


def _macs_line(manifest: Manifest) -> str:
    """Return `300 774 272, counted in the file; 1 MAC = 2 FLOP`, or why they are not counted."""
    if manifest.macs is None:
        return f"not counted: {manifest.macs_uncounted}"
    return f"{whole_text(manifest.macs)}, counted in the file; 1 MAC = 2 FLOP"


def _operators_line(operators: Mapping[str, int]) -> str:
    """Return `35 CONV_2D, 17 DEPTHWISE_CONV_2D, 10 ADD; 65 in all`."""
    named = [f"{count} {name}" for name, count in list(operators.items())[:_KINDS_SHOWN]]
    rest = f", {others} other kinds" if (others := len(operators) - len(named)) > 0 else ""
    return f"{', '.join(named)}{rest}; {sum(operators.values())} in all"


def _count(number: int | None) -> str:
    return EMPTY_CELL if number is None else whole_text(number)


def variant_table(views: Sequence[Variant]) -> RenderableType:
    """Return a table for each model: what its files share is above, and labels leave the model out."""
    if not views:
        return _files_table(())
    by_model: dict[str, list[Variant]] = {}
    for view in views:
        by_model.setdefault(view.manifest.model, []).append(view)
    return sections(*(Group(_model_line(model, own), _files_table(own)) for model, own in by_model.items()))


def _model_line(model: str, views: Sequence[Variant]) -> Text:
    shared = [
        f"{heading} {text_of(views[0])}"
        for heading, text_of in (("backends", _backends_text), ("input", _inputs_text))
        if _is_shared(text_of, views) and text_of(views[0]) != EMPTY_CELL
    ]
    return Text(f"{model}/  ", style="bold").append(", ".join(shared), style="not bold")


def _is_shared(text_of: Callable[[Variant], str], views: Sequence[Variant]) -> bool:
    return len({text_of(view) for view in views}) == 1


def _backends_text(view: Variant) -> str:
    return ", ".join(view.manifest.backends) or EMPTY_CELL


def _inputs_text(view: Variant) -> str:
    return input_texts(view.manifest.inputs)


def _label(view: Variant) -> str:
    label = view.name.removeprefix(f"{view.manifest.model}/")
    states = {"replaced": view.replaced_by, "expired": view.expired_at}
    shown = [state for state, of in states.items() if of is not None]
    return f"{label} ({', '.join(shown)})" if shown else label


_files_table = Listing[Variant](
    name("variant", _label),
    prose("backends", _backends_text, is_shown=lambda views: not _is_shared(_backends_text, views)),
    prose("input", _inputs_text, is_shown=lambda views: not _is_shared(_inputs_text, views)),
    number(
        "fidelity",
        lambda view: view.manifest.fidelity and f"{view.manifest.fidelity.correlation:.3f}",
        is_shown=lambda views: any(view.manifest.fidelity for view in views),
    ),
    number("size", lambda view: size_text(view.manifest.size_bytes)),
    number("digest", lambda view: view.manifest.digest[:12]),
    name("registered", lambda view: local_time_text(view.created_at)),
)
