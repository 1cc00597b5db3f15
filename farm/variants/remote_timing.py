"""Time a library of TVM on a phone that a tracker gives out: python -I remote_timing.py REQUEST.

It runs in an environment that has TVM, and imports nothing else but numpy. REQUEST is JSON with tracker, key,
library, inputs (shape and type of each), number, repeat, wait_s and deadline_s. It prints one JSON document:
`{"refused": MESSAGE, "hint": HINT}`, or what was measured, with times in seconds.
"""

import json
import os
import socket
import struct
import sys
import time
from contextlib import closing, suppress
from importlib import import_module
from typing import Any

_CONNECT_S = 10.0
_DEVICE_KEY = "server:"
#: TVM names its errors by Python's own, also those of the phone.
_TVM_ERRORS = (
    AssertionError,
    AttributeError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)


class Refused(Exception):
    """What was asked for cannot be measured; the second argument is what to do."""


def phone_from(request: dict[str, Any]) -> tuple[str, int, str, dict[str, str]]:
    """Return host, port and key of the connection that the tracker gives, and what it says of the phone.

    TVM's own client waits for ever where no phone has the key, and a minute where there is no tracker.

    Raises:
        Refused: neither is there, or no phone becomes free in time.
    """
    from tvm.rpc import base

    host, port, key = request["host"], request["port"], request["key"]
    try:
        connection = socket.create_connection((host, port), timeout=_CONNECT_S)
    except OSError as error:
        raise Refused(
            f"no tracker answers at {host}:{port}: {error}", "farm live tvm DEVICE prints its address"
        ) from error
    with closing(connection):
        try:
            servers, queues = _phones_of(connection)
        except TimeoutError as error:
            raise Refused(
                f"what is at {host}:{port} does not answer as a tracker within {_CONNECT_S:.0f} s",
                "check the address",
            ) from error
        except OSError as error:
            raise Refused(f"the tracker at {host}:{port} has gone: {error}", "is it running?") from error
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise Refused(
                f"what answers at {host}:{port} is no tracker of TVM", "check the address"
            ) from error
        try:
            if key not in servers:
                known = ", ".join(sorted(servers)) or "none"
                raise Refused(f"no phone has the key {key!r}; keys there: {known}", "--key KEY names one")
            connection.settimeout(request["wait_s"])
            base.sendjson(connection, [base.TrackerCode.REQUEST, key, "", 1])
            code, given = base.recvjson(connection)
        except TimeoutError as error:
            pending = queues.get(key, {}).get("pending", "?")
            raise Refused(
                f"{key} did not become free within {request['wait_s']} s; {pending} clients waited before",
                "--wait TIME waits longer",
            ) from error
        except OSError as error:
            raise Refused(f"the tracker at {host}:{port} has gone: {error}", "is it running?") from error
    if code != base.TrackerCode.SUCCESS:
        raise Refused(f"the tracker refuses {key}: {given}", "is the phone still held?")
    about = {name: value for name, value in servers[key].items() if isinstance(value, str)}
    return (*given, about)


def _phones_of(connection: socket.socket) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
    """Return what a tracker says of its phones, and of the clients that wait, both by key.

    Raises:
        OSError: it has gone, or has not answered in time.
        AttributeError, KeyError, TypeError, ValueError: the answer is not that of a tracker.
    """
    from tvm.rpc import base

    magic = struct.pack("<i", base.RPC_TRACKER_MAGIC)
    connection.sendall(magic)
    if base.recvall(connection, len(magic)) != magic:
        raise ValueError("another protocol")
    base.sendjson(connection, [base.TrackerCode.SUMMARY])
    _, summary = base.recvjson(connection)
    phones = {each["key"].removeprefix(_DEVICE_KEY): each for each in summary["server_info"]}
    return phones, dict(summary["queue_info"])


def timed(request: dict[str, Any]) -> dict[str, Any]:
    """Return what was measured.

    Raises:
        Refused: there is no phone.
        Exception: whatever TVM raises on the way.
    """
    import numpy
    import tvm
    import tvm_ffi
    from tvm import relax, rpc

    host, port, match_key, about = phone_from(request)
    session = rpc.connect(host, port, match_key, session_timeout=request["deadline_s"])
    started = time.monotonic()
    session.upload(request["library"], target="library.so")
    uploaded = time.monotonic()
    library = session.load_module("library.so")
    device = session.cpu(0)
    machine = relax.VirtualMachine(library, device)
    loaded = time.monotonic()
    given = [
        tvm.runtime.tensor(numpy.ones(each["shape"], dtype=each["dtype"]), device)
        for each in request["inputs"]
    ]
    machine.set_input("main", *given)
    # It calls the function once before the clock counts.
    evaluator = machine.time_evaluator(
        "invoke_stateful", device, number=request["number"], repeat=request["repeat"]
    )
    return {
        "times_s": list(evaluator("main").results),
        "upload_s": uploaded - started,
        "load_s": loaded - uploaded,
        "tvm": tvm.__version__,
        "tvm_ffi": tvm_ffi.__version__,
        "about": about,
    }


def main() -> int:
    """Measure what the argument asks for; return the exit code."""
    request = json.loads(sys.argv[1])
    # TVM and its libraries print where they like.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    # Outside of the answer: without them this Python cannot run TVM.
    for name in ("numpy", "tvm_ffi", "tvm.relax", "tvm.rpc"):
        import_module(name)
    answer: dict[str, Any]
    try:
        answer = timed(request)
    except Refused as error:
        answer = {"refused": error.args[0], "hint": error.args[1]}
    except _TVM_ERRORS as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        answer = {
            "refused": f"TVM: {type(error).__name__}: {' '.join(lines[-2:])[:400]}",
            "hint": "the library has to be of the phone's ABI, and --input its shapes and types",
        }
    answers.write(json.dumps(answer))
    answers.flush()
    with suppress(OSError):
        sys.stderr.flush()
    # Objects of a session that is over would fail in their destructors.
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
