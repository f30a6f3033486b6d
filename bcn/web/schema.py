"""The requests and responses of the server, as its OpenAPI document describes them."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

QuestionText = Annotated[str, Field(max_length=1000)]
SEEDS = 2**32
NAME = "the name of weights; /api/weights lists them"


class Request(BaseModel):
    """What a client sends: a field that is not known is refused."""

    model_config = ConfigDict(extra="forbid")


class SceneObject(Request):
    colour: Literal["red", "green", "blue", "orange", "gray", "yellow"]
    shape: Literal["square", "circle"]
    x: int = Field(ge=5, le=69, description="of the centre, in pixels of the 75x75 image")
    y: int = Field(ge=5, le=69)


class SceneRequest(Request):
    objects: list[SceneObject] = Field(
        min_length=2,
        max_length=6,
        examples=[
            [
                {"colour": "red", "shape": "square", "x": 10, "y": 10},
                {"colour": "green", "shape": "circle", "x": 60, "y": 40},
            ]
        ],
    )
    questions: list[QuestionText] | None = Field(
        None,
        max_length=100,
        description="in English; all questions about these objects if absent",
        examples=[["What is the shape of the object closest to the red one?"]],
    )
    weights: str | None = Field(None, description=NAME, examples=["sort-of-clevr/multirn-h"])


class SeedQuery(Request):
    seed: int = Field(ge=0, lt=SEEDS, description="of the scene", examples=[4])


class AskQuery(Request):
    question: list[QuestionText] = Field(max_length=100, description="in English", examples=[["is red left"]])
    weights: str | None = Field(
        None, description=f"{NAME}; by default those of `bcn ask`", examples=["sort-of-clevr/multirn-h"]
    )


class FindQuery(Request):
    weights: str | None = Field(None, description=NAME, examples=["scaled-mnist/bcn"])


class Candidate(BaseModel):
    answer: str
    probability: float


class Answer(Candidate):
    question: str = Field(description="as the model understood it")
    others: list[Candidate] = Field(description="the runners-up, the most probable first")


class CheckedAnswer(Answer):
    kind: str
    colour: str
    truth: str = Field(description="the true answer")


class BroadcastMap(BaseModel):
    rows: int
    columns: int
    position: list[int] = Field(
        description="where in the feature map each channel's maximum comes from, counted row by row; -1 if it is 0"
    )


class Weights(BaseModel):
    weights: str = Field(description="the name of the weights")
    family: str
    has_bcn: bool
    model: str
    data: str
    scale: str


class Detection(Weights, Candidate):
    others: list[Candidate]
    centre: tuple[float, float] | None = Field(None, description="x and y from 0 to 1, for models that localise")
    broadcast: BroadcastMap | None


class SceneResponse(BaseModel):
    weights: str
    answers: list[CheckedAnswer]
    broadcast: BroadcastMap | None
    milliseconds: float


class AnswerResponse(BaseModel):
    weights: str
    answers: list[Answer]
    milliseconds: float


class DetectionResponse(BaseModel):
    detections: list[Detection]
    milliseconds: float


class RandomScene(BaseModel):
    objects: list[SceneObject]


class QuestionAnswer(BaseModel):
    question: str
    answer: str


class RenderedScene(BaseModel):
    image: str = Field(description="a PNG file in base64")
    questions: list[QuestionAnswer] = Field(description="with their true answers")


class Health(BaseModel):
    status: Literal["ok"]


class ErrorResponse(BaseModel):
    error: str = Field(
        description="one sentence: what was given, what is accepted, what to do",
        examples=["weights: there is no such field; /docs lists them"],
    )
