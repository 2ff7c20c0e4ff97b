"""The most important refusals, in this process: each says what was wrong. ``tests/hostile/files`` has them all."""

import pytest

from tests.hostile.files import attack, checkpoint_attacks, netcdf_attacks, place_attacks, zarr_attacks, zip_attacks
from toolkit import CheckpointError, LoadError, load, sample
from toolkit._output.storage.zarr_reader import zstd_length

ATTACKS = {
    (a.family, a.name): a
    for module in (checkpoint_attacks, netcdf_attacks, place_attacks, zarr_attacks, zip_attacks)
    for a in module.ATTACKS
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("hostile")
    attack.make_base(place / attack.BASE)
    return place


def refusal(folder, family, name):
    """What ``load`` says of a hostile file; nothing in it has run."""
    place = folder / f"{family} {name}".replace("/", "|")
    place.mkdir()
    path = ATTACKS[family, name].build(place)
    with pytest.raises(LoadError, match=path.name.replace(".", r"\.")) as caught:
        load(path)
    assert not (place / attack.CANARY).exists()
    return str(caught.value)


@pytest.mark.parametrize("suffix", [".zarr", ".zarr.zip"])
@pytest.mark.parametrize("name", ["pickle filter", "pickle compressor", "json2", "compressor lzma"])
def test_no_codec_but_ours_is_used(name, suffix, folder):
    said = refusal(folder, "zarr: codecs", f"{name}{suffix}")
    assert "filters of" in said or "must hold numbers" in said or "plain or compressed by Blosc" in said


@pytest.mark.parametrize("name", ["soft", "to another file", "group in another file", "header in another file"])
def test_no_link_in_netcdf_is_followed(name, folder):
    assert "is a link, and what a link leads to is not read" in refusal(folder, "netCDF: links", name)


@pytest.mark.parametrize(
    "name", ["a chunk is a link out", "a whole group is a link out", "a link to the folder itself"]
)
def test_no_link_in_a_folder_is_followed(name, folder):
    assert "is a link, and what a link leads to is not read" in refusal(folder, "places: in a Zarr folder", name)


@pytest.mark.parametrize("name", ["external storage of passwd", "virtual"])
def test_no_array_lies_in_another_file(name, folder):
    assert "another file" in (said := refusal(folder, "netCDF: links", name)) or "other places" in said


@pytest.mark.parametrize(
    ("family", "name", "words"),
    [
        ("npz: archives that lie", "3 GiB of zeros", "may hold at most"),
        ("zarr: bombs", "zstd of 512 MB, as said.zarr", "may hold at most"),
        ("zarr: shapes", "2^60 numbers.zarr.zip", "chunks of"),
        ("netCDF: sizes", "16 GiB never written", "has 0 in the file"),
        ("netCDF: sizes", "3 GiB contiguous", "has 0 in the file"),
        ("netCDF: sizes", "chunk inflates to 512 MB", "bytes in the file, for 1920"),
        ("npz: archives that lie", "overlapping bombs", "shares bytes"),
        ("npz: archives that lie", "header of 320 MB", "the header of array"),
    ],
)
def test_kilobytes_give_no_gigabytes(family, name, words, folder):
    assert words in refusal(folder, family, name)


@pytest.mark.parametrize("name", ["zstd says what is right and holds more", "zstd of 2 GiB", "zstd says 3 GiB"])
def test_a_chunk_of_zstandard_has_the_length_it_must_have(name, folder):
    refusal(folder, "zarr: bombs", f"{name}.zarr")


@pytest.mark.parametrize("length", [1, 255, 256, 300, 65_791, 65_792, 10**6])
def test_the_length_in_a_frame_of_zstandard_is_found(length):
    numcodecs = pytest.importorskip("numcodecs")
    for level in (1, 19):
        assert zstd_length(bytes(numcodecs.Zstd(level).encode(bytes(length)))) == length
    assert zstd_length(zarr_attacks.zstd_blocks(3)) is None


def test_zstandard_is_not_asked_for_more_than_a_chunk(monkeypatch):
    """What says another length is refused before it is decoded."""
    from toolkit._output.storage import zarr_reader

    monkeypatch.setattr(zarr_reader, "optional", None)  # what would decode
    with pytest.raises(LoadError, match="a chunk of Zstandard says 3221225472 bytes, and must have 4096"):
        zarr_reader.decode_zstd(zarr_attacks.zstd_blocks(1, 3 << 30), 4096)


@pytest.mark.parametrize("name", ["saved.writing, a link to another's file", "saved.draws, a fifo"])
def test_a_checkpoint_does_not_write_through_a_link(name, folder):
    place = folder / name.replace("/", "|")
    place.mkdir()
    path = ATTACKS["checkpoint: places", name].build(place)
    problem, sampler, options = attack.base_call()
    error = CheckpointError if "link" in name else ValueError
    with pytest.raises(error, match="saved"):
        sample(problem, sampler, **options, checkpoint=path)
    if "link" in name:
        assert (place / "victim").read_bytes() == b"kept"
