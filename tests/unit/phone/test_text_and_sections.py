import subprocess

from farm.core.evidence import ExitRecord
from farm.phone.digests import digest_by_path
from farm.phone.exit_record import exit_record
from farm.phone.sections import output_by_section, section_command
from farm.phone.text import decimal_number, decoded, lines, whole_number


def test_utf_16_is_decoded_by_its_mark() -> None:
    assert decoded("[a]: [b]\r\n".encode("utf-16")) == "[a]: [b]\r\n"
    assert decoded(b"\xef\xbb\xbf[a]") == "[a]"
    assert decoded(b"caf\xff") == "caf\ufffd"


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
