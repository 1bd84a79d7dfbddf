"""What people answer to a queue becomes gold Docs."""

from __future__ import annotations

import pytest
from spacy.strings import get_string_id
from spacy.tokens import DocBin
from spacy.vocab import Vocab

from spacy_calib.annotations import get_annotation
from spacy_calib.annotations.span_events import span_hits
from spacy_calib.gold.answered_docs import answered_docs
from spacy_calib.gold.tool_exports import TextSpan
from tests.answers import EXPORTS, parts_of
from tests.gold.test_answered_docs import predicted
from tests.plugins.links_made import linking
from tests.plugins.review.queue.test_answers_of_queues import answers_to, many_tasks


@pytest.mark.parametrize("tool", EXPORTS)
def test_no_link_is_lost_on_the_way(tool, tmp_path):
    names = ["Georgia-place", "Amazon-firm", "NIL", "New Rome (band)"]
    tasks = list(many_tasks("entity", names))
    right = {task.text: number % 3 > 0 for number, task in enumerate(tasks)}
    file = answers_to(tool, tasks, lambda record: right[parts_of(record)[0]], tmp_path)
    held = DocBin(docs=answered_docs(linking(), file), store_user_data=True).to_bytes()
    docs = list(DocBin().from_bytes(held).get_docs(Vocab()))
    link = get_annotation("link")
    assert len(docs) == len(tasks) == 1000
    for task, gold in zip(tasks, docs, strict=True):
        (asked,) = task.spans
        (entity,) = predicted(gold, TextSpan(asked.start, asked.end, "NAME")).predicted.ents[:1]
        found = predicted(gold, TextSpan(asked.start, asked.end, "NAME"))
        spans = [(entity.start, entity.end, get_string_id(asked.label))]
        assert span_hits(found, link, spans, "link").tolist() == [int(right[task.text])]
        assert [one.kb_id_ for one in gold.ents] == ([asked.label] if right[task.text] else [])
