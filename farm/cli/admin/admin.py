"""`farm admin`: settings, migrations and backups on the farm's machine, whether the farm runs or not."""

import os
from pathlib import Path
from typing import Annotated

import typer

from farm.cli.shell.options import Data, Json, ShortYes
from farm.cli.shell.output import confirm, print_data, print_done, print_json, print_notice
from farm.core.errors import InvalidInput

# The actions are imported by the commands: `farm admin config` must not import the farm and its statistics,
# which takes seconds.
app = typer.Typer(no_args_is_help=True)


@app.command("config")
def config_command(data: Data = None, as_json: Json = False) -> None:
    """Show the settings of the farm and of an agent on this machine, each with its source.

    Example: farm admin config --json
    """
    from farm.cli.admin.setting_sources import (
        farm_settings,
        local_agent_settings,
        settings_table,
        unknown_text,
        unknown_variables,
    )

    farm, agent = farm_settings(data), local_agent_settings()
    unknown = unknown_variables(os.environ)
    if as_json:
        print_json({"farm": farm, "agent": agent, "unknown": unknown})
    else:
        print_data(settings_table(farm, agent))
    for variable in unknown:
        print_notice(unknown_text(variable))


@app.command()
def migrate(
    check: Annotated[
        bool, typer.Option("--check", help="Only show the schema; exit code 1 if it is not the newest.")
    ] = False,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Migrate the database to the schema of this release. `farm up` does so automatically.

    A migration cannot be undone: make a backup with the previous release before you upgrade.

    Example: farm admin migrate --check
    """
    from farm.cli.admin.actions import read_schema, run_migration, schema_text

    before = read_schema(data)
    after = before if check else run_migration(data)
    if as_json:
        print_json({"before": before.revision, "revision": after.revision, "newest": after.newest})
    print_notice(schema_text(before, after))
    if check and not before.is_newest:
        raise typer.Exit(1)


@app.command()
def backup(
    target: Annotated[Path, typer.Argument(help="Folder for backups; created if missing.")],
    artifacts: Annotated[
        bool, typer.Option("--artifacts/--no-artifacts", help="Include model files and programs.")
    ] = True,
    verify: Annotated[
        bool, typer.Option("--verify", help="Make none: read every byte of the latest backup there.")
    ] = False,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Back up a running farm: a consistent snapshot of its database, and all files that it refers to.

    Files that the folder already has are not copied again. On the same disk, files are hard links. Each new
    file is verified; `--verify` reads all of them again.

    Example: farm admin backup /mnt/backups/farm
    """
    from farm.cli.admin.actions import backup_document, backup_text, run_backup, run_verification

    if verify:
        intact = run_verification(target)
        text = f"{intact.folder} is intact: {backup_text(intact.manifest)}"
        print_done(backup_document(intact), text, as_json=as_json)
        return
    result = run_backup(target, data, with_artifacts=artifacts)
    if as_json:
        print_json(backup_document(result))
    else:
        typer.echo(result.folder)
    print_notice(backup_text(result.manifest))


@app.command()
def restore(
    source: Annotated[
        Path, typer.Argument(help="A backup, or a folder with backups, of which the latest is used.")
    ],
    yes: ShortYes = False,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Restore a backup to an empty database, SQLite in the data folder or PostgreSQL at FARM_DATABASE_URL.

    This also moves a farm to PostgreSQL or back. The farm must be stopped.

    Example: farm admin restore /mnt/backups/farm --data /var/lib/benchfarm/farm
    """
    from farm.cli.admin.actions import (
        plan_restore,
        restore_document,
        restore_plan_text,
        restore_text,
        run_restore,
    )

    plan = plan_restore(source, data)
    print_notice(restore_plan_text(plan))
    if not yes:
        confirm("Go ahead?")
    restored = run_restore(plan)
    if as_json:
        print_json(restore_document(plan, restored))
    print_notice(restore_text(restored, data))


@app.command()
def epoch(
    begin: Annotated[
        str | None,
        typer.Option(
            metavar="WHY", help="Begin a new epoch, after the database was restored by other means."
        ),
    ] = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Show the epochs of the database, or begin a new one.

    `farm admin restore` begins an epoch automatically. After any other restore, such as a PostgreSQL backup
    or a disk snapshot, begin one before the farm starts: agents reconnect and resend the reports of the last
    7 days, and ids and fencing tokens are not reused.

    Example: farm admin epoch --begin "restored by the provider to 12:00"
    """
    from farm.cli.admin.actions import epoch_documents, epoch_table, read_epochs, start_epoch

    if begin is not None and not begin.strip():
        raise InvalidInput(
            "the reason of the new epoch is empty", hint='give a reason: --begin "restored to 12:00"'
        )
    epochs = read_epochs(data) if begin is None else start_epoch(data, cause=begin)
    if as_json:
        print_json(epoch_documents(epochs))
    else:
        print_data(epoch_table(epochs))
