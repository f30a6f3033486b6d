"""`bcn serve`: the page on this machine."""

import sys
from ipaddress import ip_address
from typing import Annotated

import typer

from bcn.cli import app
from bcn.cli.device import DeviceOption
from bcn.errors import BcnError, install_extra
from bcn.inference import DEFAULT_WEIGHTS


@app.command()
def serve(
    weights: Annotated[
        list[str] | None,
        typer.Option(help="Shipped weights, a run's directory or a weights file; repeatable (default: all shipped)."),
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to listen on; 0 takes a free one.")] = 8000,
    requests: Annotated[int, typer.Option(min=1, help="Answered at once; further ones get 503.")] = 512,
    device: DeviceOption = None,
) -> None:
    """Serve the page: drag objects and watch the answers change, draw a digit and see it found."""
    from PIL import Image

    try:
        from bcn.web.app import make_app
        from bcn.web.models import warm_up
        from bcn.web.server import bind, make_server, to_url
    except ModuleNotFoundError as error:
        raise BcnError(f"`bcn serve` needs {error.name}: {install_extra('web')}") from error
    from bcn.data.images import MAX_SIDE
    from bcn.inference.reasoner import load
    from bcn.inference.shipped import list_weights
    from bcn.training.device import find_device

    index = list_weights()
    # the page shows the first model of a family: the one that `bcn ask` takes, or the largest
    names = weights or sorted(index, key=lambda name: (name != DEFAULT_WEIGHTS, -index[name]["macs"]))
    if not names:
        raise BcnError(
            "no weights are shipped with this version: train some (`bcn train table3/multirn-h --scale cpu`) "
            "and give the run's directory with --weights"
        )
    Image.MAX_IMAGE_PIXELS = MAX_SIDE**2  # for what Pillow allocates before a file's size is known to us
    chosen = find_device(device)
    with bind(host, port) as listener:
        reasoners = [load(name).to(chosen) for name in names]
        if len({reasoner.name for reasoner in reasoners}) < len(reasoners):
            raise BcnError(
                f"--weights {' '.join(names)}: two of them have the same name, so give other files or directories"
            )
        warm_up(reasoners)
        server = make_server(make_app(reasoners, host=host, max_requests=requests))
        address, port = listener.getsockname()[:2]
        if not ip_address(address).is_loopback:
            print(
                f"bcn: --host {host} lets everyone who can reach this machine use the server, without a password; "
                "leave it out to serve this machine alone",
                file=sys.stderr,
            )
        listener.listen()
        print(f"{to_url(host, port)} (Ctrl-C stops it)", flush=True)
        server.run(sockets=[listener])
