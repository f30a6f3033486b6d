"""Image files from strangers: few decoders see them, and none may ask for more memory than an image of this size."""

import io
import json
import os
import struct
import sys
import zlib
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from helpers.command import exit_code
from PIL import Image

from bcn.data import decode
from bcn.data.check import check_directory
from bcn.data.decode import FORMATS, decode_image
from bcn.data.images import read_image
from bcn.data.registry import open_dataset
from bcn.errors import BcnError

PACKAGE = Path(decode.__file__).parents[1]
EPS = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 75 75\n%%EndComments\nshowpage\n%%EOF\n"


def encode(kind: str, size: tuple[int, int] = (40, 30)) -> bytes:
    buffer = io.BytesIO()
    pixels = np.random.default_rng(0).integers(0, 255, (*size[::-1], 3), dtype=np.uint8)
    Image.fromarray(pixels).save(buffer, kind)
    return buffer.getvalue()


def one_question(directory: Path, content: bytes) -> Path:
    """A data set of one question about this image."""
    (directory / "a.png").write_bytes(content)
    line = {"image": "a.png", "question": "What is it?", "answer": "noise", "split": "train"}
    (directory / "questions.jsonl").write_text(json.dumps(line) + "\n")
    return directory


@pytest.mark.parametrize("kind", FORMATS)
def test_formats_that_are_accepted(kind: str) -> None:
    assert decode_image(io.BytesIO(encode(kind))).size == (40, 30)


@pytest.mark.parametrize("kind", ["EPS", "ICO", "PPM", "TGA", "PCX", "SGI", "JPEG2000", "SPIDER", "DDS", "BLP"])
def test_no_other_decoder_sees_a_file(kind: str) -> None:
    if kind == "BLP":
        content = b"BLP2" + bytes(200)
    elif kind == "SPIDER":
        buffer = io.BytesIO()
        Image.new("F", (40, 30)).save(buffer, "SPIDER")
        content = buffer.getvalue()
    else:
        content = EPS if kind == "EPS" else encode(kind)
    with pytest.raises(ValueError, match="it is not a PNG, JPEG, WebP, GIF, BMP or TIFF file"):
        decode_image(io.BytesIO(content))


def test_postscript_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A Ghostscript on the PATH that would leave a trace; files, standard input, and data sets."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "gs").write_text(f"#!/bin/sh\ntouch {tmp_path / 'was-run'}\nexit 1\n")
    (tmp_path / "bin" / "gs").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr("PIL.EpsImagePlugin.gs_binary", None)  # look for it again
    directory = one_question(tmp_path, EPS)
    with pytest.raises(BcnError, match="cannot be read as an image"):
        read_image(directory / "a.png")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(EPS)))
    assert exit_code("ask", "-", "is red left?") == 2
    assert "standard input is not an image" in capsys.readouterr().err
    with pytest.raises(BcnError, match="cannot read the image"):
        open_dataset("own", "train", data=directory)
    assert "1 images cannot be read" in check_directory(directory)[0]
    assert not (tmp_path / "was-run").exists()


def test_files_are_opened_in_one_place() -> None:
    elsewhere = [path for path in PACKAGE.rglob("*.py") if "Image.open(" in path.read_text()]
    assert elsewhere == [Path(decode.__file__)]


def tiff(tile: int, content: bytes) -> bytes:
    """A gray TIFF file of 16x16 pixels, in one compressed tile of this side."""
    tags = {256: 16, 257: 16, 258: 8, 259: 8, 262: 1, 277: 1, 322: tile, 323: tile, 324: 134, 325: len(content)}
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags.items())
    return b"II*\0" + struct.pack("<IH", 8, len(tags)) + entries + bytes(4) + content


def icon(side: int) -> bytes:
    """An ICO file whose directory says 16x16, around a PNG file with this side."""
    png = encode("PNG", (side, side))
    return struct.pack("<HHH4BHHII", 0, 1, 1, 16, 16, 0, 0, 1, 32, len(png), 22) + png


def test_a_tile_may_not_be_larger_than_an_image() -> None:
    """875 KB would take 880 MB."""
    assert decode_image(io.BytesIO(tiff(16, zlib.compress(bytes(16 * 16)))), max_side=100).size == (16, 16)
    bomb = tiff(30_000, zlib.compress(bytes(1000)))
    with pytest.raises(ValueError, match="900,000,000 pixels"):
        decode_image(io.BytesIO(bomb))
    with pytest.raises(ValueError, match="at most 16,777,216 are accepted"):
        decode_image(io.BytesIO(bomb), max_side=4096)


def test_a_size_that_only_decoding_shows_is_checked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[tuple[int, int]] = []
    close = Image.Image.close

    def close_noted(image: Image.Image) -> None:
        closed.append(image.size)
        close(image)

    monkeypatch.setattr(Image.Image, "close", close_noted)
    monkeypatch.setattr(decode, "FORMATS", (*FORMATS, "ICO"))
    assert decode_image(io.BytesIO(icon(100)), max_side=100).size == (100, 100)
    with pytest.raises(ValueError, match="it has 101x101 pixels"):
        decode_image(io.BytesIO(icon(101)), max_side=100)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 10_000)
    with pytest.raises(ValueError, match="it has 10,201 pixels, and at most 10,000"):
        decode_image(io.BytesIO(icon(101)))
    assert closed.count((101, 101)) == 2  # the pixels are let go before anyone sees the error


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_more_pixels_than_pillow_warns_about_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = one_question(tmp_path, encode("PNG", (40, 30)))
    for most in (1199, 500):  # a warning of Pillow, and an error
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", most)
        with pytest.raises(BcnError, match="pixels"):
            read_image(directory / "a.png")
        with pytest.raises(BcnError, match="pixels"):
            open_dataset("own", "train", data=directory)
        assert "1 images cannot be read" in check_directory(directory)[0]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("kind", FORMATS)
def test_damage_is_a_value_error(kind: str) -> None:
    """Cut and changed at random: decoded or refused, and nothing else."""
    rng, whole = np.random.default_rng(1), encode(kind)
    for _ in range(150):
        damaged = bytearray(whole[: rng.integers(1, len(whole) + 1)])
        for place in rng.integers(0, len(damaged), rng.integers(1, 8)):
            damaged[min(int(place), len(damaged) - 1) // rng.choice([1, 1, 16])] = rng.integers(256)
        with suppress(ValueError):
            decode_image(io.BytesIO(damaged), max_side=4096)
