import subprocess

import pytest

from farm.core.runs.evidence import ExitRecord
from farm.phone.adb.decoding import complete_lines, decimal_number, lines, whole_number
from farm.phone.adb.shell_output import (
    digest_by_path,
    exit_record,
    output_by_section,
    section_command,
    section_head,
)
from tests.phone.adb.capture_text import decode_output


def test_utf_16_is_decoded_by_its_mark() -> None:
    assert decode_output("[a]: [b]\r\n".encode("utf-16")) == "[a]: [b]\r\n"
    assert decode_output(b"\xef\xbb\xbf[a]") == "[a]"
    assert decode_output(b"caf\xff") == "caf\ufffd"


def test_lines_lose_their_ends_and_nothing_else() -> None:
    assert lines("\ufeffa\r\n\tb \rc\0\n") == ["a", "\tb", "c", ""]


def test_numbers_are_ascii_digits_only() -> None:
    assert [whole_number(text) for text in ["12", " -3\n", "", "1.5", "²", "1_000", "9" * 40]] == [
        12,
        -3,
        *[None] * 5,
    ]
    assert [decimal_number(text) for text in ["1.5", "-2", "nan", "1e9", "1.-5"]] == [
        1.5,
        -2.0,
        None,
        None,
        None,
    ]


def test_the_sections_of_one_call_come_apart_again() -> None:
    command = section_command(
        {"one": "printf 'no line end'", "gone": "no-such-program", "two": "echo a; echo b"}
    )
    said = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert said.stderr == ""
    assert output_by_section(said.stdout) == {"one": "no line end", "gone": "", "two": "a\nb\n"}


def test_sections_that_never_came_are_missing() -> None:
    assert output_by_section("noise\n@@benchfarm@@ one\nhalf") == {"one": "half"}


def test_digests_are_read_and_errors_passed_over() -> None:
    digest = "0123456789abcdef" * 4
    text = f"{digest}  a file\r\nsha256sum: b: No such file or directory\n{digest[:-1]}  short\n{digest} *c\n"
    assert digest_by_path(text) == {"a file": digest, "c": digest}


def test_an_exit_record_is_read_whole_or_not_at_all() -> None:
    text = "code=137\ntimed_out=1\nstarted_s=100.50\nended_s=103.75\nboot_id=x\n"
    assert exit_record(text) == ExitRecord(code=137, timed_out=True, duration_s=3.25)
    assert exit_record(text[: text.index("ended")]) is None
    assert exit_record("") is None


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_without_its_mark_is_told_by_its_zeros(encoding: str) -> None:
    text = "[ro.product.model]: [Gerät 9]\r\n"
    assert decode_output(text.encode(encoding)) == text


def test_zeros_in_other_bytes_are_no_utf_16() -> None:
    assert decode_output(b"a\0b") == "a\0b"
    assert decode_output(b"\0\0\0\0") == "\0\0\0\0"
    assert decode_output(b"") == ""


def test_colours_and_the_line_ends_of_old_adb_are_taken_off() -> None:
    assert lines("\x1b[1;31ma\x1b[m\x1b[Kb\r\r\n\x1b[0mc\r\n") == ["ab", "c", ""]


@pytest.mark.parametrize(
    "line",
    ["[ 12.500000] usb 1-2: gone", "I/O error: none", "E/x: y", "03-14 is a day", "  12% 77/acme: 3% user"],
)
def test_what_only_looks_like_a_loggers_words_stays(line: str) -> None:
    assert lines(line) == [line]


def test_blanks_behind_a_loggers_words_stay() -> None:
    assert lines("03-14 15:09:26.535  2718  2818 I acme:   level: 5\n") == ["  level: 5", ""]


def test_a_last_line_without_its_end_is_not_whole() -> None:
    assert complete_lines("a\nb") == ["a"]
    assert complete_lines("a\nb\n") == ["a", "b"]
    assert complete_lines("a") == complete_lines("") == []


def test_a_section_whose_command_was_stopped_has_no_line_end() -> None:
    text = section_head("one") + "whole\nhal" + section_head("two") + "whole\n" + section_head("three")
    assert output_by_section(text) == {"one": "whole\nhal", "two": "whole\n", "three": ""}
