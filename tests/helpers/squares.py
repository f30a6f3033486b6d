"""Pictures of colored squares with questions about them, as CLEVR's files hold them and as anyone's own."""

import json
from pathlib import Path

import numpy as np
from PIL import Image

COLOURS = {"red": (200, 30, 30), "green": (30, 180, 30), "blue": (30, 30, 200)}
PROGRAMS = {
    "count": [{"function": "scene", "inputs": []}, {"function": "count", "inputs": [0]}],
    "query_color": [{"function": "scene", "inputs": []}, {"function": "query_color", "inputs": [0]}],
}


def draw(path: Path, colour: str, squares: int, number: int) -> None:
    """Squares of one colour on grey, and a dot by which no two pictures are the same."""
    pixels = np.full((64, 96, 3), 120, np.uint8)
    pixels[-1, number] = 0
    for square in range(squares):
        pixels[10 + 25 * (square // 3) : 25 + 25 * (square // 3), 8 + 30 * (square % 3) : 24 + 30 * (square % 3)] = (
            COLOURS[colour]
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path)


def clevr_layout(directory: Path, images: dict[str, int]) -> Path:
    """A directory as CLEVR's, with an image here and there that has fewer questions."""
    for split, count in images.items():
        questions: list[dict[str, object]] = []
        for index in range(count):
            colour, squares = list(COLOURS)[index % 3], 1 + index % 4
            name = f"CLEVR_{split}_{index:06d}.png"
            draw(directory / "images" / split / name, colour, squares, index)
            asked = [
                ("How many things are there?", str(squares), "count"),
                ("What color is it?", colour, "query_color"),
            ]
            for question, answer, kind in asked[: 1 if index % 5 == 4 else 2]:
                entry = {"image_filename": name, "image_index": index, "question": question, "answer": answer}
                questions.append({**entry, "program": PROGRAMS[kind], "question_index": len(questions)})
        path = directory / "questions" / f"CLEVR_{split}_questions.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        version = directory.name.removesuffix("-224") if directory.name.startswith("clevr-like") else "1.0"
        path.write_text(json.dumps({"info": {"version": version}, "questions": questions}))
    return directory


def own_layout(directory: Path, images: int = 30, *, kinds: bool = False) -> Path:
    lines = []
    for index in range(images):
        colour, squares = list(COLOURS)[index % 3], 1 + (index // 3) % 3
        draw(directory / "pictures" / f"{index}.png", colour, squares, index)
        asked = {"What colour are the squares?": colour, "How many squares are there?": str(squares)}
        for number, (question, answer) in enumerate(asked.items()):
            line = {"image": f"pictures/{index}.png", "question": question, "answer": answer}
            lines.append(line | ({"kind": ("colour", "number")[number]} if kinds else {}))
    (directory / "questions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return directory
