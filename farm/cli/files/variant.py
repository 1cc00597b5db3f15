"""`farm variant`: build, register, list and show model files."""

import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from farm.cli.files.local_variants import (
    VariantBuildResult,
    add_variant,
    build_and_register,
    files_to_remove,
    manifest_of_file,
    missing_input_hint,
    replacement_note,
)
from farm.cli.files.stored_files import SelectedFile, remove_files
from farm.cli.files.variant_report import variant_report, variant_table
from farm.cli.shell.address import connect, data_dir, show_view
from farm.cli.shell.options import DeclaredInputs, Json, Limit, Mine, NamePart, Since, Yes
from farm.cli.shell.output import err, print_data, print_json, print_notice, show
from farm.cli.shell.tables import Listing, name, number
from farm.core.base.spec_errors import name_hint
from farm.core.base.units import size_text
from farm.core.errors import InvalidInput, NotFound
from farm.core.models.declared_inputs import declared_input
from farm.core.models.variant import Variant, precision_note
from farm.presentation.text import past_moment, plural
from farm.variants.build import NOT_TUNED, TuningRequest
from farm.variants.model_zoo import recipes_of
from farm.variants.sources.source import parse_source, usual_runtimes
from farm.variants.sources.tuning_records import read_records

_DIGEST_PREFIX = re.compile(r"[0-9a-f]{6,64}")


def select_variant(views: Sequence[Variant], name: str) -> Variant:
    """Return the variant that new matrices run under that name, or the one with that digest prefix.

    Raises:
        NotFound: there is none, or the prefix is not unique.
    """
    if named := [view for view in views if view.name == name]:
        return max(named, key=lambda view: (view.replaced_by is None, view.variant_id))
    if _DIGEST_PREFIX.fullmatch(name):
        by_digest = {view.manifest.digest: view for view in views if view.manifest.digest.startswith(name)}
        if len(by_digest) == 1:
            return next(iter(by_digest.values()))
    hint = name_hint(name, [view.name for view in views]) or "`farm variant build MODEL` builds some"
    raise NotFound(f"there is no variant {name!r}", hint=hint)


_build_table = Listing[VariantBuildResult](
    name("variant", lambda result: result.view.name),
    name("how", lambda result: result.how),
    number("size", lambda result: size_text(result.view.manifest.size_bytes)),
    number("digest", lambda result: result.view.manifest.digest[:12]),
)

app = typer.Typer(no_args_is_help=True)
VariantName = Annotated[
    str, typer.Argument(metavar="NAME", help="A variant as `farm variant list` names it, or its digest.")
]


@app.command()
def build(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="A network by name: mobilenet_v2; package.module:factory; a .pt2, TorchScript or ONNX file.",
        ),
    ],
    runtime: Annotated[
        str,
        typer.Option(
            help="Comma-separated: torch, onnxruntime, executorch, litert, ncnn, mnn, tvm; or all."
            " Default: that of --format, else torch.",
            metavar="LIST",
        ),
    ] = "",
    precision: Annotated[
        str,
        typer.Option(
            help="Comma-separated: float32, float16, int8-core, int8-full, int8-dynamic, int4-dynamic,"
            " int8-weight-only; or all.",
            metavar="LIST",
        ),
    ] = "float32",
    file_format: Annotated[
        str,
        typer.Option(
            "--format",
            help="Comma-separated: torchscript, lite, flatbuffer, onnx, ort, executorch, tflite, ncnn, mnn,"
            " tvm; or all. Default: the main one of each runtime.",
            metavar="LIST",
        ),
    ] = "",
    memory_format: Annotated[
        str,
        typer.Option(
            help="Memory layout of inputs: contiguous, channels_last; or all."
            " Default: contiguous, and channels_last for nnapi.",
            metavar="LIST",
        ),
    ] = "",
    target: Annotated[
        str,
        typer.Option(
            help="What files are built for: cpu, nnapi, xnnpack, vulkan, x86_64-untuned, arm64-v8a-untuned,"
            " x86_64-tuned, arm64-v8a-tuned; or all. Default: cpu; xnnpack for executorch, x86_64-untuned for"
            " tvm, x86_64-tuned with --tune or --records.",
            metavar="LIST",
        ),
    ] = "",
    model: Annotated[
        str | None,
        typer.Option(help="The network's name; default: that of factory or file.", metavar="NAME"),
    ] = None,
    state_dict: Annotated[
        Path | None,
        typer.Option(help="Weights for a factory or a network by name, of torch.save.", metavar="FILE"),
    ] = None,
    inputs: DeclaredInputs = None,
    tune: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="TRIALS",
            help="TVM: compile and time this many schedules on this machine, and build from the quickest.",
        ),
    ] = 0,
    records: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="TVM: build from the records of earlier trials; with --tune, add to them.",
        ),
    ] = None,
    out_dir: Annotated[
        Path | None,
        typer.Option("--out", help="Folder for the built files; default: `variants` in the data folder."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Build every combination on this machine and register the files with the farm.

    A file that the farm already has, built by the same recipe, is not built again. Runtimes other than torch
    have an environment of their own, which their first build creates: see `farm env`. A factory is your own
    code: it runs on this machine, never in the farm.

    Example: farm variant build mobilenet_v2 --precision float32,int8-core --format torchscript,lite

    Example: farm variant build mobilenet_v2 --runtime tvm --tune 600
    """
    tuning = TuningRequest(trials=tune, records=None if records is None else read_records(records))
    network = parse_source(source, model=model, state_dict=state_dict, inputs=inputs or (), folder=Path.cwd())
    recipes = recipes_of(
        _words(precision),
        _words(file_format),
        runtimes=_words(runtime) or (() if file_format else usual_runtimes(network)),
        memory_formats=_words(memory_format),
        targets=_words(target),
        tuned=tuning != NOT_TUNED,
    )
    folder = out_dir or data_dir() / "variants"
    with connect() as farm:
        done = build_and_register(farm, network, recipes, folder, err(), tuning=tuning)
    if as_json:
        print_json([{**asdict(item.view), "how": item.how} for item in done])
    else:
        print_data(_build_table(done))


@app.command()
def add(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A model file; its format is detected from its content.")
    ],
    files: Annotated[
        list[str] | None,
        typer.Option(
            "--file",
            help="A file that the model needs beside it: a tokenizer, weights. NAME=PATH gives it another"
            " name. Repeatable.",
            metavar="PATH",
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="The network; default: the file's name.", metavar="NAME")
    ] = None,
    precision: Annotated[
        str,
        typer.Option(
            help="float32, float16, int8-core, int8-full, or a word of yours: w8a16.", metavar="WORD"
        ),
    ] = "unstated",
    backend: Annotated[
        str,
        typer.Option(
            help="Comma-separated: backends that can run it; default: those of its format.", metavar="LIST"
        ),
    ] = "",
    inputs: DeclaredInputs = None,
    memory_format: Annotated[
        str, typer.Option(help="Memory layout of inputs: contiguous, channels_last.", metavar="WORD")
    ] = "contiguous",
    target: Annotated[
        str | None, typer.Option(help="What the file was built for; default: cpu.", metavar="WORD")
    ] = None,
    as_json: Json = False,
) -> None:
    """Register a model file that was built elsewhere. docs/variants.md lists the supported formats.

    Its name means this file from then on, also where another one was registered under it since.

    Example: farm variant add model.ptl --model my_net --precision float32 --input 1x3x224x224:float32

    Example: farm variant add llama.pte --file tokenizer.bin --precision int8
    """
    manifest = manifest_of_file(
        file,
        files=files or (),
        model=model,
        precision=precision,
        backends=_words(backend),
        inputs=inputs or (),
        memory_format=memory_format,
        target=target,
    )
    with connect() as farm:
        view = add_variant(farm, file, manifest, files=files or ())
        notes = (
            precision_note(view.manifest.recipe),
            missing_input_hint(view),
            replacement_note(view),
        )
    for note in filter(None, notes):
        print_notice(f"note: {note}")
    show(view, variant_report, as_json=as_json)


@app.command("set")
def set_command(
    variant: VariantName,
    model: Annotated[
        str | None,
        typer.Option(help="Another name of the network, while no matrix runs it.", metavar="NEW"),
    ] = None,
    inputs: DeclaredInputs = None,
    as_json: Json = False,
) -> None:
    """Rename a variant or declare its inputs. With neither, the farm reads again what the file states.

    Example: farm variant set my_net/float32/lite --input 1x3x224x224:float32
    """
    declared = list(map(declared_input, inputs or ()))
    with connect() as farm:
        variant_id = select_variant(farm.variants(), variant).variant_id
        view = farm.change_variant(variant_id, model=model, inputs=declared)
    show(view, variant_report, as_json=as_json)


@app.command()
def remove(
    variant: VariantName,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Remove the files of a variant that you uploaded, so that others fit into your quota.

    A file that another variant has, too, such as a tokenizer, is kept.
    The variant stays listed as expired, with its measurements, and runs again once its file is added again. A
    file that an unfinished matrix needs is kept.

    Example: farm variant remove my_net/float32/lite
    """
    with connect() as farm:
        view = select_variant(farm.variants(), variant)
        selected = [
            SelectedFile(digest=file.digest, text=f"{file.path} of {view.name}" if file.path else view.name)
            for file in files_to_remove(farm, view)
        ]
        remove_files(farm, selected, yes=yes, as_json=as_json, of_variant=True)


@app.command("show")
def show_command(
    variant: VariantName,
    as_json: Json = False,
) -> None:
    """Show one variant in detail. Of several files with the same name, show the one that new matrices run.

    Example: farm variant show mobilenet_v2/int8-core/lite
    """
    show_view(lambda farm: select_variant(farm.variants(), variant), variant_report, as_json=as_json)


@app.command()
def records(
    variant: VariantName,
    out: Annotated[Path, typer.Option("--out", help="The file to write.", metavar="FILE")],
) -> None:
    """Save the records by which a library of TVM was tuned. `farm variant build --records` takes them.

    Example: farm variant records mobilenet_v2/float32/tvm/x86_64-tuned --out mobilenet_v2.records.json
    """
    with connect() as farm:
        view = select_variant(farm.variants(), variant)
        tuning = view.manifest.tuning
        if tuning is None:
            raise NotFound(f"{view.name} has no tuning records", hint="`farm variant show` says which has")
        content = farm.download(tuning.records)
    try:
        out.write_bytes(content)
    except OSError as error:
        raise InvalidInput(
            f"{out} cannot be written: {error.strerror}", hint="give another file with --out"
        ) from None
    print_notice(f"{plural(tuning.trials, 'trial')} of {view.name}: {out}, {tuning.records[:12]}")


@app.command("list")
def list_variants(
    since: Since = None,
    part: NamePart = None,
    mine: Mine = False,
    limit: Limit = None,
    replaced: Annotated[
        bool, typer.Option("--all", help="Also files that others of the same name replaced.")
    ] = False,
    as_json: Json = False,
) -> None:
    """List the registered variants, the newest last. Short form: `farm variants`.

    Example: farm variant list --name mobilenet --since 7d
    """
    begin = past_moment(since, option="--since")
    with connect() as farm:
        views = list(farm.newest_variants(since=begin, name=part, mine=mine, every=replaced, limit=limit))
    show(views[::-1], variant_table, as_json=as_json)


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]
