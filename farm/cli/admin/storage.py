"""`farm storage`: show and free the disk space of the farm."""

from pathlib import Path
from typing import Annotated

import typer

from farm.cli.shell.address import connect, data_dir
from farm.cli.shell.output import Json, out, print_json, print_notice
from farm.core.errors import InvalidInput

app = typer.Typer(no_args_is_help=True, help="Storage: show disk usage and limits, and free space.")


@app.command("show")
def show_command(as_json: Json = False) -> None:
    """Show disk usage, limits, and what the next sweep would remove.

    Example: farm storage show --json
    """
    from farm.cli.admin.storage_report import storage_report

    with connect() as farm:
        view = farm.storage()
    if as_json:
        print_json(view.model_dump(mode="json"))
    else:
        out().print(storage_report(view))


@app.command()
def sweep(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be removed.")] = False,
    as_json: Json = False,
) -> None:
    """Enforce the limits now, as the farm does automatically every FARM_SWEEP_EVERY_S seconds.

    Files that an unfinished matrix needs are kept. Removed files are recorded as expired.

    Example: farm storage sweep --dry-run
    """
    from farm.cli.admin.storage_report import eviction_table, plan_text, sweep_text

    with connect() as farm:
        plan = farm.storage().next_sweep
        if dry_run and as_json:
            print_json(plan.model_dump(mode="json"))
            return
        if plan.artifacts and not as_json:
            out().print(eviction_table(plan.artifacts))
        print_notice(plan_text(plan))
        if dry_run:
            return
        swept = farm.sweep_storage()
    if as_json:
        print_json(swept.model_dump(mode="json"))
    else:
        print_notice(sweep_text(swept))


@app.command()
def compact(
    as_json: Json = False,
    data: Annotated[
        Path | None, typer.Option(help="The farm's data folder; default: FARM_DATA_DIR, else ./farm-data.")
    ] = None,
) -> None:
    """Return free space inside the database to the disk. The farm must be stopped.

    Example: farm storage compact --data /var/lib/benchfarm/farm
    """
    from farm.cli.shell.settings import farm_config
    from farm.core.base.units import size_text
    from farm.daemon import data_folder_lock
    from farm.store.files.vacuum import compact as vacuum

    config = farm_config(data_dir=data or data_dir())
    if config.database_url is not None:
        raise InvalidInput(
            "this farm uses PostgreSQL, which reuses free space automatically",
            hint="to return it to the disk, its administrator runs VACUUM FULL while the farm is stopped",
        )
    if not config.database_path.exists():
        raise InvalidInput(f"there is no farm in {config.data_dir}", hint="set its location with --data")
    with data_folder_lock(config.data_dir):
        freed_bytes = vacuum(config.database_path)
    if as_json:
        print_json({"freed_bytes": freed_bytes})
    else:
        print_notice(f"{config.database_path}: {size_text(freed_bytes)} freed")
