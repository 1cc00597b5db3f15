"""`farm variants`: build model files, add those made elsewhere, and show what the farm has."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from farm.cli.shell.address import connect, data_dir
from farm.cli.shell.output import Json, err, out, print_json, print_notice, show

if TYPE_CHECKING:
    from farm.wire.documents.matrices.matrices import VariantView

app = typer.Typer(no_args_is_help=True, help="Variants: concrete files of a model.")


@app.command()
def build(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A network, for instance mobilenet_v2.")],
    precision: Annotated[
        str, typer.Option(help="By comma: float32, int8-core, int8-full; or all.", metavar="LIST")
    ] = "float32",
    file_format: Annotated[
        str, typer.Option("--format", help="By comma: torchscript, lite, flatbuffer; or all.", metavar="LIST")
    ] = "torchscript",
    memory_format: Annotated[
        str,
        typer.Option(
            help="How inputs lie in memory: contiguous, channels_last; or all."
            " Default: contiguous, and channels_last for nnapi.",
            metavar="LIST",
        ),
    ] = "",
    target: Annotated[
        str, typer.Option(help="What files are made for: cpu, nnapi; or all.", metavar="LIST")
    ] = "cpu",
    out_dir: Annotated[
        Path | None,
        typer.Option("--out", help="Where files are built; default: `variants` in the data folder."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Build every combination on this machine, and register the files with the farm.

    What the farm has already, made by the same recipe, is not built again.

    Example: farm variants build mobilenet_v2 --precision float32,int8-core --format torchscript,lite
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
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A model file; its content says what kind.")],
    model: Annotated[
        str | None, typer.Option(help="The network; default: the file's name.", metavar="NAME")
    ] = None,
    precision: Annotated[
        str, typer.Option(help="float32, float16, int8-core, int8-full.", metavar="WORD")
    ] = "unstated",
    backend: Annotated[
        str, typer.Option(help="By comma: what it can run on; default: by its format.", metavar="LIST")
    ] = "",
    inputs: Annotated[
        list[str] | None,
        typer.Option("--input", help="1x3x224x224:float32; once for each input.", metavar="SPEC"),
    ] = None,
    memory_format: Annotated[
        str, typer.Option(help="How inputs lie in memory: contiguous, channels_last.", metavar="WORD")
    ] = "contiguous",
    target: Annotated[
        str | None, typer.Option(help="What it was made for; default: cpu.", metavar="WORD")
    ] = None,
    as_json: Json = False,
) -> None:
    """Register a model file that was made elsewhere; docs/variants.md says which formats are known.

    Example: farm variants add model.ptl --model my_net --precision float32 --input 1x3x224x224:float32
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
        typer.Argument(metavar="NAME", help="A variant as `farm variants list` names it, or its digest."),
    ],
    as_json: Json = False,
) -> None:
    """Show everything that is known of one variant; of several files of a name, the newest.

    Example: farm variants show mobilenet_v2/int8-core/lite
    """
    from farm.cli.files.variant_report import select_variant

    with connect() as farm:
        view = select_variant(farm.variants(), name)
    _show_one(view, as_json=as_json)


@app.command("list")
def list_command(as_json: Json = False) -> None:
    """List the variants the farm has.

    Example: farm variants list --json
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
