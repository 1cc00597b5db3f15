"""`farm variant`: build, register, list and show model files."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from farm.cli.shell.address import connect, data_dir
from farm.cli.shell.output import Json, err, out, print_json, print_notice, show

if TYPE_CHECKING:
    from farm.wire.documents.matrices.matrices import VariantView

app = typer.Typer(no_args_is_help=True, help="Variants: the model files that are measured.")


@app.command()
def build(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A network, such as mobilenet_v2.")],
    precision: Annotated[
        str, typer.Option(help="Comma-separated: float32, int8-core, int8-full; or all.", metavar="LIST")
    ] = "float32",
    file_format: Annotated[
        str,
        typer.Option(
            "--format", help="Comma-separated: torchscript, lite, flatbuffer; or all.", metavar="LIST"
        ),
    ] = "torchscript",
    memory_format: Annotated[
        str,
        typer.Option(
            help="Memory layout of inputs: contiguous, channels_last; or all."
            " Default: contiguous, and channels_last for nnapi.",
            metavar="LIST",
        ),
    ] = "",
    target: Annotated[
        str, typer.Option(help="What files are built for: cpu, nnapi; or all.", metavar="LIST")
    ] = "cpu",
    out_dir: Annotated[
        Path | None,
        typer.Option("--out", help="Folder for the built files; default: `variants` in the data folder."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Build every combination on this machine and register the files with the farm.

    A file that the farm already has, built by the same recipe, is not built again.

    Example: farm variant build mobilenet_v2 --precision float32,int8-core --format torchscript,lite
    """
    from farm.cli.files.variant_build import build_and_register
    from farm.cli.shell.tables import registered_table
    from farm.variants.model_zoo import recipes_of

    recipes = recipes_of(
        _words(precision),
        _words(file_format),
        memory_formats=_words(memory_format),
        targets=_words(target),
    )
    with connect() as farm:
        done = build_and_register(farm, model, recipes, out_dir or data_dir() / "variants", err())
    if as_json:
        print_json([{**item.view.model_dump(mode="json"), "how": item.how} for item in done])
    else:
        out().print(registered_table([(item.view, item.how) for item in done]))


@app.command()
def add(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A model file; its format is detected from its content.")
    ],
    model: Annotated[
        str | None, typer.Option(help="The network; default: the file's name.", metavar="NAME")
    ] = None,
    precision: Annotated[
        str, typer.Option(help="float32, float16, int8-core, int8-full.", metavar="WORD")
    ] = "unstated",
    backend: Annotated[
        str,
        typer.Option(
            help="Comma-separated: backends that can run it; default: those of its format.", metavar="LIST"
        ),
    ] = "",
    inputs: Annotated[
        list[str] | None,
        typer.Option("--input", help="1x3x224x224:float32; repeat it for each input.", metavar="SPEC"),
    ] = None,
    memory_format: Annotated[
        str, typer.Option(help="Memory layout of inputs: contiguous, channels_last.", metavar="WORD")
    ] = "contiguous",
    target: Annotated[
        str | None, typer.Option(help="What the file was built for; default: cpu.", metavar="WORD")
    ] = None,
    as_json: Json = False,
) -> None:
    """Register a model file that was built elsewhere. docs/variants.md lists the supported formats.

    Example: farm variant add model.ptl --model my_net --precision float32 --input 1x3x224x224:float32
    """
    from farm.cli.files.variant_add import add_variant, manifest_of_file, missing_input_hint

    manifest = manifest_of_file(
        file,
        model=model,
        precision=precision,
        backends=_words(backend),
        inputs=inputs or (),
        memory_format=memory_format,
        target=target,
    )
    with connect() as farm:
        view = add_variant(farm, file, manifest, err())
    if note := missing_input_hint(file, manifest):
        print_notice(f"note: {note}")
    _show_one(view, as_json=as_json)


@app.command("show")
def show_command(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="A variant as `farm variant list` names it, or its digest."),
    ],
    as_json: Json = False,
) -> None:
    """Show one variant in detail. Of several files with the same name, show the newest.

    Example: farm variant show mobilenet_v2/int8-core/lite
    """
    from farm.cli.files.variant_report import select_variant

    with connect() as farm:
        view = select_variant(farm.variants(), name)
    _show_one(view, as_json=as_json)


@app.command("list")
def list_variants(as_json: Json = False) -> None:
    """List the registered variants. Short form: `farm variants`.

    Example: farm variant list --json
    """
    from farm.cli.shell.tables import variant_table

    with connect() as farm:
        show(farm.variants(), variant_table, as_json=as_json)


def _show_one(view: "VariantView", *, as_json: bool) -> None:
    from farm.cli.files.variant_report import variant_report

    if as_json:
        print_json(view.model_dump(mode="json"))
    else:
        out().print(variant_report(view), soft_wrap=True)


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]
