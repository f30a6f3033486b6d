"""Train a model of bcn in Lightning: `python examples/lightning_scenes.py` (pip install lightning)."""

import lightning
import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader

import bcn
from bcn.data.registry import open_dataset


class Scenes(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.model = bcn.create_model("sort-of-clevr/multirn-h", final_relu=False)

    def training_step(self, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        logits = self.model(batch["image"] / 255, batch["question"])  # (B, Q, answers)
        loss = cross_entropy(logits.flatten(0, 1), batch["answer"].flatten())
        self.log("loss", loss, prog_bar=True)
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), lr=1e-3)


def main(images: int | None = None, **trainer: object) -> Scenes:
    loader = DataLoader(open_dataset("sort-of-clevr-v1", "train", images=images), batch_size=32, shuffle=True)
    lightning.Trainer(max_epochs=10, **trainer).fit(scenes := Scenes(), loader)  # type: ignore[arg-type]
    return scenes


if __name__ == "__main__":
    main()
