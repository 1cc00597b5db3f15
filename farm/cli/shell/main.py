"""The `farm` command: the nouns put together; every error ends in a sentence, a hint and an exit code."""

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from farm import __version__
from farm.cli.access import login, token
from farm.cli.admin import admin, doctor, storage
from farm.cli.devices import adb, device, devices
from farm.cli.events import alarms, events
from farm.cli.farm import agent, demo, up
from farm.cli.files import harness, variants
from farm.cli.hosts import host, hosts
from farm.cli.jobs import attempt, job
from farm.cli.matrices import matrix
from farm.cli.results import explain, placement, reparse, speedups
from farm.cli.run import run
from farm.cli.shell.exit_codes import report_error, translate_system_error
from farm.cli.shell.output import flush_output, ignore_closed_output, print_notice
from farm.cli.shell.usage_errors import UsageError, usage_error
from farm.core.errors import FarmError

#: Of a command that is called without what it needs, and shows its help.
_USAGE = 2

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("run", cls=run.PassthroughCommand, rich_help_panel="Measure")(run.run)
app.command("up", rich_help_panel="The farm")(up.up)
app.command("demo", rich_help_panel="The farm")(demo.demo)
app.command("doctor", rich_help_panel="The farm")(doctor.doctor)
app.add_typer(agent.app, name="agent", rich_help_panel="The farm")
app.add_typer(token.app, name="token", rich_help_panel="The farm")
app.command("login", rich_help_panel="The farm")(login.login)
app.command("whoami", rich_help_panel="The farm")(login.whoami)
app.add_typer(storage.app, name="storage", rich_help_panel="The farm")
app.add_typer(admin.app, name="admin", rich_help_panel="The farm")
app.command("devices", rich_help_panel="What there is")(devices.devices)
app.add_typer(device.app, name="device", rich_help_panel="What there is")
app.add_typer(alarms.app, name="alarms", rich_help_panel="What there is")
app.command("hosts", rich_help_panel="What there is")(hosts.hosts)
app.add_typer(host.app, name="host", rich_help_panel="What there is")
app.command(
    "adb",
    rich_help_panel="What there is",
    context_settings={"allow_interspersed_args": False, "ignore_unknown_options": True},
)(adb.adb)
app.add_typer(variants.app, name="variants", rich_help_panel="What there is")
app.add_typer(harness.app, name="harness", rich_help_panel="What there is")
app.add_typer(matrix.app, name="matrix", rich_help_panel="What there is")
app.add_typer(job.app, name="job", rich_help_panel="What there is")
app.add_typer(attempt.app, name="attempt", rich_help_panel="What there is")
app.command("speedups", rich_help_panel="What there is")(speedups.speedups)
app.command("placement", rich_help_panel="What there is")(placement.placement)
app.add_typer(explain.app, name="explain", rich_help_panel="What there is")
app.command("reparse", rich_help_panel="The farm")(reparse.reparse)
app.command("events", rich_help_panel="What there is")(events.events)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"farm {__version__}")
        raise typer.Exit


@app.callback(
    epilog="Exit codes: 0 done, 2 your input, 3 a model or harness, 4 a phone, 5 a host, 6 the farm."
)
def farm(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """A device farm for benchmarking ML models on phones, whose numbers can be defended.

    Commands talk to the farm at FARM_URL, else to the one that runs in the data folder
    (FARM_DATA_DIR, else ./farm-data), else to the one of `farm login`, else to http://127.0.0.1:8470.
    FARM_TOKEN_FILE names the access token that a farm wants to see, in the place of the login's.

    Example: farm devices
    """


def main(argv: Sequence[str] | None = None) -> None:
    """Run one command; always leaves by SystemExit."""
    ignore_closed_output()
    try:
        # Typer would tell errors itself, in a box and in other words; so it gives back the exit code.
        code = app(args=argv, prog_name="farm", standalone_mode=False) or 0
        sys.stdout.flush()
        sys.exit(code)
    except FarmError as error:
        sys.exit(report_error(error))
    except UsageError as error:
        told = usage_error(error)
        sys.exit(_USAGE if told is None else report_error(told))
    except typer.Abort:
        print_notice("Aborted.")
        sys.exit(1)
    except OSError as error:
        trouble = translate_system_error(error)
        if trouble is None:
            raise
        flush_output()
        sys.exit(report_error(trouble))


if __name__ == "__main__":
    main()
