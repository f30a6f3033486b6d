"""Train a model of bcn with Accelerate: `accelerate launch examples/accelerate_scenes.py` (pip install accelerate)."""

from accelerate import Accelerator
from torch.nn.functional import cross_entropy
from torch.optim import Adam
from torch.utils.data import DataLoader

import bcn
from bcn.data.registry import open_dataset


def main(images: int | None = None, epochs: int = 10) -> list[float]:
    accelerator, losses = Accelerator(), []
    model = bcn.create_model("sort-of-clevr/multirn-h", final_relu=False)
    loader = DataLoader(open_dataset("sort-of-clevr-v1", "train", images=images), batch_size=32, shuffle=True)
    model, optimiser, loader = accelerator.prepare(model, Adam(model.parameters(), lr=1e-3), loader)
    for _ in range(epochs):
        for batch in loader:
            logits = model(batch["image"] / 255, batch["question"])  # (B, Q, answers)
            loss = cross_entropy(logits.flatten(0, 1), batch["answer"].flatten())
            accelerator.backward(loss)
            optimiser.step()
            optimiser.zero_grad()
            losses.append(loss.item())
        accelerator.print(f"loss {losses[-1]:.3f}")
    return losses


if __name__ == "__main__":
    main()
