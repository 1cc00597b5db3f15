import pytest

from farm.phone.hardware.storage import storage_free_bytes, storage_size_bytes

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


@pytest.mark.parametrize(
    ("heading", "block_bytes"),
    [("1K-blocks", 1024), ("1024-blocks", 1024), ("512-blocks", 512), ("1M-blocks", 1024**2)],
)
def test_the_heading_says_what_blocks_are_meant(heading: str, block_bytes: int) -> None:
    text = f"Filesystem {heading} Used Available Capacity Mounted on\n/dev/a 100 40 60 40% /data\n"
    assert (storage_size_bytes(text), storage_free_bytes(text)) == (100 * block_bytes, 60 * block_bytes)


def test_counts_of_files_are_no_sizes() -> None:
    text = "Filesystem Inodes IUsed IFree IUse% Mounted on\n/dev/block/dm-7 7077888 70888 7007000 2% /data\n"
    assert storage_free_bytes(text) is None


def test_the_oldest_toolbox_says_it_in_words() -> None:
    text = "/data: 2013012K total, 391508K used, 1621504K available (block size 4096)\n"
    assert (storage_size_bytes(text), storage_free_bytes(text)) == (2013012 * 1024, 1621504 * 1024)


@pytest.mark.parametrize("end", ["/data", "/data_mirror"])
def test_a_mount_that_may_be_cut_is_not_believed(end: str) -> None:
    assert storage_free_bytes(f"{HEAD}tmpfs 9 1 8 12% /dev\n/dev/a 100 40 60 40% {end}") is None


def test_the_only_row_needs_no_line_end_where_it_is_of_the_data() -> None:
    assert storage_free_bytes(f"{HEAD}/dev/a 100 40 60 40% /data") == 60 * 1024
    assert storage_free_bytes(f"{HEAD}/dev/a 100 40 60 40% /dat") is None


def test_a_listing_that_is_cut_behind_its_first_row_is_not_of_one_file_system() -> None:
    assert storage_free_bytes(f"{HEAD}tmpfs 9 1 8 12% /dev\n/dev/block/dm-9 10") is None
    assert storage_free_bytes(f"{HEAD}tmpfs 9 1 8 12% /dev\nstar9:/ $ ") == 8 * 1024


def test_decimals_may_be_parted_by_a_comma() -> None:
    text = "Filesystem      Size  Used Avail Use% Mounted on\n/dev/block/dm-7  59G  55,5G  3,5G  95% /data\n"
    assert storage_free_bytes(text) == int(3.5 * 1024**3)
    assert storage_free_bytes(f"{HEAD}/dev/block/dm-7 1,000 400 600 40% /data\n") is None


def test_where_the_datas_mount_is_hidden_what_is_emulated_on_it_tells_the_same() -> None:
    text = f"{HEAD}tmpfs 9 1 8 12% /dev\n/dev/fuse 100 40 60 40% /storage/emulated\n"
    assert storage_free_bytes(text) == 60 * 1024
    assert storage_free_bytes(f"{text}/dev/block/dm-7 300 100 200 34% /data\n") == 200 * 1024
