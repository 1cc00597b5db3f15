"""`farm admin`: settings, migrations, backups; on the farm's machine, whether the farm runs or not."""

import os
from pathlib import Path
from typing import Annotated

import typer

from farm.cli.shell.output import Json, confirm, out, print_json, print_notice
from farm.core.errors import InvalidInput

app = typer.Typer(no_args_is_help=True, help="Settings, migrations, backups: on the farm's own machine.")

Data = Annotated[
    Path | None, typer.Option(help="The farm's data folder; default: FARM_DATA_DIR, else ./farm-data.")
]


@app.command("config")
def config_command(data: Data = None, as_json: Json = False) -> None:
    """Show every setting in force here, of the farm and of an agent, and where it came from.

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
    for each in unknown:
        print_notice(unknown_text(each))


@app.command()
def migrate(
    check: Annotated[
        bool, typer.Option("--check", help="Only say what there is; exit code 1 where it is not the newest.")
    ] = False,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Bring the database to this release's schema. `farm up` does so by itself, too.

    There is no way back: make a backup with the release that made it, before you upgrade.

    Example: farm admin migrate --check
    """
    from farm.cli.admin.actions import migrate as bring_up_to_date
    from farm.cli.admin.actions import read_schema
    from farm.cli.admin.report import schema_document, schema_text

    before = read_schema(data)
    after = before if check else bring_up_to_date(data)
    if as_json:
        print_json(schema_document(before, after))
    print_notice(schema_text(before, after))
    if check and not before.is_newest:
        raise typer.Exit(1)


@app.command()
def backup(
    target: Annotated[Path, typer.Argument(help="A folder for backups; made when missing.")],
    artifacts: Annotated[
        bool, typer.Option("--artifacts/--no-artifacts", help="Whether model files and programs come along.")
    ] = True,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Back the farm up while it runs: one moment of its database, and every file of that moment.

    Files that the folder has already are not copied again; on one disk all are linked, and cost nothing.

    Example: farm admin backup /mnt/backups/farm
    """
    from farm.cli.admin.actions import run_backup
    from farm.cli.admin.report import backup_document, backup_text

    made = run_backup(target, data, with_artifacts=artifacts)
    if as_json:
        print_json(backup_document(made))
    else:
        typer.echo(made.folder)
    print_notice(backup_text(made.manifest))


@app.command()
def restore(
    source: Annotated[Path, typer.Argument(help="A backup, or a folder of them: the latest then.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not confirm.")] = False,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Put a backup into an empty database: of the data folder, or at FARM_DATABASE_URL, of either kind.

    So it is also how a farm moves to PostgreSQL, or back. The farm must be stopped.

    Example: farm admin restore /mnt/backups/farm --data /var/lib/benchfarm/farm
    """
    from farm.cli.admin.actions import plan_restore
    from farm.cli.admin.actions import restore as put_back
    from farm.cli.admin.report import restore_document, restore_plan_text, restore_text

    plan = plan_restore(source, data)
    print_notice(restore_plan_text(plan))
    if not yes:
        confirm("Go ahead?")
    restored = put_back(plan)
    if as_json:
        print_json(restore_document(plan, restored))
    print_notice(restore_text(restored, data))


@app.command()
def epoch(
    begin: Annotated[
        str | None,
        typer.Option(metavar="WHY", help="Begin another one: the database was put back by other means."),
    ] = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Show which histories the database went through, or begin another.

    A restore by `farm admin restore` begins one by itself. After any other, of PostgreSQL's own backups or a
    disk's snapshot, say so before the farm starts: agents connect anew and send their reports of the last
    7 days again, and no number or fencing token that may have been given is given again.

    Example: farm admin epoch --begin "restored by the provider to 12:00"
    """
    from farm.cli.admin.actions import read_epochs, start_epoch
    from farm.cli.admin.report import epoch_documents, epoch_table

    if begin is not None and not begin.strip():
        raise InvalidInput("why another history begins is empty", hint='say it: --begin "restored to 12:00"')
    epochs = read_epochs(data) if begin is None else start_epoch(data, cause=begin)
    if as_json:
        print_json(epoch_documents(epochs))
    else:
        out().print(epoch_table(epochs))
