"""`farm admin`: settings, migrations and backups on the farm's machine, whether the farm runs or not."""

import os
from pathlib import Path
from typing import Annotated

import typer

from farm.cli.shell.output import Json, confirm, out, print_json, print_notice
from farm.core.errors import InvalidInput

app = typer.Typer(
    no_args_is_help=True, help="Administer a farm on its machine: settings, migrations, backups."
)

Data = Annotated[
    Path | None, typer.Option(help="The farm's data folder; default: FARM_DATA_DIR, else ./farm-data.")
]


@app.command("config")
def config_command(data: Data = None, as_json: Json = False) -> None:
    """Show the settings of the farm and of an agent on this machine, each with its source.

    Example: farm admin config --json
    """
    from farm.cli.admin.report import settings_document, settings_table, unknown_text
    from farm.cli.admin.setting_sources import farm_settings, local_agent_settings, unknown_variables

    farm, agent = farm_settings(data), local_agent_settings()
    unknown = unknown_variables(os.environ)
    if as_json:
        print_json(settings_document(farm, agent, unknown))
    else:
        out().print(settings_table(farm, agent))
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
    from farm.cli.admin.actions import migrate as run_migration
    from farm.cli.admin.actions import read_schema
    from farm.cli.admin.report import schema_document, schema_text

    before = read_schema(data)
    after = before if check else run_migration(data)
    if as_json:
        print_json(schema_document(before, after))
    print_notice(schema_text(before, after))
    if check and not before.is_newest:
        raise typer.Exit(1)


@app.command()
def backup(
    target: Annotated[Path, typer.Argument(help="Folder for backups; created if missing.")],
    artifacts: Annotated[
        bool, typer.Option("--artifacts/--no-artifacts", help="Include model files and programs.")
    ] = True,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Back up a running farm: a consistent snapshot of its database, and all files that it refers to.

    Files that the folder already has are not copied again. On the same disk, files are hard links.

    Example: farm admin backup /mnt/backups/farm
    """
    from farm.cli.admin.actions import run_backup
    from farm.cli.admin.report import backup_document, backup_text

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
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Skip the confirmation.")] = False,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Restore a backup to an empty database, SQLite in the data folder or PostgreSQL at FARM_DATABASE_URL.

    This also moves a farm to PostgreSQL or back. The farm must be stopped.

    Example: farm admin restore /mnt/backups/farm --data /var/lib/benchfarm/farm
    """
    from farm.cli.admin.actions import plan_restore
    from farm.cli.admin.actions import restore as run_restore
    from farm.cli.admin.report import restore_document, restore_plan_text, restore_text

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
    from farm.cli.admin.actions import read_epochs, start_epoch
    from farm.cli.admin.report import epoch_documents, epoch_table

    if begin is not None and not begin.strip():
        raise InvalidInput(
            "the reason of the new epoch is empty", hint='give a reason: --begin "restored to 12:00"'
        )
    epochs = read_epochs(data) if begin is None else start_epoch(data, cause=begin)
    if as_json:
        print_json(epoch_documents(epochs))
    else:
        out().print(epoch_table(epochs))
