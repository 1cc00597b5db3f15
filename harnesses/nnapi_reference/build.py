"""Build the NNAPI reference library for this machine's CPU, from the sources beside this file.

python harnesses/nnapi_reference/build.py OUT

It writes OUT/libneuralnetworks.so, unless that was built of the same sources already.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

LIBRARY = "libneuralnetworks.so"
_COMMAND = ("c++", "-std=c++17", "-O3", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall", "-Wextra")
_SOURCES = Path(__file__).parent


def build(out: Path) -> Path:
    """Return the library in `out`, built where it is missing or of other sources.

    Raises:
        subprocess.CalledProcessError: the compiler fails.
    """
    out.mkdir(parents=True, exist_ok=True)
    library, record = out / LIBRARY, out / "sources.sha256"
    digest = _sources_digest()
    if library.is_file() and record.is_file() and record.read_text() == digest:
        return library
    draft = out / f".{LIBRARY}.{os.getpid()}"
    sources = [str(path) for path in sorted(_SOURCES.glob("*.cpp"))]
    try:
        subprocess.run([*_COMMAND, *sources, "-o", str(draft)], check=True, stdout=sys.stderr)
        # Another process may have the previous one loaded.
        draft.replace(library)
    finally:
        draft.unlink(missing_ok=True)
    record.write_text(digest)
    return library


def _sources_digest() -> str:
    digest = hashlib.sha256(" ".join(_COMMAND).encode())
    for path in sorted((*_SOURCES.glob("*.cpp"), *_SOURCES.glob("*.h"))):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def main() -> int:
    """Build into the folder of the command line."""
    parser = argparse.ArgumentParser(description="Build the NNAPI reference library of virtual phones.")
    parser.add_argument("out", type=Path, help=f"folder for {LIBRARY}")
    out = parser.parse_args().out
    if shutil.which("c++") is None:
        print("no C++ compiler. hint: on Debian and Ubuntu, apt install g++", file=sys.stderr)
        return 1
    try:
        print(build(out))
    except subprocess.CalledProcessError as error:
        print(f"the compiler ended with exit code {error.returncode}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
