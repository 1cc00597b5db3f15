"""What is told from the files of a program: which is started, for which phones, what will go wrong."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.core.base.ids import digest_of
from farm.core.errors import InvalidInput
from farm.core.programs.abi import program_abi, select_entry
from farm.core.programs.binary_inspection import FileInspection, find_missing_flags, inspect_file
from farm.core.programs.bundle import PLAIN_COMMAND, Bundle, BundleFile
from farm.core.programs.warnings import program_warnings
from tests.support.models.elf_samples import ARM, DESKTOP_LOADER, HEXAGON, SPARC, X86_64, elf_file

SCRIPT = b"#!/bin/sh\necho hello\n"
FLAGS = ("iter", "vulkan", "input_dims", "pthreadpool_size", "use_bundled_input")


def looks(flags: tuple[str, ...] = (), **content_by_path: bytes) -> dict[str, FileInspection]:
    """Files by name; `__` stands for `/`, a trailing `_so` for `.so`."""
    return {_path(name): inspect_file(content, flags) for name, content in content_by_path.items()}


def _path(name: str) -> str:
    path = name.replace("__", "/")
    return path.removesuffix("_so") + ".so" if path.endswith("_so") else path


def abi_of(asked: str | None = None, **content_by_path: bytes) -> str:
    """Of a program whose first file is started."""
    found = looks(**content_by_path)
    return program_abi(found, next(iter(found)), asked)


def noted(env: dict[str, str] | None = None, **content_by_path: bytes) -> list[str]:
    """Notes on a program whose first file is started."""
    found = looks(**content_by_path)
    files = tuple(BundleFile(path=path, digest=digest_of(b""), size_bytes=1) for path in found)
    bundle = Bundle(files=files, entry=files[0].path, env=env or {})
    return [f"{note.message} / {note.hint}" for note in program_warnings(bundle, found)]


def test_a_single_file_is_what_is_started() -> None:
    assert select_entry(looks(bench=b"anything"), []) == "bench"


def test_the_one_program_among_libraries_and_data_is_started() -> None:
    files = looks(bench=elf_file(), lib__libfoo_so=elf_file(loader=None), data__labels=b"cat\n")
    assert select_entry(files, []) == "bench"


def test_a_library_that_could_be_started_is_still_a_library() -> None:
    assert select_entry(looks(bench=elf_file(), libc_so=elf_file()), ["libc.so"]) == "bench"


def test_of_several_programs_the_one_marked_executable_is_started() -> None:
    files = looks(bench=elf_file(), helper=SCRIPT)
    assert select_entry(files, ["helper"]) == "helper"
    with pytest.raises(InvalidInput) as caught:
        select_entry(files, ["bench", "helper"])
    assert caught.value.hint == "--entry says which: bench, helper"


def test_a_folder_without_a_program_is_refused() -> None:
    with pytest.raises(InvalidInput, match="none of the files is a program"):
        select_entry(looks(a=b"text", b=elf_file(loader=None)), ["a", "b"])


def test_the_abi_is_read_from_binaries_and_scripts_run_anywhere() -> None:
    assert abi_of(bench=elf_file()) == "arm64-v8a"
    assert abi_of(bench=SCRIPT, data=b"x") == "any"
    assert abi_of(run=SCRIPT, bench=elf_file(ARM)) == "armeabi-v7a"


def test_a_script_may_be_meant_for_one_abi() -> None:
    assert abi_of("x86_64", bench=SCRIPT) == "x86_64"


def test_a_wrong_abi_is_told_with_the_file() -> None:
    with pytest.raises(InvalidInput, match="`bench` is built for arm64-v8a, not for x86_64"):
        abi_of("x86_64", bench=elf_file())
    with pytest.raises(InvalidInput, match=r"`lib/libfoo\.so` is built for armeabi-v7a, `bench` for arm64"):
        abi_of(bench=elf_file(), lib__libfoo_so=elf_file(ARM, loader=None))
    with pytest.raises(InvalidInput, match="`run/bench` is built for arm64-v8a, not for any"):
        abi_of("any", run__bench=elf_file())


def test_an_abi_no_one_knows_is_told_with_the_one_that_was_meant() -> None:
    with pytest.raises(InvalidInput) as caught:
        abi_of("arm64-v8", bench=elf_file())
    assert caught.value.hint == "did you mean `arm64-v8a`?"


def test_libraries_of_the_dsp_lie_beside_those_of_the_cpu() -> None:
    files = {"bench": elf_file(), "dsp__libSkel_so": elf_file(HEXAGON, loader=None)}
    assert abi_of(**files) == "arm64-v8a"
    assert noted(**files) == []


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (elf_file(loader=None), "a library or an object file"),
        (elf_file(SPARC), "a CPU that Android does not run on"),
        (b"\xcf\xfa\xed\xfe" + bytes(40), "macOS or iOS"),
        (b"MZ" + bytes(40), "Windows"),
        (b"PK\x03\x04" + bytes(40), "zip archive"),
        (b"\x7fELF" + bytes(40), "header is damaged"),
        (b"echo hello\n", "neither a binary nor a script"),
        (b"", "neither a binary nor a script"),
    ],
)
def test_what_no_phone_can_start_is_called_by_its_name(content: bytes, said: str) -> None:
    with pytest.raises(InvalidInput, match=said) as caught:
        abi_of(bench=content)
    assert caught.value.hint


def test_a_build_for_desktop_linux_that_brings_its_loader_and_c_library_is_none() -> None:
    paths = ("lib/ld-linux-aarch64.so.1", "lib/libc.so.6", "bench")
    content = {
        paths[0]: elf_file(loader=None),
        paths[1]: elf_file(loader=None, needed=["ld-linux-aarch64.so.1"]),
        paths[2]: elf_file(loader="/lib/ld-linux-aarch64.so.1", needed=["libc.so.6"]),
    }
    found = {path: inspect_file(each) for path, each in content.items()}
    files = tuple(
        BundleFile(path=path, digest=digest_of(each), size_bytes=len(each), executable=True)
        for path, each in content.items()
    )
    command = ("${work}/lib/ld-linux-aarch64.so.1", "--library-path", "${work}/lib")
    bundle = Bundle(files=files, entry="bench", command=(*command, *PLAIN_COMMAND))
    assert program_warnings(bundle, found) == []
    [note, _] = program_warnings(replace(bundle, command=(command[0], *PLAIN_COMMAND)), found)
    assert "which the phone will not look for in the bundle" in note.message
    note = program_warnings(replace(bundle, command=PLAIN_COMMAND), found)[0]
    assert "desktop Linux" in note.message


def test_a_build_for_desktop_linux_is_noted_with_the_loader_of_android() -> None:
    (note,) = noted(bench=elf_file(X86_64, loader=DESKTOP_LOADER, needed=["libc.so.6"]))
    assert "desktop Linux" in note
    assert "/system/bin/linker64" in note
    (note,) = noted(bench=elf_file(), libfoo_so=elf_file(loader=None, needed=["libc.so.6"]))
    assert "`libfoo.so` is a library for desktop Linux" in note


def test_an_android_build_with_all_it_needs_gives_nothing_to_note() -> None:
    assert noted(bench=elf_file(needed=["libc.so", "liblog.so", "libneuralnetworks.so"])) == []
    library_path = {"LD_LIBRARY_PATH": "/vendor/lib64:${work}/lib/"}
    bundle = {"bench": elf_file(needed=["libfoo.so"]), "lib__libfoo_so": elf_file(loader=None)}
    assert noted(library_path, **bundle) == []


def test_a_library_that_the_phone_will_not_find_is_noted_with_the_variable_to_set() -> None:
    (note,) = noted(
        bench=elf_file(needed=["libfoo.so"], runpath="$ORIGIN/lib"), lib__libfoo_so=elf_file(loader=None)
    )
    assert "--env 'LD_LIBRARY_PATH=${work}/lib'" in note
    (note,) = noted(bench=elf_file(needed=["libfoo.so"]), libfoo_so=elf_file(loader=None))
    assert "--env 'LD_LIBRARY_PATH=${work}'" in note


def test_a_library_that_is_nowhere_is_noted_once() -> None:
    (note,) = noted(
        {"LD_LIBRARY_PATH": "${work}"},
        bench=elf_file(needed=["libc++_shared.so", "liba.so"]),
        liba_so=elf_file(loader=None, needed=["libc++_shared.so"]),
    )
    assert "libc++_shared.so, which is not in the bundle" in note


def test_a_script_whose_interpreter_android_lacks_is_noted() -> None:
    (note,) = noted(bench=b"#!/usr/bin/env python3\n")
    assert "Android has no /usr" in note
    # The Python of virtual phones: such a script is not meant for Android.
    assert noted(bench=b"#!/usr/bin/env benchfarm-python\n") == []
    assert noted(bench=b"#!/system/bin/sh\n", other=b"#!/usr/bin/perl\n") == []


def test_a_script_with_line_ends_of_windows_is_noted() -> None:
    (note,) = noted(bench=b"#!/system/bin/sh\r\necho hello\r\n")
    assert "carriage return" in note
    assert r"sed -i 's/\r$//'" in note


def strings(*names: str) -> bytes:
    return b"".join(b"\0" + name.encode() + b"\0" for name in names)


def lacking(entry: bytes, **others: bytes) -> set[str] | None:
    found = find_missing_flags(FLAGS, looks(FLAGS, bench=entry, **others), "bench")
    return None if found is None else set(found)


def test_flags_that_stand_nowhere_in_a_binary_are_missing() -> None:
    assert lacking(elf_file(text=strings("iter", "input_dims", "vulkan"))) == {
        "pthreadpool_size",
        "use_bundled_input",
    }
    assert lacking(elf_file(text=strings(*FLAGS))) == set()


def test_flags_may_stand_in_a_library() -> None:
    library = elf_file(loader=None, text=strings("pthreadpool_size", "use_bundled_input"))
    assert lacking(elf_file(text=strings("iter", "vulkan", "input_dims")), libtorch_so=library) == set()


def test_a_name_may_be_the_tail_of_another_text() -> None:
    assert lacking(elf_file(text=strings("iter", "vulkan", "input_dims", "x use_bundled_input"))) == {
        "pthreadpool_size"
    }


def test_a_short_name_that_is_not_there_may_be_in_the_code_unless_one_as_short_is_there() -> None:
    assert lacking(elf_file(text=strings("pthreadpool_size"))) == {"use_bundled_input"}
    assert lacking(elf_file(text=strings("pthreadpool_size", "vulkan"))) == {
        "use_bundled_input",
        "input_dims",
    }


def test_names_of_parser_classes_and_symbols_count() -> None:
    text = b"\0N3c1020C10FlagParser_vulkanE\0FLAGS_use_bundled_input\0" + strings("iter", "input_dims")
    assert lacking(elf_file(text=text)) == {"pthreadpool_size"}


def test_names_that_a_large_binary_keeps_far_apart_or_across_a_border_are_found() -> None:
    border = 4 * 1024 * 1024
    head = elf_file(text=strings("iter", "vulkan", "pthreadpool_size"))
    filler = bytes(border - len(head) - 8)
    assert lacking(head + filler + strings("use_bundled_input") + filler) == {"input_dims"}


def test_of_a_binary_that_knows_none_of_the_flags_nothing_is_said() -> None:
    assert lacking(elf_file(text=strings("frames", "resolution"))) is None


def test_words_of_a_script_are_its_flags() -> None:
    script = b"#!/bin/sh\nfor word; do case $word in --iter=*|--vulkan=*) ;; esac; done\n"
    assert lacking(script) == {"input_dims", "pthreadpool_size", "use_bundled_input"}
    assert lacking(b"#!/bin/python\nimport known\n", known=b"iter vulkan input_dims use_bundled_input") == {
        "pthreadpool_size"
    }


def test_a_script_that_hands_its_arguments_on_says_nothing_itself() -> None:
    script = b'#!/bin/sh\n# --iter is for the program\nexec ./bench --vulkan "$@"\n'
    assert lacking(script) is None
    assert lacking(script, real=elf_file(text=strings("iter", "input_dims"))) == {
        "vulkan",
        "pthreadpool_size",
        "use_bundled_input",
    }


def test_a_page_of_help_beside_a_binary_says_nothing_of_it() -> None:
    readme = " ".join(FLAGS).encode()
    assert lacking(elf_file(), readme=readme) is None
    assert lacking(elf_file(text=strings("iter", "vulkan", "input_dims")), readme=readme) == {
        "pthreadpool_size",
        "use_bundled_input",
    }


def test_the_program_that_comes_with_the_farm_knows_every_flag_of_its_adapter() -> None:
    from importlib.resources import files

    from farm.core.base.setting_values import AdapterFlag
    from farm.harness.registry import get_harness

    declared = get_harness("speed_benchmark_torch").flags
    flags = tuple(name for name, flag in declared.items() if not isinstance(flag, AdapterFlag))
    content = files("harnesses").joinpath("speed_benchmark_torch").read_bytes()
    assert find_missing_flags(flags, {"x": inspect_file(content, flags)}, "x") == frozenset()


@given(
    st.sampled_from([b"", b"#!", b"\x7fELF\x02\x01", elf_file(needed=["liba.so"])[:80]]),
    st.binary(max_size=400),
)
def test_no_content_makes_a_look_fail(beginning: bytes, rest: bytes) -> None:
    found = inspect_file(beginning + rest, FLAGS)
    assert found.flags.found <= set(FLAGS)
    assert not (found.elf and found.unsupported)
