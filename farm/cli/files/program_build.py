"""`farm harness build` and `fetch`: programs for phones, built here or taken from their vendors."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated

import typer

from farm.bundles.build import RECIPES, build_bundle, bundles_dir, recipe_for
from farm.bundles.local_bundle import LocalBundle
from farm.bundles.vendor.fetch import fetch_program
from farm.bundles.vendor.seen_digests import seen_digests_path
from farm.bundles.vendor.table import VENDOR_PROGRAMS, vendor_program
from farm.cli.files.program_report import show_registered
from farm.cli.files.program_upload import add_program
from farm.cli.shell.address import connect
from farm.cli.shell.options import Json
from farm.cli.shell.output import print_notice

Name = Annotated[
    str | None, typer.Option(metavar="NAME", help="Harness to register it for, as ann/llama-bench.")
]


def build(
    program: Annotated[
        str, typer.Argument(metavar="PROGRAM", help=f"What to build: {' or '.join(RECIPES)}.")
    ],
    abi: Annotated[str, typer.Option(metavar="ABI", help="ABI of the phones.")] = "arm64-v8a",
    name: Name = None,
    as_json: Json = False,
) -> None:
    """Build a program for phones on this machine without an NDK, start it once under qemu, and register it.

    A bundle that was built before from the same versions is used again.

    Example: farm harness build llama.cpp
    """
    recipe = recipe_for(program, abi)
    _register(
        recipe.harness, lambda: build_bundle(recipe, bundles_dir(), print_notice), name=name, as_json=as_json
    )


def fetch(
    program: Annotated[
        str,
        typer.Argument(
            metavar="PROGRAM@VERSION",
            help=f"What to take, in the vendor's version: {' or '.join(VENDOR_PROGRAMS)}.",
        ),
    ],
    sha256: Annotated[
        str | None, typer.Option(metavar="DIGEST", help="Digest that the downloaded file has to have.")
    ] = None,
    base: Annotated[
        str | None,
        typer.Option("--from", metavar="URL", help="Address in place of the vendor's, as of a mirror."),
    ] = None,
    name: Name = None,
    as_json: Json = False,
) -> None:
    """Download a program for Android from its vendor's published address, and register it.

    Of some versions the digest is known. Of others, without --sha256, the first download is trusted and its
    digest remembered; later ones must have the same.

    Example: farm harness fetch llama.cpp@b10375
    """
    vendor, version = vendor_program(program)

    def fetched() -> LocalBundle:
        return fetch_program(
            vendor,
            version,
            root=bundles_dir(),
            seen_path=seen_digests_path(),
            now=datetime.now(UTC),
            base=base,
            sha256=sha256,
            say=print_notice,
        )

    _register(vendor.harness, fetched, name=name, as_json=as_json)


def _register(harness: str, make: Callable[[], LocalBundle], *, name: str | None, as_json: bool) -> None:
    """Make a bundle and register it for its harness, or for the name that was given."""
    with connect() as farm:
        farm.harness(harness)  # minutes of building would be lost where no farm answers
        bundle = make()
        view = add_program(
            farm,
            name or harness,
            bundle.folder,
            abi=bundle.abi,
            entry=bundle.entry,
            env=bundle.env,
            command=bundle.command,
            built_with=bundle.parts,
        )
    show_registered(view, as_json=as_json)
