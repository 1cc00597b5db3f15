"""Build llama.cpp's `llama-bench` for this machine's CPU, from the source distribution of llama-cpp-python.

python examples/llm/build_llama_bench.py OUT
farm harness add llama-bench OUT/llama-bench

It needs pip, a C++ compiler, and cmake with ninja (`pip install cmake ninja`). The instructions are those of
x86-64-v3 and not of this machine's model, so that the same program is built everywhere.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

PACKAGE, VERSION = "llama-cpp-python", "0.3.36"
#: Of llama.cpp inside, which has no history there to read it from.
COMMIT = "0c1e570"
_SOURCE = f"llama_cpp_python-{VERSION}/vendor/llama.cpp/"
_OPTIONS = (
    *("CMAKE_BUILD_TYPE=Release", "BUILD_SHARED_LIBS=OFF", "GGML_NATIVE=OFF", "GGML_OPENMP=OFF"),
    *("GGML_CCACHE=OFF", "LLAMA_OPENSSL=OFF", "LLAMA_BUILD_TESTS=OFF", "LLAMA_BUILD_EXAMPLES=OFF"),
    *("LLAMA_BUILD_SERVER=OFF", "LLAMA_BUILD_APP=OFF", f"LLAMA_BUILD_COMMIT={COMMIT}"),
)


def build(out: Path, jobs: int) -> Path:
    """Return the program in `out`; one that was built before from this version is kept.

    Raises:
        subprocess.CalledProcessError: pip, cmake or the compiler fails.
        FileNotFoundError: a tool is missing.
    """
    program = out / "llama-bench"
    built_from = out / "llama-bench.version"
    if program.is_file() and built_from.is_file() and built_from.read_text() == VERSION:
        return program
    out.mkdir(parents=True, exist_ok=True)
    source, made = _download(out / "source"), out / "cmake"
    cmake = _tool("cmake")
    configure = [
        cmake,
        "-G",
        "Ninja",
        "-S",
        str(source),
        "-B",
        str(made),
        *(f"-D{word}" for word in _OPTIONS),
    ]
    _run([*configure, f"-DCMAKE_MAKE_PROGRAM={_tool('ninja')}"])
    _run(["nice", "-n", "10", cmake, "--build", str(made), "--target", "llama-bench", "-j", str(jobs)])
    shutil.copy(made / "bin" / "llama-bench", program)
    built_from.write_text(VERSION)
    return program


def _download(folder: Path) -> Path:
    """Return the folder of llama.cpp's source, taken out of the source distribution."""
    folder.mkdir(exist_ok=True)
    archive = folder / f"llama_cpp_python-{VERSION}.tar.gz"
    if not archive.is_file():
        wanted = ["--no-deps", "--no-binary", PACKAGE, f"{PACKAGE}=={VERSION}", "--dest", str(folder)]
        _run([sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "download", *wanted])
    with tarfile.open(archive) as file:
        members = [member for member in file.getmembers() if member.name.startswith(_SOURCE)]
        file.extractall(folder, members=members, filter="data")
    return folder / _SOURCE


def _tool(name: str) -> str:
    """Return a program beside this Python, else of the system."""
    path = shutil.which(name, path=os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])))
    if path is None:
        raise FileNotFoundError(f"no {name}. hint: pip install cmake ninja")
    return path


def _run(command: list[str]) -> None:
    subprocess.run(command, check=True, stdout=sys.stderr)


def main() -> int:
    """Build into the folder of the command line."""
    parser = argparse.ArgumentParser(description="Build llama-bench from the source of llama-cpp-python.")
    parser.add_argument("out", type=Path, help="folder for the program, its source and what is built")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="compilers at once")
    arguments = parser.parse_args()
    try:
        program = build(arguments.out.resolve(), arguments.jobs)
    except FileNotFoundError as error:
        print(error, file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as error:
        print(f"{error.cmd[0]} ended with exit code {error.returncode}", file=sys.stderr)
        return 1
    print(f"farm harness add llama-bench {program}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
