"""Trained models on the Hugging Face hub: `save_pretrained`, `from_pretrained` and `push_to_hub`.

A folder has `model.safetensors`, a weights file as `bcn train` writes it, with everything that asking it takes;
`config.json` with the same description and the evidence; and `README.md`, a model card with the record's metrics.
"""

from pathlib import Path
from typing import Any, Self

from torch import Tensor, nn

from bcn.errors import BcnError, install_extra
from bcn.inference.reasoner import Reasoner
from bcn.inference.release import card, evidence
from bcn.inference.shipped import list_weights, locate_weights
from bcn.training.description import check_description
from bcn.training.metrics import SINGLE
from bcn.training.run import NOT_A_RECORD, check_counts, find_run
from bcn.training.weights import SAVED, build_on_meta, find_weights, load_model, write_weights

try:
    from huggingface_hub import EvalResult, ModelCard, ModelCardData, PyTorchModelHubMixin
except ImportError as error:
    raise BcnError(f"the hub needs huggingface_hub: {install_extra('hub')}") from error


class PretrainedModel(
    nn.Module,
    PyTorchModelHubMixin,
    library_name="bcn",
    license="mit",
    paper_url="https://arxiv.org/abs/1712.02517",
    tags=["broadcasting-convolutional-network", "visual-reasoning"],
):
    """A trained model with its description, as `save_pretrained` writes it and `from_pretrained` reads it.

    >>> import tempfile
    >>> model = PretrainedModel.of("sort-of-clevr/multirn-h")
    >>> folder = tempfile.mkdtemp()
    >>> model.save_pretrained(folder)  # or model.push_to_hub("you/multirn-h")
    >>> reasoner = PretrainedModel.from_pretrained(folder).reasoner()  # or from_pretrained("you/multirn-h")
    Loading weights from local directory

    Args:
        description: what a weights file says of itself: how to build the model, prepare images and name answers.
        evidence: "metrics" of the record, the "split" that they are of and the text of the "card", if there are any.
    """

    def __init__(self, description: dict[str, Any], evidence: dict[str, Any] | None = None) -> None:
        super().__init__()
        self.description, self.evidence = check_description(CONFIG, description), _check_evidence(evidence)
        self.model = build_on_meta(CONFIG, self.description)
        """without storage until weights are read, which have to have its shapes"""

    @classmethod
    def of(cls, weights: str | Path) -> "PretrainedModel":
        """The model of shipped weights, by name, of a weights file or of a run's directory."""
        name, path = locate_weights(weights)
        trained, description = load_model(path)
        proof = None
        if name in (index := list_weights()):
            proof = {"metrics": index[name]["metrics"], "card": path.with_suffix(".md").read_text(encoding="utf-8")}
        elif path.is_dir() and (record := (run := find_run(path)).record()) is not None:
            entry, recipe = evidence(find_weights(path), record), run.recipe
            text = card(f"{recipe.name}: {recipe.model}", entry, recipe, run)
            proof = {"metrics": entry["metrics"], "card": text, "split": entry.get("split", "test")}
        model = cls(description, proof)
        model.model = trained
        return model

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path: str | Path, **kwargs: Any) -> Self:
        """The model of a folder or of a repository; what the hub's library takes besides, it takes."""
        try:
            return super().from_pretrained(pretrained_model_name_or_path, **kwargs)
        except (ValueError, TypeError, AttributeError, RecursionError) as error:  # a name or a config.json of no form
            raise BcnError(
                f"{pretrained_model_name_or_path} cannot be read as a model ({error}): give a repository's name, "
                "or a folder that save_pretrained wrote"
            ) from error

    def reasoner(self) -> Reasoner:
        """What `bcn.load` gives: it takes images and questions, and gives answers in words."""
        return Reasoner(self.description["recipe"], self.model, self.description)

    def forward(self, image_BCHW: Tensor, question: Tensor | None = None) -> Tensor | tuple[Tensor, Tensor]:
        """The model's own forward pass, on preprocessed images."""
        output: Tensor = self.model(image_BCHW) if question is None else self.model(image_BCHW, question)
        return output

    def _save_pretrained(self, save_directory: Path) -> None:
        write_weights(save_directory / SAVED, self.model.state_dict(), self.description)

    @classmethod
    def _load_as_safetensor(cls, model: Any, model_file: str, map_location: str, strict: bool) -> Any:
        """With every check of our own reader: of the checksum, of shapes and of values."""
        trained, description = load_model(Path(model_file))
        if description != model.description:
            raise BcnError(f"{model_file} is not the weights that config.json describes; use another copy of both")
        model.model = trained
        return model.to(map_location).eval()

    @classmethod
    def _load_as_pickle(cls, model: Any, model_file: str, map_location: str, strict: bool) -> Any:
        raise BcnError(f"{model_file} is a pickle, which can run anything: give a repository with model.safetensors")

    def generate_model_card(self, *args: Any, **kwargs: Any) -> ModelCard:
        """Metadata as the hub reads them, metrics included, and the text of our own card."""
        data = ModelCardData(
            library_name="bcn",
            license="mit",
            tags=[*(self._hub_mixin_info.model_card_data.tags or [])],
            pipeline_tag=self._task(),
            datasets=[self.description["data"]],
            model_name=self.description["model"],
            eval_results=self._results() or None,
        )
        text = f"# {self.description['model']}\n" if self.evidence is None else self.evidence["card"]
        return ModelCard(f"---\n{data.to_yaml()}\n---\n\n{text}{USAGE}")

    def _results(self) -> list[EvalResult]:
        data, metrics = self.description["data"], self.evidence["metrics"] if self.evidence else {}
        return [
            EvalResult(
                task_type=self._task(),
                dataset_type=data,
                dataset_name=data,
                dataset_split=self.evidence["split"] if self.evidence else "test",
                metric_type="accuracy" if isinstance(metric, dict) else name,
                metric_name=f"accuracy, {name.replace('_', '-')}" if isinstance(metric, dict) else SINGLE[name],
                metric_value=metric["accuracy"] if isinstance(metric, dict) else metric,
            )
            for name, metric in metrics.items()
        ]

    def _task(self) -> str:
        asked = self.description["kinds"] or "words" in self.description
        return "visual-question-answering" if asked else "image-classification"


def _check_evidence(evidence: Any) -> dict[str, Any] | None:
    """Metrics whose accuracy is what was counted, and a card; None where there is neither."""
    if evidence is None:
        return None
    try:
        check_counts({"test": evidence["metrics"]})
        if (split := evidence.get("split", "test")) not in ("test", "val"):
            raise ValueError(split)
        return {"metrics": evidence["metrics"], "card": evidence["card"] + "", "split": split}
    except NOT_A_RECORD as error:
        raise BcnError(f"{CONFIG}: its evidence is not that of a run; use another copy of it") from error


CONFIG = Path("config.json")
USAGE = """
```python
from bcn.inference.hub import PretrainedModel

reasoner = PretrainedModel.from_pretrained("USER/NAME").reasoner()  # pip install 'bcn-torch[hub]'
```
"""
