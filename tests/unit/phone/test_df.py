import pytest

from farm.phone.storage import storage_free_bytes, storage_size_bytes

HEAD = "Filesystem       1K-blocks     Used Available Use% Mounted on\n"


@pytest.mark.parametrize(
    ("text", "free_bytes"),
    [
        (HEAD + "/dev/block/dm-49 242680204 81352368 161196764  34% /data/user/0\n", 161196764 * 1024),
        (HEAD + "/dev/sda1\t100 40 60 40% /\r\n", 60 * 1024),
        (HEAD + "/dev/mapper/a-very-long-name-of-a-volume\n          100 40 60 40% /data\n", 60 * 1024),
        (
            HEAD.replace("1K-blocks", "Size") + "/dev/block/sda32 110G  109G  1.6G  99% /data\n",
            int(1.6 * 1024**3),
        ),
        ("Filesystem Size Used Free Blksize\n/data 11.9G 5.0G 6.5G 4096\n", int(6.5 * 1024**3)),
        ("df -k /data/local/tmp\n" + HEAD + "tmpfs 10 5 5 50% /data\n", 5 * 1024),
    ],
    ids=["toybox", "coreutils crlf", "wrapped", "units", "toolbox", "echo"],
)
def test_free_bytes_are_read_off_every_form_of_df(text: str, free_bytes: int) -> None:
    assert storage_free_bytes(text) == free_bytes


@pytest.mark.parametrize(
    "text",
    [
        "",
        HEAD,
        HEAD + "a 1 1 1 50% /a\nb 2 2 2 50% /b\n",
        "df: /data: Permission denied",
        HEAD + "/dev/block/dm-49 2426",
    ],
)
def test_no_single_file_system_is_no_answer(text: str) -> None:
    assert storage_free_bytes(text) is None


def test_a_whole_listing_has_the_users_data_among_others() -> None:
    listing = (
        HEAD + "tmpfs 9 1 8 12% /dev\n/dev/block/dm-9 100 40 60 40% /data\n/dev/fuse 100 40 61 40% /storage\n"
    )
    assert storage_free_bytes(listing) == 60 * 1024
    assert storage_size_bytes(listing) == 100 * 1024


def test_magisk_of_old_shows_the_users_data_in_a_mirror() -> None:
    listing = HEAD + "/sbin/.magisk/block/system 2G 1G 1G 50% /sbin/.magisk/mirror/system\n"
    listing += "/sbin/.magisk/block/data 3.5G 1G 2.5G 29% /sbin/.magisk/mirror/data\n"
    assert storage_size_bytes(listing) == int(3.5 * 1024**3)
