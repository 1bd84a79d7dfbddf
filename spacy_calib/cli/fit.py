"""`spacy calib fit`: learn calibrated probabilities from held-out gold and write the pipeline with them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..errors import calib_error
from ._common import (
    check_option,
    data_files,
    import_user_code,
    load_pipeline,
    number,
    read_examples,
    reason,
    run_pipes,
    use_gpu,
    user_errors,
)

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.training import Example

    from ..component import Calibrator

# Short names of --method; a name of the registry calib_recalibrators works too.
METHODS = {
    "isotonic": "spacy-calib.Isotonic.v1",
    "histogram": "spacy-calib.Histogram.v1",
    "scaling-binning": "spacy-calib.ScalingBinning.v1",
    "identity": "spacy-calib.Identity.v1",
}
_BINNED = ("spacy-calib.Histogram.v1", "spacy-calib.ScalingBinning.v1")
_DEFAULTS: dict[str, Any] = {"component": "tagger", "groups": 5, "method": "isotonic", "bins": 10, "threshold": 0.01}


def fit_cli(
    # fmt: off
    model: str = typer.Argument(..., help="Pipeline to calibrate: package name or path"),
    data: Path = typer.Argument(..., help="Held-out gold: a .spacy file or a folder of them"),
    output: Path = typer.Argument(..., help="Folder to write the calibrated pipeline to"),
    component: str = typer.Option(None, "--component", "-C", help="Component to calibrate", show_default="tagger"),
    train_data: Path = typer.Option(None, "--train-data", "-t", help="Training gold, for tag frequencies; else those of DATA"),
    groups: int = typer.Option(None, "--groups", "-G", help="Tag frequency groups; 1 pools all tags", show_default="5"),
    method: str = typer.Option(
        None,
        "--method",
        "-m",
        help="isotonic, histogram, scaling-binning, identity, or a registered name",
        show_default="isotonic",
    ),
    config: Path = typer.Option(
        None, "--config", "-c", help="Config with a [components.calib] block, instead of the options above and below"
    ),
    bins: int = typer.Option(None, "--bins", "-b", help="Adaptive bins, for binning methods and metrics", show_default="10"),
    threshold: float = typer.Option(None, "--threshold", help="Scores below it take no part", show_default="0.01"),
    attr: str = typer.Option(None, "--attr", help="Name of the pipe and prefix of its attributes", show_default="calib"),
    gold_preproc: bool = typer.Option(False, "--gold-preproc", help="Use gold sentences and tokens"),
    gpu_id: int = typer.Option(-1, "--gpu-id", "-g", help="GPU ID or -1 for CPU"),
    code: Path = typer.Option(None, "--code", help="Python file with registered functions"),
    force: bool = typer.Option(False, "--force", "-F", help="Replace a pipeline at OUTPUT"),
    silent: bool = typer.Option(False, "--silent", help="Print nothing but errors"),
    # fmt: on
) -> None:
    """
    Learn calibrated probabilities for a component of a trained pipeline from
    held-out gold, and write the whole pipeline with them to OUTPUT. Use data
    that the pipeline was not trained on.
    """
    with user_errors():
        given = {"component": component, "groups": groups, "method": method, "bins": bins, "threshold": threshold, "attr": attr}
        fit(
            model, data, output, train_data=train_data, config=config, gold_preproc=gold_preproc, gpu_id=gpu_id, code=code,
            force=force, silent=silent, **{key: value for key, value in given.items() if value is not None},
        )  # fmt: skip


def fit(
    model: str,
    data: Path,
    output: Path,
    *,
    train_data: Path | None = None,
    config: Path | None = None,
    gold_preproc: bool = False,
    gpu_id: int = -1,
    code: Path | None = None,
    force: bool = False,
    silent: bool = True,
    **options: Any,
) -> Calibrator:
    """What the command does. options: component, groups, method, bins, threshold, attr, as on the command line.

    RETURNS (Calibrator): The fitted pipe.
    RAISES CalibError: every fault of the input.
    """
    from ..atomic import check_target, write_folder

    import_user_code(code)
    name, settings = pipe_settings(config, options)
    for path in filter(None, (data, train_data)):
        data_files(path)
    check_target(output, force)
    use_gpu(gpu_id)
    nlp = load_pipeline(model)
    calib = add_calib(nlp, name, settings)
    examples = read_examples(nlp, data, gold_preproc)
    counts = None if train_data is None else count_tags(nlp, calib, train_data)
    fit_pipe(nlp, calib, examples, counts, counted_on=str(train_data and train_data.name), silent=silent)
    write_folder(output, lambda folder: nlp.to_disk(folder), force)
    if not silent:
        show_fit(calib, output)
    return calib


def pipe_settings(config: Path | None, options: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """(name of the pipe, its config) from the command's options or a config file.

    RAISES C056: an option out of range. C057: an option beside a config. C058: the config cannot be read.
    """
    if config is not None:
        for option in ("groups", "method", "bins", "threshold"):
            if option in options:
                raise calib_error("C057", option=f"--{option}")
        return settings_from_file(config, options)
    chosen = {**_DEFAULTS, **options}
    check_option("--component", bool(chosen["component"]), "the name of a component", "an empty string")
    check_option("--groups", chosen["groups"] >= 1, "at least 1", chosen["groups"])
    check_option("--bins", chosen["bins"] >= 1, "at least 1", chosen["bins"])
    check_option("--threshold", 0 <= chosen["threshold"] < 1, "at least 0 and below 1", chosen["threshold"])
    name = chosen.get("attr", "calib")
    settings = {
        "attr": name,
        "threshold": chosen["threshold"],
        "source": {"@calib_sources": "spacy-calib.Softmax.v1", "component": chosen["component"]},
        "grouping": {"@calib_groupings": "spacy-calib.TFG.v1", "n_groups": chosen["groups"]},
        "recalibrator": recalibrator_settings(chosen["method"], chosen["bins"]),
        "scorer": {"@scorers": "spacy-calib.Scorer.v1", "n_bins": chosen["bins"]},
    }
    return name, settings


def recalibrator_settings(method: str, bins: int) -> dict[str, Any]:
    """RAISES C056: no such method."""
    from ..registry import registry

    registered = METHODS.get(method, method)
    known = registered in registry.calib_recalibrators
    check_option("--method", known, f"one of {', '.join(METHODS)} or a registered recalibrator", repr(method))
    return {"@calib_recalibrators": registered, **({"n_bins": bins} if registered in _BINNED else {})}


def settings_from_file(path: Path, options: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The first block of factory "calib" in a config file; --component and --attr replace what it says.

    RAISES C058: no such file, no config, or no such block.
    """
    from thinc.api import Config

    try:
        components = Config().from_disk(path).interpolate().get("components", {})
    except Exception as error:
        raise calib_error("C058", path=path, why=reason(error)) from None
    components = components if isinstance(components, dict) else {}
    blocks = {name: block for name, block in components.items() if isinstance(block, dict) and block.get("factory") == "calib"}
    if not blocks:
        raise calib_error("C058", path=path, why='it has no [components.calib] block with factory = "calib"')
    name, block = next(iter(blocks.items()))
    settings = {key: value for key, value in block.items() if key != "factory"}
    if "component" in options:
        source = settings.setdefault("source", {"@calib_sources": "spacy-calib.Softmax.v1"})
        if isinstance(source, dict):  # add_calib refuses another one
            source["component"] = options["component"]
    if "attr" in options:
        name = settings["attr"] = options["attr"]
    return name, settings


def add_calib(nlp: Language, name: str, settings: dict[str, Any]) -> Calibrator:
    """Put a new calib pipe directly after the component that it reads; an older one for the same component makes way.

    RAISES C021: the component is missing. C063: settings that do not fit. C059: the name belongs to another component's pipe.
    """
    from ..component import Calibrator
    from ..errors import CalibError

    source = settings.get("source", {})
    if not isinstance(source, dict):
        raise calib_error("C063", why=f"source is {source!r}, but a block with @calib_sources is wanted")
    component = source.get("component", "")
    if component and component not in nlp.component_names:
        raise calib_error("C021", component=component, available=", ".join(nlp.component_names) or "no components")
    if name in nlp.component_names:
        older = nlp.get_pipe(name)
        if not isinstance(older, Calibrator) or older.source.component != component:
            owner = f"it calibrates '{older.source.component}'" if isinstance(older, Calibrator) else "it is no calib pipe"
            raise calib_error("C059", name=name, owner=owner)
        nlp.remove_pipe(name)
    try:
        place = {"after": component} if component else {"last": True}
        return nlp.add_pipe("calib", name=name, config=settings, **place)  # type: ignore[return-value]
    except CalibError:
        raise
    except Exception as error:
        raise calib_error("C063", why=reason(error)) from None


def count_tags(nlp: Language, calib: Calibrator, path: Path) -> dict[str, int]:
    """Gold tag frequencies of training data.

    RAISES C030: it has no gold for the component.
    """
    pipe = calib.source_pipe()
    references = (example.reference for example in read_examples(nlp, path, gold_preproc=False))
    counts = calib.source.count(pipe, references)
    if not counts:
        raise calib_error("C030", layer=calib.source.layer(pipe).name, component=calib.source.component)
    return dict(counts)


def fit_pipe(
    nlp: Language,
    calib: Calibrator,
    examples: list[Example],
    counts: dict[str, int] | None,
    *,
    counted_on: str = "",
    silent: bool = True,
) -> None:
    """Run what stands before the source, and fit. The source's own component need not run: its head is read."""
    order = nlp.pipe_names
    stop = calib.source.component if calib.source.component in order else calib.name
    upstream = order[: order.index(stop)]
    ready = run_pipes(nlp, examples, upstream, silent=silent, what="Reading scores")
    n_bins = getattr(calib.scorer, "n_bins", 10)
    calib.fit(ready, counts, min_pairs=n_bins, counted_on=counted_on, n_bins=n_bins)


def show_fit(calib: Calibrator, output: Path) -> None:
    """Print what was fitted, and the errors on the fit data."""
    from wasabi import msg

    info = calib.fit_info
    msg.good(f"Calibrated {info['component'] or 'the source'} on {info['tokens']:,} tokens ({info['pairs']:,} pairs): {output}")
    why = " (no --train-data was given)" if info["counted_on"] == "the fit data" else ""
    msg.info(f"Tag frequencies were counted on {info['counted_on']}{why}")
    if info["unknown_gold"]:
        msg.warn(
            f"{info['unknown_gold']:,} tokens have a gold tag that the model does not know; all their pairs count as misses"
        )
    print_fit_table(info["table"])


def print_fit_table(table: list[dict[str, Any]]) -> None:
    """The rows of `summarize_fit`."""
    from wasabi import msg

    rows = [
        (
            row["group"],
            f"{row['tags']:,}",
            number(None if row["share"] is None else 100 * row["share"], 1),
            f"{row['pairs']:,}",
            number(row["raw"]),
            number(row["calibrated"]),
            row["fallback"] or "own",
        )
        for row in table
    ]
    msg.divider("SMCE (all) and GMCE (groups) on the FIT data: too good to be true")
    header = ("Group", "Tags", "% gold", "Pairs", "Raw", "Calibrated", "Map")
    msg.table(rows, header=header, divider=True, aligns=("l", "r", "r", "r", "r", "r", "l"))
