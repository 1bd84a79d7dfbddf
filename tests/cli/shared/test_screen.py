import shlex

from spacy_calib.cli.shared.screen import TableColumn, print_facts, shell_line, show_rows
from tests.docstrings import run_examples


def test_facts_are_at_most_100_columns_wide_and_those_without_a_value_are_left_out(capsys):
    print_facts({"Name": "word " * 40, "Scaling": "", "Sets": None, "Threshold": 0})
    lines = capsys.readouterr().out.split("\n")[1:-2]
    assert max(map(len, lines)) <= 100
    assert [line[:12].strip() for line in lines] == ["Name", "", "", "Threshold"]
    assert " ".join(lines).split() == ["Name", *["word"] * 40, "Threshold", "0"]


def test_a_long_cell_continues_on_the_next_line_beside_empty_cells(capsys):
    columns = (TableColumn("Label", "label", align="l", width=9), TableColumn("Number", "n"))
    show_rows([{"label": "Case=Nom|Gender=Masc", "n": 12}, {"label": "NN", "n": 3}], columns)
    assert [line.split() for line in capsys.readouterr().out.splitlines()[3:-1]] == [
        ["Case=Nom|", "12"], ["Gender=Ma"], ["sc"], ["NN", "3"],
    ]  # fmt: skip


def test_columns_with_details_are_printed_on_request(capsys):
    columns = (TableColumn("Raw", "raw"), TableColumn("Floor 95 %", "floor95", is_detail=True))
    for details in (True, False):
        show_rows([{"raw": 1, "floor95": 2}], columns, details)
        assert ("Floor 95 %" in capsys.readouterr().out) == details


def test_the_example_of_a_command():
    run_examples(shell_line)


def test_a_shell_reads_the_same_words():
    line = shell_line("fit", "it's here", "a;b", options={"--map": "A B=C", "--force": True, "--code": None, "--doc-key": ""})
    assert shlex.split(line) == ["python", "-m", "spacy", "calib", "fit", "it's here", "a;b", "--map", "A B=C", "--force"]
