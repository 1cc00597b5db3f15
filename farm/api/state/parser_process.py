"""A process that parses reports one at a time, each within a budget of CPU time and memory.

`farm.api.state.parser_processes` starts it. What an overrun costs is this process and nothing else.
"""

import math
import os
import pickle
import resource
import sys
import time
from pathlib import Path
from typing import BinaryIO

from farm.services.results.parse import read_report_of


def serve(requests: BinaryIO, answers: BinaryIO, *, cpu_s: int, memory_bytes: int) -> None:
    """Answer pickled reports with pickled readings until the farm closes the pipe, or is gone.

    The answer None says that the memory did not suffice; the process then ends.

    Args:
        requests: pairs of a report and its subject.
        answers: first "ready", then one reading for each report.
        cpu_s: of one report, after which the kernel ends the process.
        memory_bytes: address space beyond what the idle process has; not enforced on macOS.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _limit_memory(memory_bytes)
    _send(answers, "ready")
    while True:
        try:
            report, subject = pickle.load(requests)
            _limit_cpu_time(cpu_s)
            reading = read_report_of(report, subject)
        except EOFError:
            return
        except MemoryError:
            _send(answers, None)
            return
        _send(answers, reading)


def _limit_cpu_time(cpu_s: int) -> None:
    """Have the kernel end this process, also within a library's code, when the next report takes too long."""
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(time.process_time()) + cpu_s, hard))


def _limit_memory(memory_bytes: int) -> None:
    try:
        used_bytes = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    except FileNotFoundError:
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    wanted = used_bytes + memory_bytes
    soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _send(answers: BinaryIO, answer: object) -> None:
    pickle.dump(answer, answers, protocol=pickle.HIGHEST_PROTOCOL)
    answers.flush()


if __name__ == "__main__":
    # What a library prints must not get between the answers.
    own_answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    serve(sys.stdin.buffer, own_answers, cpu_s=int(sys.argv[1]), memory_bytes=int(sys.argv[2]))
