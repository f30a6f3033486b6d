"""Exports: the same answers from the file, for other sizes, and without torch or this package."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.command import finish, run_bcn, start_python
from helpers.small_weights import digit_weights, scene_run, word_weights

import bcn
from bcn.data.sort_of_clevr import make_sort_of_clevr
from bcn.errors import BcnError
from bcn.inference.export import DynamicShapes, compare, export
from bcn.inference.reasoner import Reasoner
from bcn.layers.baselines.film import Film

DOCS = Path(__file__).parents[2] / "docs" / "guides" / "ask.md"


def inputs(images: int, questions: int, height: int, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(5)
    image = torch.rand(images, 3, height, width, generator=generator)
    return image, torch.randint(0, 2, (images, questions, 11), generator=generator).float()


def read_by_word() -> Path:
    """Weights of the model of the docs' second example."""
    return word_weights("clevr/multirn-h")


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the ONNX files of the smoke run and of a model that reads words, written by the command."""
    pytest.importorskip("onnxruntime", reason="needs the extra onnx")
    pytest.importorskip("onnxscript", reason="needs the extra onnx")
    directory = tmp_path_factory.mktemp("exported")
    for weights in (scene_run(), read_by_word()):
        run_bcn("export", weights, directory, "--to", "onnx")
    return directory


def answers_alike(session: Any, weights: Path, image: torch.Tensor, question: torch.Tensor) -> bool:
    """Whether a session of onnxruntime says the same as the model."""
    found = session.run(["logits"], {"image": image.numpy(), "question": question.numpy()})[0]
    with torch.inference_mode():
        expected = bcn.load(weights).model(image, question).numpy()
    return np.allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_onnx_gives_the_same_for_any_number_and_size(exported: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(exported / "sort-of-clevr-multirn-h.onnx")
    for size in ((1, 1, 75, 75), (4, 36, 75, 75), (3, 2, 60, 101)):
        assert answers_alike(session, scene_run(), *inputs(*size))
    about = json.loads(session.get_modelmeta().custom_metadata_map["bcn"])
    assert about["answers"] == list(make_sort_of_clevr("sort-of-clevr-v1", "test", images=1).answers)
    assert about["preprocessing"] == {"mean": [0.0], "std": [1.0]}
    assert about["image"] == {"height": 75, "width": 75, "any_size": True}


def spoken(images: int, questions: int, words: int, height: int, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Images and questions of up to so many words, each ended by padding; one of them is padding alone."""
    generator = torch.Generator().manual_seed(6)
    word = torch.randint(1, 7, (images, questions, words), generator=generator)
    length = torch.randint(1, words + 1, (images, questions, 1), generator=generator)
    length[-1, -1] = 0
    return torch.rand(images, 3, height, width, generator=generator), word * (torch.arange(words) < length)


def test_onnx_reads_sentences_of_any_length(exported: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(exported / "clevr-multirn-h.onnx")
    for size in ((1, 1, 1, 128, 128), (3, 4, 2, 128, 128), (2, 5, 43, 100, 150)):
        assert answers_alike(session, read_by_word(), *spoken(*size))
    about = json.loads(session.get_modelmeta().custom_metadata_map["bcn"])
    assert about["words"] == ["how", "many", "cubes", "are", "there"]
    assert about["answers"] == ["yes", "no", "2"]
    assert about["preprocessing"] == {"mean": [0.5], "std": [0.5]}
    assert about["image"] == {"height": 128, "width": 128, "any_size": True}


@pytest.mark.parametrize("number", [0, 1], ids=["scenes", "words"])
def test_the_examples_run_without_torch_and_bcn(exported: Path, tmp_path: Path, number: int) -> None:
    from PIL import Image

    scene = make_sort_of_clevr("sort-of-clevr-v1", "test", images=1)[[0]].image[0].permute(1, 2, 0).numpy()
    Image.fromarray(scene).save(tmp_path / "scene.png")
    (tmp_path / "exported").symlink_to(exported)
    blocks = re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL)
    example = [each for each in blocks if "onnxruntime" in each][number]
    assert "import torch" not in example
    program = f"import sys\nsys.modules['torch'] = sys.modules['bcn'] = None\n{example}"
    out, _ = finish(start_python("-c", program, cwd=tmp_path))
    weights, question = ((scene_run(), "shape of red"), (read_by_word(), "How many cubes are there?"))[number]
    assert out.strip() == bcn.load(weights).ask(scene, question)[0].answer


def test_torch_export_of_a_finder(tmp_path: Path) -> None:
    written = export(bcn.load(digit_weights()), "torch-export", tmp_path)
    assert written.path == tmp_path / "scaled-mnist-bcn.pt2"
    assert written.shapes.images
    assert written.shapes.size
    about: dict[str, str] = {"bcn.json": ""}
    program = torch.export.load(written.path, extra_files=about)
    assert json.loads(about["bcn.json"])["model"] == "scaled-mnist/bcn"
    image = torch.zeros(3, 1, 96, 160)
    image[:, :, 20:60, 100:130] = 1
    _, centre = program.module()(image)
    with torch.inference_mode():
        expected = bcn.load(digit_weights()).model(image)[1]
    assert torch.allclose(centre, expected, atol=1e-5)
    assert not (expected == 0.5).any()


def test_a_model_of_fixed_size_stays_so(tmp_path: Path) -> None:
    torch.manual_seed(0)
    description = bcn.load(scene_run()).description | {"model": "sort-of-clevr/mlp"}
    written = export(Reasoner("mlp", bcn.create_model("sort-of-clevr/mlp"), description), "torch-export", tmp_path)
    assert not written.shapes.size
    assert written.shapes.questions
    program = torch.export.load(written.path).module()
    assert program(*inputs(2, 9, 75, 75)).shape == (2, 9, 10)
    with pytest.raises(Exception, match=r"[Gg]uard"):
        program(*inputs(2, 9, 91, 91))


def test_safetensors_are_loaded_again(tmp_path: Path) -> None:
    reasoner = bcn.load(scene_run())
    path = export(reasoner, "safetensors", tmp_path).path
    again = bcn.load(path)
    assert again.description == reasoner.description
    for name, tensor in reasoner.model.state_dict().items():
        assert torch.equal(again.model.state_dict()[name], tensor)
    first = path.read_bytes()
    assert export(again, "safetensors", tmp_path).path.read_bytes() == first


def test_torch_export_of_a_model_that_reads_words(tmp_path: Path) -> None:
    reasoner = bcn.load(read_by_word())
    written = export(reasoner, "torch-export", tmp_path)
    assert written.shapes == DynamicShapes(words=True)
    program = torch.export.load(written.path).module()
    for size in ((1, 1, 1, 128, 128), (2, 5, 43, 100, 150)):
        image, question = spoken(*size)
        with torch.inference_mode():
            assert torch.allclose(program(image, question), reasoner.model(image, question), rtol=1e-4, atol=1e-4)
    assert bcn.load(export(reasoner, "safetensors", tmp_path).path).description == reasoner.description


@pytest.mark.parametrize("model", ["clevr/q-type", "drawn/multirn-rounds"])
def test_all_sizes_are_free(model: str, tmp_path: Path) -> None:
    pytest.importorskip("onnxscript", reason="needs the extra onnx")
    written = export(bcn.load(word_weights(model)), "onnx", tmp_path)
    assert written.shapes == DynamicShapes(words=True)
    assert written.difference < 1e-4


def test_film_leaves_the_number_of_questions_free() -> None:
    """One question about an image is one for all of its maps, and takes the same way as many."""
    film, auto = Film(6, 5, blocks=2, out_channels=7).eval(), torch.export.Dim.AUTO
    inputs = torch.rand(2, 6, 4, 4), torch.rand(2, 3, 5)
    shapes = ({0: auto, 2: auto, 3: auto}, {0: auto, 1: auto})
    program = torch.export.export(film, inputs, dynamic_shapes=shapes).module()
    for images, questions, side in ((1, 1, 4), (3, 1, 4), (1, 4, 6)):
        image, question = torch.rand(images, 6, side, side), torch.rand(images, questions, 5)
        assert torch.allclose(program(image, question), film(image, question), atol=1e-5)


def test_a_difference_is_refused() -> None:
    reasoner = bcn.load(digit_weights())

    def wrong(image: torch.Tensor) -> list[torch.Tensor]:
        logits, centre = reasoner.model(image)
        return [logits, centre + 5e-4]

    with pytest.raises(BcnError, match="exported model differs"):
        compare(reasoner, wrong, DynamicShapes())
    assert compare(reasoner, reasoner.model, DynamicShapes()) == 0


def test_unknown_formats_and_missing_packages_are_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reasoner = bcn.load(digit_weights())
    with pytest.raises(BcnError, match="did you mean 'onnx'"):
        export(reasoner, "onxx", tmp_path)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(BcnError, match=re.escape("pip install 'bcn-torch[onnx]'")):
        export(reasoner, "onnx", tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("format_", ["safetensors", "torch-export"])
def test_what_does_not_answer_alike_is_not_written(
    format_: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bcn.inference.export.TOLERANCE", -1.0)
    with pytest.raises(BcnError, match="nothing was written"):
        export(bcn.load(scene_run()), format_, tmp_path)
    assert list(tmp_path.iterdir()) == []
