"""The `farm` command: its subcommands, imported when they are called, and errors with their exit codes."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Annotated, Any

import typer
import typer.main
from typer.core import TyperCommand, TyperGroup

from farm import __version__
from farm.cli.shell.errors import UsageError, report_error, translate_system_error, usage_error
from farm.cli.shell.extras import missing_extra
from farm.cli.shell.output import flush_output, ignore_closed_output, print_notice
from farm.core.errors import FarmError


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandSpec:
    """A command of `farm`: where it is, and its line in the help."""

    name: str
    #: `module:attribute`, a typer app or a function.
    target: str
    panel: str = ""
    #: Of an app its help, of a function the first paragraph of its docstring.
    help: str = ""
    #: A short form of another command, in no help.
    hidden: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)

    def load(self) -> Any:
        """Import the module, and return the command."""
        module, _, attribute = self.target.partition(":")
        target = getattr(import_module(module), attribute)
        parent = typer.Typer(rich_markup_mode="markdown", pretty_exceptions_enable=False)
        parent.callback()(lambda: None)
        if isinstance(target, typer.Typer):
            parent.add_typer(target, name=self.name, help=self.help)
        else:
            parent.command(self.name, hidden=self.hidden, **self.options)(target)
        return typer.main.get_group(parent).commands[self.name]


class _LazyCommand(TyperCommand):
    """A line of the help. The parser goes on with the command itself."""

    def __init__(self, spec: CommandSpec) -> None:
        super().__init__(spec.name, help=spec.help, hidden=spec.hidden, rich_help_panel=spec.panel)
        self._spec = spec

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        """Parse the arguments of the command."""
        return self._spec.load().make_context(*args, **kwargs)


class _LoadedCommands(Mapping[str, Any]):
    def __init__(self, specs: Sequence[CommandSpec]) -> None:
        self._spec_by_name = {spec.name: spec for spec in specs}

    def __getitem__(self, name: str) -> Any:
        return self._spec_by_name[name].load()

    def __iter__(self) -> Iterator[str]:
        return iter(self._spec_by_name)

    def __len__(self) -> int:
        return len(self._spec_by_name)


class _LazyGroup(TyperGroup):
    """The group of all commands, in the order of `COMMANDS`."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        commands: Any = _LoadedCommands(COMMANDS)
        self.commands = commands

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.commands)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return next((_LazyCommand(spec) for spec in COMMANDS if spec.name == cmd_name), None)


#: Exit code of a command that is called without its arguments and shows its help.
_USAGE = 2


class PassthroughCommand(TyperCommand):
    """A command that keeps the arguments after `--`, which are for another program, in `context.obj`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Keep the arguments after `--`, and parse the rest."""
        place = args.index("--") if "--" in args else len(args)
        ctx.obj = args[place + 1 :]
        return super().parse_args(ctx, args[:place])


#: Name, module and attribute, and help of each command, by panel.
_COMMANDS_BY_PANEL = {
    "Measure": (
        ("run", "run.run:run", "Measure model files or a program of your own on devices. Ctrl-C detaches."),
        ("matrix", "matrices.matrix:app", "Matrices: plan, submit, watch, show, cancel and rerun them."),
        (
            "compare",
            "run.compare:compare",
            "Compare two model files or variants on devices: B against A. Ctrl-C detaches.",
        ),
        (
            "bisect",
            "run.bisect:bisect",
            "Find the version of a model file that changed its time, by comparisons on devices.",
        ),
        (
            "rerun",
            "run.rerun:rerun",
            "Measure one number again as it was made: the same files, program, settings and device.",
        ),
        (
            "speedups",
            "results.speedups.command:speedups",
            "Compare every candidate with its baseline, by device.",
        ),
        (
            "history",
            "results.history:app",
            "History: the results of series over time, and their changes; `farm history MODEL` shows them.",
        ),
        (
            "regressions",
            "results.regressions:app",
            "Regressions: what became slower, since when, on which devices, and because of what.",
        ),
        (
            "export",
            "results.interchange.export:export",
            "Export measurements, samples, speedups, conditions, devices or results of others as files.",
        ),
        (
            "import",
            "results.interchange.import_files:app",
            "Import: results that others measured, from files of other tools; they enter no comparison.",
        ),
        ("report", "results.report:app", "Reports: results as one self-contained file, to send and to keep."),
        ("explain", "results.explain:app", "Explain: show the evidence of one measurement or one speedup."),
        ("variant", "files.variant:app", "Variants: the model files that are measured."),
        ("env", "files.environment:app", "Environments: what `farm variant build` installed for runtimes."),
        ("harness", "files.harness:app", "Harnesses: benchmark programs and the parsers of their output."),
        (
            "placement",
            "results.placement:placement",
            "Show which hardware ran each variant, backend and settings, with a column for each device.",
        ),
    ),
    "Devices": (
        ("device", "devices.device:app", "Devices: list, admit, label, reserve and maintain them."),
        ("host", "hosts.host:app", "Hosts: the machines that devices are attached to, and their agents."),
        (
            "adb",
            "devices.adb:adb",
            "Run adb on a device that you have reserved. Input, output and exit code are those of adb.",
        ),
        (
            "live",
            "devices.live.commands:app",
            "Live: hold a device for TVM's tracker and RPC, and time a library on it.",
        ),
    ),
    "Farm": (
        ("up", "farm.up:up", "Run a farm in this terminal until Ctrl-C."),
        (
            "demo",
            "farm.demo:demo",
            "Run a small matrix on two virtual devices and print the speedups of the variants.",
        ),
        (
            "agent",
            "farm.agent:app",
            "Agent: enroll, run and show the agent of this machine, which serves its devices.",
        ),
        (
            "events",
            "events.events:events",
            "Show events, newest last: time, actor, change of a device, job or host, and cause.",
        ),
        (
            "alarms",
            "events.alarms:app",
            "Alarms: problems that need an operator because the farm cannot fix them automatically.",
        ),
        (
            "mcp",
            "farm.mcp:mcp",
            "Serve the farm to an assistant by the Model Context Protocol, on standard input and output.",
        ),
        ("job", "jobs.job:app", "Jobs: one cell in one round, with its attempts."),
        ("attempt", "jobs.attempt:app", "Attempts: single runs on a device, with their output."),
    ),
    "Administration": (
        ("admin", "admin.admin:app", "Administer a farm on its machine: settings, migrations, backups."),
        (
            "token",
            "access.token:app",
            "Tokens: a join token enrolls the agent of one machine, an access token identifies a caller.",
        ),
        (
            "login",
            "access.login:login",
            "Store the address of a farm and your access token for all commands.",
        ),
        (
            "logout",
            "access.login:logout",
            "Forget the address and the access token that `farm login` stored for you on this machine.",
        ),
        ("whoami", "access.login:whoami", "Show your name and role at the farm."),
        (
            "doctor",
            "admin.doctor:doctor",
            "Check this machine: adb, devices on USB, ports, disk space, permissions, keys, connection to "
            "the farm.",
        ),
        ("storage", "admin.storage:app", "Storage: show disk usage and limits, and free space."),
        (
            "retract",
            "results.retract:retract",
            "Withdraw measurements: they are kept and shown, and compared with none any more.",
        ),
        (
            "reparse",
            "results.reparse:reparse",
            "Parse stored output again with adapters that are newer than those used before.",
        ),
    ),
}
#: Short forms of `farm device list`, `farm host list` and `farm variant list`; before another command of the
#: group they stand for the group.
_SHORT_FORMS = {
    "devices": "devices.device:list_devices",
    "hosts": "hosts.host:list_hosts",
    "variants": "files.variant:list_variants",
}
_OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "run": {"cls": PassthroughCommand},
    "compare": {"cls": PassthroughCommand},
    "bisect": {"cls": PassthroughCommand},
    "adb": {"context_settings": {"allow_interspersed_args": False, "ignore_unknown_options": True}},
}
COMMANDS = (
    *(
        CommandSpec(
            name=name, target=f"farm.cli.{target}", panel=panel, help=text, options=_OPTIONS.get(name, {})
        )
        for panel, commands in _COMMANDS_BY_PANEL.items()
        for name, target, text in commands
    ),
    *(
        CommandSpec(name=name, target=f"farm.cli.{target}", hidden=True)
        for name, target in _SHORT_FORMS.items()
    ),
)

app = typer.Typer(
    cls=_LazyGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"farm {__version__}")
        raise typer.Exit


_EPILOG = (
    "Exit codes: 0 success, 2 wrong input, 3 model or harness, 4 device, 5 host, 6 farm, "
    "10 no farm answers; of --gate: 7 slower, 8 undecided, 9 nothing measured."
)


@app.callback(epilog=_EPILOG)
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


def _in_groups(words: Sequence[str]) -> list[str]:
    """Return the words of a command with the group that a short form stands for: `variants build`."""
    group, *others = words or [""]
    is_command = group in _SHORT_FORMS and bool(others) and others[0].isalpha()
    return [group.removesuffix("s"), *others] if is_command else list(words)


def main(argv: Sequence[str] | None = None) -> None:
    """Run one command. Always ends by SystemExit."""
    ignore_closed_output()
    try:
        # Without standalone mode typer returns the exit code instead of printing errors in its own format.
        words = _in_groups(sys.argv[1:] if argv is None else argv)
        code = app(args=words, prog_name="farm", standalone_mode=False) or 0
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
    except ModuleNotFoundError as error:
        missing = missing_extra(error)
        if missing is None:
            raise
        flush_output()
        sys.exit(report_error(missing))
    except OSError as error:
        farm_error = translate_system_error(error)
        if farm_error is None:
            raise
        flush_output()
        sys.exit(report_error(farm_error))


if __name__ == "__main__":
    main()
