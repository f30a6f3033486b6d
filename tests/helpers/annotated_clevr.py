"""clevr-like-v1 with scenes and programs, and images of one shade each, which is the number of the scene."""

import json
from pathlib import Path

from PIL import Image

from bcn.data.clevr_like.questions import make_questions
from bcn.data.clevr_like.scene import make_scene

IMAGES = {"train": 12, "val": 2, "test": 2}


def annotated_clevr(directory: Path) -> Path:
    """The questions name the images in another order than the scenes."""
    for split, images in IMAGES.items():
        scenes = [make_scene(index, split=split) for index in range(images)]
        questions = [question for scene in reversed(scenes) for question in make_questions(scene)]
        for key, entries in (("scenes", scenes), ("questions", questions)):
            path = directory / key / f"CLEVR_{split}_{key}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps({"info": {"version": "clevr-like-v1"}, key: entries}))
        for index, scene in enumerate(scenes):
            path = directory / "images" / split / scene["image_filename"]
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (128, 128), (index, 0, 0)).save(path)
    return directory
