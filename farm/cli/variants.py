"""`farm variants`: build model files, and list what the farm has."""

from pathlib import Path
from typing import Annotated

import typer

from farm.cli.address import connect, data_dir
from farm.cli.output import Json, err, out, print_json, show

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
    from farm.cli.building import build_and_register
    from farm.cli.render import registered_table
    from farm.variants.catalogue import recipes_of

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


@app.command("list")
def list_command(as_json: Json = False) -> None:
    """List the variants the farm has.

    Example: farm variants list --json
    """
    from farm.cli.render import variant_table

    with connect() as farm:
        show(farm.variants(), variant_table, as_json=as_json)


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]
