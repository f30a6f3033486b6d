"""Metrics as a table on the terminal."""

from typing import Any

from bcn.errors import printable


def print_metrics(title: str, metrics: dict[str, Any]) -> None:
    """Accuracies with their 95 % intervals, and the metrics that are one number: the localisation error, for one.

    Args:
        metrics: as `bcn.training.metrics.compute_metrics` gives them.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from bcn.training.metrics import SINGLE

    table = Table(title=Text(printable(title)), title_justify="left")
    for column in ("", "accuracy", "95 % interval", "correct", "of"):
        table.add_column(column, justify="left" if not column else "right")
    # groups of questions before the kinds in them
    for name, metric in sorted(metrics.items(), key=lambda item: -item[1]["total"] if isinstance(item[1], dict) else 1):
        if isinstance(metric, dict):
            accuracy, interval = "-", "-"
            if metric["total"]:
                low, high = metric["interval"]
                accuracy, interval = f"{100 * metric['accuracy']:.2f} %", f"{100 * low:.2f} .. {100 * high:.2f}"
            table.add_row(Text(printable(name)), accuracy, interval, f"{metric['correct']:,}", f"{metric['total']:,}")
        else:
            table.add_row(Text(printable(SINGLE.get(name, name))), f"{metric:.4f}", "", "", "")
    Console().print(table)


def print_broadcast(probe: dict[str, Any]) -> None:
    """What the BCN is worth: its active channels, and the accuracy without what it says of an image.

    Args:
        probe: as `bcn.training.broadcast_probe.ablate` gives it.
    """
    from rich.console import Console
    from rich.table import Column, Table
    from rich.text import Text

    share = f", {100 * probe['vector_share']:.1f} % of the next layer's variance" if "vector_share" in probe else ""
    title = f"broadcast vector: {probe['active_channels']} of {probe['channels']} channels active{share}"
    names = (Text(printable(name)) for name in probe["as_trained"])
    table = Table("", *map(Column, names), title=title, title_justify="left")
    for change in ("as_trained", "mean_vector", "shuffled_vector"):
        accuracies = (f"{100 * accuracy:.2f} %" for accuracy in probe[change].values())
        table.add_row(change.replace("_", " "), *accuracies)
    Console().print(table)
