"""The requests and responses of the server, as its OpenAPI document describes them."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from bcn.data.vqa.question import MAX_TEXT

QuestionText = Annotated[str, Field(max_length=MAX_TEXT)]
SEEDS = 2**32
NAME = "the name of weights; /api/weights lists them"


class Request(BaseModel):
    """What a client sends: a field that is not known is refused."""

    model_config = ConfigDict(extra="forbid")


class SceneObject(Request):
    colour: Literal[
        "red", "green", "blue", "orange", "gray", "yellow", "cyan", "pink", "purple", "brown", "black", "teal"
    ] = Field(
        description="questions name the first six, no model was trained on the others; one object of each, for weights "
        "of Sort-of-CLEVR v2 any number"
    )
    shape: Literal["square", "circle"]
    x: int = Field(ge=5, le=69, description="of the centre, in pixels of the 75x75 image")
    y: int = Field(ge=5, le=69)


class SceneRequest(Request):
    objects: list[SceneObject] = Field(
        min_length=1,
        max_length=12,
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
        description="in English; all that name one of these objects if absent",
        examples=[["What is the shape of the object closest to the red one?"]],
    )
    weights: str | None = Field(None, description=NAME, examples=["sort-of-clevr/multirn-h"])
    mute: bool = Field(False, description="whether to answer with the mean of the broadcast vector, too")
    channel: int | None = Field(None, ge=0, description="a channel of the BCN whose response everywhere is wanted")


class SeedQuery(Request):
    seed: int = Field(ge=0, lt=SEEDS, description="of the scene", examples=[4])


class PictureQuery(SeedQuery):
    weights: str | None = Field(
        None,
        description=f"{NAME}, whose kind of pictures it is; by default of the first that read words",
        examples=["drawn/multirn-rounds"],
    )


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
    unknown: list[str] = Field([], description="words of the question that the model was not trained on, if any")


class CheckedAnswer(Answer):
    kind: str
    colour: str = Field(description="of the first object that it names")
    objects: list[int] = Field(description="that it names, by their places in the request, from 0")
    truth: str | None = Field(description="the true answer; null where there is no other object, or no clear answer")


class BroadcastMap(BaseModel):
    rows: list[float] = Field(description="the edges of the feature map's rows, from 0 to 1 down the image")
    columns: list[float] = Field(description="the edges of its columns, from 0 to 1 across the image")
    position: list[int] = Field(
        description="where in the feature map each channel's maximum comes from, counted row by row; -1 if it is 0"
    )
    value: list[float] = Field(description="the broadcast vector: each channel's maximum")


class ObservedBroadcast(BroadcastMap):
    seen: list[float] = Field(description="how far each position differs from one of an empty image, from 0 to 1")
    response: list[float] | None = Field(description="of the channel that was asked for, at each position")
    mean: list[float] | None = Field(description="the vector that every position gets while the broadcast is muted")


class Weights(BaseModel):
    weights: str = Field(description="the name of the weights")
    family: str
    has_bcn: bool = Field(description="whether it broadcasts before a question is known")
    model: str
    data: str
    scale: str
    parameters: int
    words: list[str] | None = Field(description="that questions may have; null where these are not in words")
    synonyms: dict[str, str] = Field(description="further words and phrases, and what they are read as")


class Detection(Weights, Candidate):
    others: list[Candidate]
    centre: tuple[float, float] | None = Field(None, description="x and y from 0 to 1, for models that localise")
    broadcast: BroadcastMap | None


class SceneResponse(BaseModel):
    weights: str
    answers: list[CheckedAnswer]
    muted: list[CheckedAnswer] | None = Field(description="the answers with the mean of the broadcast vector")
    broadcast: ObservedBroadcast | None
    milliseconds: float


class AnswerResponse(BaseModel):
    weights: str
    answers: list[Answer]
    broadcast: BroadcastMap | None
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
