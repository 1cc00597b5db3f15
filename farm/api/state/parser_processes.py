"""Parse costly reports in processes of their own, within a budget; one that overruns it ends alone."""

import os
import pickle
import signal
import subprocess
import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress

import structlog

from farm.core.errors import FarmBusy, InvalidInput
from farm.core.results.settle.report import IncomingReport, ParsedReport, ReportReading
from farm.services.results.parse import ReportSubject, parse_cheap, parsed_report, unparsed

#: Processes at most; each has some 70 MB when idle.
_PROCESSES = 2
#: CPU time for one report, in whole seconds, on any machine and however busy it is.
_CPU_S = 10
#: Address space for parsing one report.
_MEMORY_BYTES = 1024 * 1024 * 1024
#: Time in which a process must answer, whatever else the machine does.
_LONGEST_S = 300.0
#: How often, for one report, a process is replaced that ended for a reason of its own.
_TRIES = 2
_MODULE = "farm.api.state.parser_process"
_log = structlog.get_logger(__name__)


class ParserProcesses:
    """Processes that parse reports. They start when one is needed, stay, and end with the farm.

    One that is idle ends when its pipe does, so also when the farm is killed; one at work at most a budget
    of CPU time later.
    """

    def __init__(self, *, cpu_s: int = _CPU_S, memory_bytes: int = _MEMORY_BYTES) -> None:
        """Start nothing yet.

        Args:
            cpu_s: CPU time for one report; the kernel counts whole seconds, so up to one more.
            memory_bytes: address space that one report may take; not enforced on macOS.
        """
        self._cpu_s = cpu_s
        self._memory_bytes = memory_bytes
        self._threads = ThreadPoolExecutor(_PROCESSES, thread_name_prefix="farm-parser")
        self._changing = threading.Lock()
        self._is_closed = False
        self._idle: list[_ParserProcess] = []
        self._all: set[_ParserProcess] = set()

    def submit(self, report: IncomingReport, subject: ReportSubject) -> Future[ParsedReport]:
        """Parse a report; one that exceeds the budget is read as unparsed.

        The future raises FarmBusy where no process could be started, or answered in time.
        """
        return self._threads.submit(self._parse, report, subject)

    @property
    def process_ids(self) -> tuple[int, ...]:
        """Return the ids of the processes that were started and not ended."""
        with self._changing:
            return tuple(process.process_id for process in self._all)

    def parse(self, report: IncomingReport, subject: ReportSubject) -> ParsedReport:
        """Return a report, parsed in this thread where that is cheap."""
        return parse_cheap(report, subject) or self.submit(report, subject).result()

    def close(self) -> None:
        """End all processes; reports that they parse are not answered."""
        with self._changing:
            self._is_closed = True
            for process in self._all:
                process.kill()
        self._threads.shutdown(wait=True, cancel_futures=True)
        for process in list(self._all):
            self._end(process)

    def _parse(self, report: IncomingReport, subject: ReportSubject) -> ParsedReport:
        reason = ""
        for _ in range(_TRIES):
            process = self._take()
            try:
                reading = process.read(report, subject)
            except _BudgetExceeded as error:
                self._end(process)
                reason = str(error)
                break
            except _ProcessDied as error:
                self._end(process)
                reason = str(error)
                continue
            except BaseException:
                self._end(process)
                raise
            self._idle.append(process)
            return parsed_report(report, reading)
        if self._is_closed:
            raise FarmBusy("the farm is ending", hint="send the report again")
        _log.warning("report_unparsed", attempt_id=report.attempt_id, bytes=len(report.body), reason=reason)
        return parsed_report(report, unparsed(subject, reason))

    def _take(self) -> "_ParserProcess":
        with suppress(IndexError):
            return self._idle.pop()
        with self._changing:
            if self._is_closed:
                raise FarmBusy("the farm is ending", hint="send the report again")
            process = _ParserProcess(self._cpu_s, self._memory_bytes)
            self._all.add(process)
        try:
            process.wait_until_ready()
        except BaseException:
            self._end(process)
            raise
        return process

    def _end(self, process: "_ParserProcess") -> None:
        process.end()
        with self._changing:
            self._all.discard(process)


class _ProcessDied(Exception):
    """A parser ended without an answer; the message says how."""


class _BudgetExceeded(Exception):
    """A report took more than its budget; the message says of what."""


class _ParserProcess:
    """One running process, used by one thread at a time."""

    def __init__(self, cpu_s: int, memory_bytes: int) -> None:
        self._cpu_s = cpu_s
        self._memory_text = f"parsing took more than {memory_bytes // 1024**2} MiB of memory"
        # It needs no secret of the farm's.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("FARM_")}
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", _MODULE, str(cpu_s), str(memory_bytes)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=environment,
                # Ctrl-C in the farm's terminal ends the farm, which ends it.
                start_new_session=True,
            )
        except OSError as error:
            raise FarmBusy(f"no parser could be started: {error.strerror}", hint="try again") from error

    @property
    def process_id(self) -> int:
        """Return its id."""
        return self._process.pid

    def wait_until_ready(self) -> None:
        """Wait until it has loaded all adapters.

        Raises:
            FarmBusy: it ended before, for which no report is to blame.
        """
        try:
            self._answer()
        except _ProcessDied as error:
            raise FarmBusy(f"a parser did not start: {error}", hint="look at the farm's log") from error

    def read(self, report: IncomingReport, subject: ReportSubject) -> ReportReading | InvalidInput:
        """Return what a report says.

        Raises:
            FarmBusy: it did not answer in time.
            _BudgetExceeded: it took too much CPU time or memory.
            _ProcessDied: it ended for another reason.
        """
        assert self._process.stdin is not None
        try:
            pickle.dump((report, subject), self._process.stdin, protocol=pickle.HIGHEST_PROTOCOL)
            self._process.stdin.flush()
        except OSError as error:
            raise self._death() from error
        reading = self._answer()
        if reading is None:
            raise _BudgetExceeded(self._memory_text)
        assert isinstance(reading, ReportReading | InvalidInput)
        return reading

    def kill(self) -> None:
        """Kill it; a caller that waits for its answer learns of its end."""
        self._process.kill()

    def end(self) -> None:
        """Kill it, and free what it held here."""
        with self._process:
            self._process.kill()
            # A report that was not sent as a whole is not sent any more.
            with suppress(OSError):
                assert self._process.stdin is not None
                self._process.stdin.close()

    def _answer(self) -> object:
        assert self._process.stdout is not None
        was_late = threading.Event()

        def kill() -> None:
            was_late.set()
            self._process.kill()

        alarm = threading.Timer(_LONGEST_S, kill)
        alarm.start()
        try:
            return pickle.load(self._process.stdout)
        except (EOFError, pickle.UnpicklingError) as error:
            if was_late.is_set():
                raise FarmBusy(f"a parser did not answer within {_LONGEST_S:.0f} s") from error
            raise self._death() from error
        finally:
            alarm.cancel()

    def _death(self) -> Exception:
        exit_code = self._process.wait()
        if exit_code == -signal.SIGXCPU:
            return _BudgetExceeded(f"parsing took more than {self._cpu_s} s of CPU time")
        if exit_code == -signal.SIGABRT:
            # Libraries of C++ and Rust abort where Python raises MemoryError.
            return _BudgetExceeded(self._memory_text)
        how = signal.Signals(-exit_code).name if exit_code < 0 else f"exit code {exit_code}"
        return _ProcessDied(f"the process that parsed it ended with {how}")
