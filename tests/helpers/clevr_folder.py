"""A small folder in the layout of CLEVR."""

import json
from pathlib import Path

from PIL import Image

from bcn.data.clevr_like.questions import make_questions
from bcn.data.clevr_like.scene import make_scene


def picture(path: Path, shade: int, size: tuple[int, int] = (48, 32)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, (shade, 255 - shade, 7)).save(path)


def clevr_folder(folder: Path) -> Path:
    """The structure of CLEVR v1.0 with CoGenT's splits beside: 4 + 2 images, one with fewer questions than others."""
    root = folder / "CLEVR_v1.0"
    for split, images in (("train", 4), ("val", 2), ("test", 1), ("valB", 1)):
        questions = []
        for index in range(images):
            scene = make_scene(index, split=split)
            asked = make_questions(scene)[: 3 if index == 1 else 10]
            questions += [
                {k: v for k, v in q.items() if split != "test" or k not in ("answer", "program")} for q in asked
            ]
            picture(root / "images" / split / scene["image_filename"], 40 * index + len(split))
        path = root / "questions" / f"CLEVR_{split}_questions.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"info": {"split": split, "version": "1.0"}, "questions": questions}))
    return root
