"""The `farm` command: its subcommands, and errors as a message, a hint and an exit code."""

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from farm import __version__
from farm.cli.access import login, token
from farm.cli.admin import admin, doctor, storage
from farm.cli.devices import adb, device
from farm.cli.events import alarms, events
from farm.cli.farm import agent, demo, up
from farm.cli.files import harness, variant
from farm.cli.hosts import host
from farm.cli.jobs import attempt, job
from farm.cli.matrices import matrix
from farm.cli.results import explain, placement, reparse, speedups
from farm.cli.run import run
from farm.cli.shell.exit_codes import report_error, translate_system_error
from farm.cli.shell.output import flush_output, ignore_closed_output, print_notice
from farm.cli.shell.usage_errors import UsageError, usage_error
from farm.core.errors import FarmError

#: Exit code of a command that is called without its arguments and shows its help.
_USAGE = 2

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)

_MEASURE = "Measure"
app.command("run", cls=run.PassthroughCommand, rich_help_panel=_MEASURE)(run.run)
app.add_typer(matrix.app, name="matrix", rich_help_panel=_MEASURE)
app.command("speedups", rich_help_panel=_MEASURE)(speedups.speedups)
app.add_typer(explain.app, name="explain", rich_help_panel=_MEASURE)
app.add_typer(variant.app, name="variant", rich_help_panel=_MEASURE)
app.add_typer(harness.app, name="harness", rich_help_panel=_MEASURE)
app.command("placement", rich_help_panel=_MEASURE)(placement.placement)

_DEVICES = "Devices"
app.add_typer(device.app, name="device", rich_help_panel=_DEVICES)
app.add_typer(host.app, name="host", rich_help_panel=_DEVICES)
app.command(
    "adb",
    rich_help_panel=_DEVICES,
    context_settings={"allow_interspersed_args": False, "ignore_unknown_options": True},
)(adb.adb)

_FARM = "Farm"
app.command("up", rich_help_panel=_FARM)(up.up)
app.command("demo", rich_help_panel=_FARM)(demo.demo)
app.add_typer(agent.app, name="agent", rich_help_panel=_FARM)
app.command("events", rich_help_panel=_FARM)(events.events)
app.add_typer(alarms.app, name="alarms", rich_help_panel=_FARM)
app.add_typer(job.app, name="job", rich_help_panel=_FARM)
app.add_typer(attempt.app, name="attempt", rich_help_panel=_FARM)

_ADMINISTRATION = "Administration"
app.add_typer(admin.app, name="admin", rich_help_panel=_ADMINISTRATION)
app.add_typer(token.app, name="token", rich_help_panel=_ADMINISTRATION)
app.command("login", rich_help_panel=_ADMINISTRATION)(login.login)
app.command("whoami", rich_help_panel=_ADMINISTRATION)(login.whoami)
app.command("doctor", rich_help_panel=_ADMINISTRATION)(doctor.doctor)
app.add_typer(storage.app, name="storage", rich_help_panel=_ADMINISTRATION)
app.command("reparse", rich_help_panel=_ADMINISTRATION)(reparse.reparse)

#: Short forms of `farm device list`, `farm host list` and `farm variant list`.
app.command("devices", hidden=True)(device.list_devices)
app.command("hosts", hidden=True)(host.list_hosts)
app.command("variants", hidden=True)(variant.list_variants)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"farm {__version__}")
        raise typer.Exit


@app.callback(epilog="Exit codes: 0 success, 2 wrong input, 3 model or harness, 4 device, 5 host, 6 farm.")
def farm(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """Device farm for benchmarking ML models on phones, with results that can be verified.

    Commands connect to the farm at FARM_URL, else to the one that runs in the data folder
    (FARM_DATA_DIR, else ./farm-data), else to the one of `farm login`, else to http://127.0.0.1:8470.
    FARM_TOKEN_FILE names a file with an access token, which is used instead of the token of the login.

    Example: farm device list
    """


def main(argv: Sequence[str] | None = None) -> None:
    """Run one command. Always ends by SystemExit."""
    ignore_closed_output()
    try:
        # Without standalone mode typer returns the exit code instead of printing errors in its own format.
        code = app(args=argv, prog_name="farm", standalone_mode=False) or 0
        sys.stdout.flush()
        sys.exit(code)
    except FarmError as error:
        sys.exit(report_error(error))
    except UsageError as error:
        invalid_input = usage_error(error)
        sys.exit(_USAGE if invalid_input is None else report_error(invalid_input))
    except typer.Abort:
        print_notice("Aborted.")
        sys.exit(1)
    except OSError as error:
        farm_error = translate_system_error(error)
        if farm_error is None:
            raise
        flush_output()
        sys.exit(report_error(farm_error))


if __name__ == "__main__":
    main()
