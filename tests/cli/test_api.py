"""What `import spacy_calib` offers, and that it stays light."""

import pytest

import spacy_calib
from spacy_calib.errors import CalibError
from spacy_calib.pipe.component import Calibrator


def test_fit_and_evaluate_from_python(model, gold, tmp_path, capsys):
    dev, test, train = (str(gold / f"{name}.spacy") for name in ("dev", "test", "train"))
    pipe = spacy_calib.fit(model, dev, tmp_path / "out", method="isotonic", groups=2, train_data=train)
    assert isinstance(pipe, Calibrator)
    assert pipe.fit_info.counted_on == "train.spacy"
    assert spacy_calib.evaluate(str(tmp_path / "out"), test)["calib"]["tokens"] > 100
    assert capsys.readouterr().out == ""
    with pytest.raises(CalibError, match="C051"):
        spacy_calib.evaluate(tmp_path / "out", tmp_path / "nowhere.spacy")
    with pytest.raises(TypeError, match="evaluate.. got an unexpected keyword argument 'nonsense'"):
        spacy_calib.evaluate(tmp_path / "out", test, nonsense=1)


def test_paths_may_be_strings_and_a_map_a_dict(model, dev, test_file, tmp_path):
    (tmp_path / "code.py").write_text("")
    label = "NOUN"
    given = {"gold": str(test_file), "code": str(tmp_path / "code.py"), "label_map": {label: label}, "method": "isotonic"}
    pipe = spacy_calib.fit(str(model), str(dev), str(tmp_path / "out"), **given)
    assert pipe.fit_info.docs > 120
    with pytest.raises(CalibError, match=r"\[C162\]"):
        spacy_calib.evaluate(tmp_path / "out", dev, label_map={label: 3})
    with pytest.raises(CalibError, match=r"\[C056\] Option --kind must be one of .*relibility"):
        spacy_calib.evaluate(tmp_path / "out", dev, output=str(tmp_path / "one.png"), kind="relibility")


def test_help_says_what_there_is():
    assert {"fit", "evaluate", "report", "render", "register", "DocCalib", "CalibError"} <= set(dir(spacy_calib))
    for name in ("fit", "evaluate", "report", "render", "register", "calib_score"):
        assert name in spacy_calib.__doc__
    assert all(getattr(spacy_calib, name).__doc__ for name in ("fit", "evaluate", "report"))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        spacy_calib.nothing  # noqa: B018


@pytest.mark.parametrize("name", ["fit", "fit_all", "adapt", "evaluate", "report"])
def test_functions_take_the_options_of_their_commands(name):
    """Each option is written out for editors; only what is about printing is left to the command line."""
    import inspect
    from importlib import import_module

    command_name = {"fit_all": "fit", "report": "evaluate"}.get(name, name)
    command = getattr(import_module(f"spacy_calib.cli.{command_name}_command"), command_name)
    own, theirs = (inspect.signature(call).parameters for call in (getattr(spacy_calib, name), command))
    of_one = {"fit_all": {"attr", "event", "config", "second_pass", "overrides"}, "report": {"kind", "tags"}}.get(name, set())
    assert theirs.keys() - own.keys() == {"format", "silent", "everything"} & theirs.keys() | of_one
    defaults = {name: theirs[name].default for name in own} | (
        {"component": inspect.Parameter.empty} if name == "fit_all" else {}
    )
    assert {name: parameter.default for name, parameter in own.items()} == defaults
