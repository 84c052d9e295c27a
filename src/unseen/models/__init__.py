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
        "ctl-bilstm": ("unseen.models.ctl.bilstm:CTLBiLSTM", "the CTL++ paper's bidirectional LSTM"),
        "ctl-transformer": (
            "unseen.models.ctl.transformer:CTLTransformer",
            "the CTL++ paper's Transformer: a shared layer, relative positions",
        ),
        "ctl-ndr": (
            "unseen.models.ctl.ndr:CTLNDR",
            "the Neural Data Router: a shared layer with a copy gate and geometric attention",
        ),
        "rules-mlp": ("unseen.models.rules.mlp:RulesMLP", "the modularity paper's MLP, with four gatings"),
        "rules-mha": ("unseen.models.rules.mha:RulesMHA", "the modularity paper's attention model, with four gatings"),
        "rules-rnn": ("unseen.models.rules.rnn:RulesRNN", "the modularity paper's recurrent model, with four gatings"),
        "gcog-rnn": ("unseen.models.gcog.recurrent:GcogRNN", "the gCOG paper's recurrent network (RNN)"),
        "gcog-gru": ("unseen.models.gcog.recurrent:GcogGRU", "the gCOG paper's gated recurrent network (GRU)"),
        "gcog-single-stream": (
            "unseen.models.gcog.single_stream:SingleStream",
            "the gCOG paper's Transformer on one sequence of rule and stimulus (SSTfmr)",
        ),
        "gcog-dual-stream": (
            "unseen.models.gcog.dual_stream:DualStream",
            "the gCOG paper's Transformer with a stream each for rule and stimulus (DSTfmr)",
        ),
        "gcog-cross-attention": (
            "unseen.models.gcog.cross_attention:CrossAttention",
            "the gCOG paper's Transformer whose rule looks at the stimulus (CrossAttn)",
        ),
        "gcog-perceiver": (
            "unseen.models.gcog.perceiver:Perceiver",
            "the gCOG paper's Perceiver: latents look at rule and stimulus in turn (Perceiver)",
        ),
        "gcog-bert": (
            "unseen.models.gcog.bert:Bert",
            "the gCOG paper's BERT-like Transformers on one sequence, by layers and heads",
        ),
    },
    aliases={
        "RNN": "gcog-rnn",
        "GRU": "gcog-gru",
        "SSTfmr": "gcog-single-stream",
        "DSTfmr": "gcog-dual-stream",
        "CrossAttn": "gcog-cross-attention",
        "Perceiver": "gcog-perceiver",
    },
)


def options(name: str, **given: Any) -> Config:
    """The validated options of a registered model.

    >>> options("retrieval-transformer", positions="none").options()
    {'name': 'retrieval-transformer', 'positions': 'none'}
    """
    entry = MODELS.entry(name)
    found: Config = entry.load().Options.parse({"name": entry.name, **given})
    return found
