"""Show a pipeline's probabilities for any text in the browser."""

from __future__ import annotations

import contextlib
import sys
from typing import Annotated, Any

from ...cli.shared.choose_pipe import choose_pipes
from ...cli.shared.command import command, option
from ...cli.shared.options import CalibratedModel, Code, GpuId, OnlyComponent, Silent
from ...cli.shared.screen import msg
from ...cli.shared.writing import print_result
from ...pipe.pipeline import open_model
from .messages import calib_error


@command(example="./calibrated")
def view(
    model: CalibratedModel,
    *,
    component: OnlyComponent = None,
    port: Annotated[int | None, option("Port of the page on 127.0.0.1", show_default="a free one")] = None,
    gpu_id: GpuId = -1,
    code: Code = None,
    silent: Silent = True,
) -> dict[str, Any]:
    """
    Show in the browser the probabilities of a calibrated pipeline for any text that you type. Each label has its calibrated and
    its raw probability, the more doubtful, the stronger its colour, and the page warns if the component was trained after the
    fit. Only this machine (127.0.0.1) can open the page. No text is kept. Ctrl-C ends it.

    RETURNS (dict): "address": address of the page.
    RAISES C060: there is no such GPU. C736: the port cannot be opened. CalibError: any other bad input.
    """
    from .view_server import Server, Viewer

    nlp = open_model(model, code=code, gpu_id=gpu_id)
    viewer = Viewer(nlp, gpu_id, choose_pipes(nlp, component, allow_many=True))
    try:
        server = Server(viewer, port or 0)
    except OSError as error:
        raise calib_error("C736", port=port or "that is free", why=error.strerror or error) from None
    result = {"address": server.address}
    summary = f"Open {server.address} in a browser; Ctrl-C ends it."
    with server, contextlib.suppress(KeyboardInterrupt):
        print_result(result, lambda: msg.good(summary), "table", silent)
        with contextlib.suppress(OSError):  # a full disk does not end the server
            sys.stdout.flush()
        server.serve_forever()
    if not silent:
        msg.text("Ended; no text was kept.")
    return result
