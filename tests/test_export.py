"""Exports: the same answers from the file, for other sizes, and without torch or this package."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from small_weights import digit_weights, scene_run, word_weights

import bcn
from bcn.ask import Reasoner
from bcn.cli import main
from bcn.data.sort_of_clevr import make_sort_of_clevr
from bcn.errors import BcnError
from bcn.export import Free, compare, export

DOCS = Path(__file__).parents[1] / "docs" / "ask.md"


def inputs(images: int, questions: int, height: int, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(5)
    image = torch.rand(images, 3, height, width, generator=generator)
    return image, torch.randint(0, 2, (images, questions, 11), generator=generator).float()


@pytest.fixture(scope="module")
def exported(tmp_path_factory) -> Path:
    """A directory with the ONNX file of the smoke run, written by the command."""
    pytest.importorskip("onnxruntime", reason="needs the extra onnx")
    pytest.importorskip("onnxscript", reason="needs the extra onnx")
    directory = tmp_path_factory.mktemp("exported")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["bcn", "export", str(scene_run()), str(directory), "--to", "onnx"])
        with pytest.raises(SystemExit) as exit:
            main()
    assert not exit.value.code
    return directory


def test_onnx_gives_the_same_for_any_number_and_size(exported):
    import onnxruntime

    session = onnxruntime.InferenceSession(exported / "sort-of-clevr-multirn-h.onnx")
    model = bcn.load(scene_run()).model
    for size in ((1, 1, 75, 75), (4, 36, 75, 75), (3, 2, 60, 101)):
        image, question = inputs(*size)
        found = session.run(["logits"], {"image": image.numpy(), "question": question.numpy()})[0]
        with torch.inference_mode():
            expected = model(image, question).numpy()
        assert np.allclose(found, expected, rtol=1e-4, atol=1e-4)
    about = json.loads(session.get_modelmeta().custom_metadata_map["bcn"])
    assert about["answers"] == list(make_sort_of_clevr("sort-of-clevr-v1", "test", images=1).answers)
    assert about["preprocessing"] == {"mean": [0.0], "std": [1.0]}
    assert about["image"] == {"height": 75, "width": 75, "any_size": True}


def test_the_example_runs_without_torch_and_bcn(exported, tmp_path):
    from PIL import Image

    scene = make_sort_of_clevr("sort-of-clevr-v1", "test", images=1)[[0]].image[0].permute(1, 2, 0).numpy()
    Image.fromarray(scene).save(tmp_path / "scene.png")
    (tmp_path / "exported").symlink_to(exported)
    (example,) = (each for each in re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL) if "runtime" in each)
    assert "import torch" not in example
    program = f"import sys\nsys.modules['torch'] = sys.modules['bcn'] = None\n{example}"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == bcn.load(scene_run()).ask(scene, "shape of red")[0].answer


def test_torch_export_of_a_finder(tmp_path):
    written = export(bcn.load(digit_weights()), "torch-export", tmp_path)
    assert written.path == tmp_path / "scaled-mnist-bcn.pt2"
    assert written.free.images
    assert written.free.size
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


def test_a_model_of_fixed_size_stays_so(tmp_path):
    torch.manual_seed(0)
    description = bcn.load(scene_run()).description | {"model": "sort-of-clevr/mlp"}
    written = export(Reasoner("mlp", bcn.create_model("sort-of-clevr/mlp"), description), "torch-export", tmp_path)
    assert not written.free.size
    assert written.free.questions
    program = torch.export.load(written.path).module()
    assert program(*inputs(2, 9, 75, 75)).shape == (2, 9, 10)
    with pytest.raises(Exception, match=r"[Gg]uard"):
        program(*inputs(2, 9, 91, 91))


def test_safetensors_are_loaded_again(tmp_path):
    reasoner = bcn.load(scene_run())
    path = export(reasoner, "safetensors", tmp_path).path
    again = bcn.load(path)
    assert again.description == reasoner.description
    for name, tensor in reasoner.model.state_dict().items():
        assert torch.equal(again.model.state_dict()[name], tensor)
    first = path.read_bytes()
    assert export(again, "safetensors", tmp_path).path.read_bytes() == first


def test_models_that_read_words_go_to_safetensors(tmp_path):
    reasoner = bcn.load(word_weights())
    with pytest.raises(BcnError, match="only safetensors can hold"):
        export(reasoner, "torch-export", tmp_path)
    assert bcn.load(export(reasoner, "safetensors", tmp_path).path).description == reasoner.description


def test_a_difference_is_refused():
    reasoner = bcn.load(digit_weights())

    def wrong(image: torch.Tensor) -> list[torch.Tensor]:
        logits, centre = reasoner.model(image)
        return [logits, centre + 5e-4]

    with pytest.raises(BcnError, match="what was exported differs"):
        compare(reasoner, wrong, free=Free())
    assert compare(reasoner, reasoner.model, free=Free()) == 0


def test_unknown_formats_and_missing_packages_are_answered(tmp_path, monkeypatch):
    reasoner = bcn.load(digit_weights())
    with pytest.raises(BcnError, match="did you mean 'onnx'"):
        export(reasoner, "onxx", tmp_path)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(BcnError, match=re.escape("pip install 'bcn[onnx]'")):
        export(reasoner, "onnx", tmp_path)
    assert not list(tmp_path.iterdir())
