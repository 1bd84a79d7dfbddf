"""Models of the transformers library, small enough to be made by a test: one layer, the words of the test as vocabulary, trained for a moment."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

Texts = Sequence[Sequence[str]]


def save_token_model(folder: Path, texts: Texts, tags: Texts) -> None:
    """One that gives each word a tag ("O", "B-ANIMAL"), as `hf_token_pipe` wants it."""
    labels = sorted({tag for row in tags for tag in row})
    _save(folder, texts, labels, "BertForTokenClassification", [[labels.index(tag) for tag in row] for row in tags])


def save_text_model(folder: Path, texts: Texts, categories: Sequence[str]) -> None:
    """One that gives each text a category, as `hf_text_pipe` wants it."""
    labels = sorted(set(categories))
    _save(folder, texts, labels, "BertForSequenceClassification", [labels.index(one) for one in categories])


def _save(folder: Path, texts: Texts, labels: Sequence[str], kind: str, gold: Sequence[Any]) -> None:
    import torch
    import transformers

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *sorted({word.lower() for text in texts for word in text})]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(words))
    tokenizer = transformers.BertTokenizerFast(str(folder / "vocab.txt"), do_lower_case=True, model_max_length=64)
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(words), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=64, id2label=dict(enumerate(labels)), label2id={label: i for i, label in enumerate(labels)},
    )  # fmt: skip
    model = getattr(transformers, kind)(config)
    inputs = tokenizer([list(text) for text in texts], is_split_into_words=True, padding=True, return_tensors="pt")
    if kind == "BertForTokenClassification":
        width = inputs["input_ids"].shape[1]
        wanted = torch.tensor([[-100, *row, *[-100] * (width - 1 - len(row))] for row in gold])
    else:
        wanted = torch.tensor(gold)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(25):
        optimizer.zero_grad()
        model(**inputs, labels=wanted).loss.backward()
        optimizer.step()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
