"""`farm storage`: what takes the farm's room, and getting some back."""

from typing import Annotated

import typer

from farm.cli.address import connect
from farm.cli.output import Json, out, print_json, talk

app = typer.Typer(no_args_is_help=True, help="What takes the farm's room, and by which limits it goes.")


@app.command("show")
def show_command(as_json: Json = False) -> None:
    """Show what takes how much, the limits in force, and what the next sweep would let go.

    Example: farm storage show --json
    """
    from farm.cli.storage_report import storage_report

    with connect() as farm:
        view = farm.storage()
    if as_json:
        print_json(view.model_dump(mode="json"))
    else:
        out().print(storage_report(view))


@app.command()
def sweep(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
    as_json: Json = False,
) -> None:
    """Enforce the limits now, as the farm does by itself every FARM_SWEEP_EVERY_S seconds.

    Nothing goes that an unfinished matrix needs, and everything that goes is recorded as expired.

    Example: farm storage sweep --dry-run
    """
    from farm.cli.storage_report import going_table, plan_text, swept_text

    with connect() as farm:
        plan = farm.storage().next_sweep
        if dry_run and as_json:
            print_json(plan.model_dump(mode="json"))
            return
        if plan.artifacts and not as_json:
            out().print(going_table(plan.artifacts))
        talk(plan_text(plan))
        if dry_run:
            return
        swept = farm.sweep_storage()
    if as_json:
        print_json(swept.model_dump(mode="json"))
    else:
        talk(swept_text(swept))
