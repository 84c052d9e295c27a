"""Models: ordinary `torch.nn.Module`s built from (options, spec). They know specs, not tasks.

A registered model is a class with a nested `Options` config and the constructor `Model(options, spec)`; its forward is
`forward(inputs, tape=NO_TAPE)`, where `inputs` is a dict by field name, batch first, and the result is the prediction
(logits for binary and category targets) in the shape of the spec's target.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unseen.registry import Registry

if TYPE_CHECKING:
    from unseen.config import Config

MODELS: Registry[Any] = Registry(
    "model",
    "unseen.models",
    {
        "lstm": ("unseen.models.backbones.lstm:LSTM", "generic LSTM on any task"),
        "transformer": ("unseen.models.backbones.transformer:Transformer", "generic Transformer on any task"),
        "retrieval-transformer": (
            "unseen.models.retrieval.transformer:RetrievalTransformer",
            "the retrieval paper's Transformer, with switches for positions, self-attention, embedding dropout",
        ),
        "retrieval-lstm": (
            "unseen.models.retrieval.lstm:RetrievalLSTM",
            "the retrieval paper's LSTM: basic, attention, or matched to the Transformer",
        ),
    },
)


def options(name: str, **given: Any) -> Config:
    """The validated options of a registered model.

    >>> options("retrieval-transformer", positions="none").options()
    {'name': 'retrieval-transformer', 'positions': 'none'}
    """
    found: Config = MODELS.load(name).Options.parse({"name": name, **given})
    return found
