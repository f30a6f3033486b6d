"""What the server takes and gives, as its OpenAPI document describes it."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

Sentence = Annotated[str, Field(max_length=1000)]


class Object(BaseModel):
    colour: Literal["red", "green", "blue", "orange", "gray", "yellow"]
    shape: Literal["square", "circle"]
    x: int = Field(ge=5, le=69, description="of the centre, in pixels of the 75x75 image")
    y: int = Field(ge=5, le=69)


class Scene(BaseModel):
    objects: list[Object] = Field(min_length=2, max_length=6)
    questions: list[Sentence] | None = Field(None, max_length=100, description="in English; all questions if absent")
    weights: str | None = None


class Share(BaseModel):
    answer: str
    probability: float


class Asked(Share):
    question: str = Field(description="as it was understood")
    others: list[Share]


class Judged(Asked):
    kind: str
    colour: str
    truth: str


class Map(BaseModel):
    rows: int
    columns: int
    position: list[int] = Field(description="whence each channel came, counted row by row; -1 for one that is silent")


class Weights(BaseModel):
    weights: str
    family: str
    broadcasts: bool
    model: str
    data: str
    scale: str


class Found(Weights, Share):
    others: list[Share]
    centre: tuple[float, float] | None = Field(description="x and y as shares of the image's sides")
    broadcast: Map | None


class Reasoned(BaseModel):
    weights: str
    answers: list[Judged]
    broadcast: Map | None
    milliseconds: float


class AskedAll(BaseModel):
    weights: str
    answers: list[Asked]
    milliseconds: float


class FoundAll(BaseModel):
    found: list[Found]
    milliseconds: float


class RandomScene(BaseModel):
    objects: list[Object]


class Known(BaseModel):
    question: str
    answer: str


class Rendered(BaseModel):
    image: str = Field(description="a PNG file in base64")
    questions: list[Known] = Field(description="with their true answers")


class Problem(BaseModel):
    error: str = Field(description="one sentence: what was given, what is accepted, what to do")
