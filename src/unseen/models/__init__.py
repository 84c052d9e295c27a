"""Models: ordinary `torch.nn.Module`s built from (options, spec). They know specs, not tasks.

A registered model is a class with a nested `Options` config and the constructor `Model(options, spec)`; its forward is
`forward(inputs, ctx=NO_CONTEXT)`, where `inputs` is a dict by field name, batch first, and the result is the prediction
(logits for binary and category targets) in the shape of the spec's target. Any other `nn.Module` class can be used as
well: see `foreign.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unseen.registry import Registry

if TYPE_CHECKING:
    from torch import nn

    from unseen.config import Config

MODELS: Registry[Any] = Registry(
    "model",
    "unseen.models",
    {
        "lstm": ("unseen.models.backbones.recurrent:LSTM", "generic LSTM on any task"),
        "gru": ("unseen.models.backbones.recurrent:GRU", "generic GRU on any task"),
        "rnn": ("unseen.models.backbones.recurrent:RNN", "generic Elman RNN on any task"),
        "transformer": (
            "unseen.models.backbones.transformers:Transformer",
            "generic Transformer on any task, with five schemes of positions",
        ),
        "universal-transformer": (
            "unseen.models.backbones.transformers:UniversalTransformer",
            "generic universal Transformer (one shared layer) on any task",
        ),
        "ndr": ("unseen.models.backbones.transformers:NDR", "generic Neural Data Router on any task"),
        "perceiver": ("unseen.models.backbones.perceiver:Perceiver", "generic Perceiver on any task"),
        "modular": (
            "unseen.models.backbones.modular:Modular",
            "generic Transformer with modules for feed-forward on any task, with four gatings",
        ),
        "moe-transformer": (
            "unseen.models.backbones.modular:MoETransformer",
            "generic Transformer with a sparse top-k mixture of experts on any task",
        ),
        "s4d": ("unseen.models.backbones.linear_recurrent:S4D", "generic diagonal state-space model (S4D) on any task"),
        "mamba": ("unseen.models.backbones.linear_recurrent:Mamba", "generic selective state-space model on any task"),
        "gla": ("unseen.models.backbones.linear_recurrent:GLA", "generic gated linear attention on any task"),
        "deltanet": (
            "unseen.models.backbones.linear_recurrent:DeltaNet",
            "generic DeltaNet (linear attention by the delta rule) on any task",
        ),
        "retrieval-transformer": (
            "unseen.models.retrieval:RetrievalTransformer",
            "the retrieval paper's Transformer, with switches for positions, self-attention, embedding dropout",
        ),
        "retrieval-lstm": (
            "unseen.models.retrieval:RetrievalLSTM",
            "the retrieval paper's LSTM: basic, attention, or matched to the Transformer",
        ),
        "ctl-bilstm": ("unseen.models.ctl:CTLBiLSTM", "the CTL++ paper's bidirectional LSTM"),
        "ctl-transformer": (
            "unseen.models.ctl:CTLTransformer",
            "the CTL++ paper's Transformer: a shared layer, relative positions",
        ),
        "ctl-ndr": (
            "unseen.models.ctl:CTLNDR",
            "the Neural Data Router: a shared layer with a copy gate and geometric attention",
        ),
        "rules-mlp": ("unseen.models.rules.models:RulesMLP", "the modularity paper's MLP, with four gatings"),
        "rules-mha": (
            "unseen.models.rules.models:RulesMHA",
            "the modularity paper's attention model, with four gatings",
        ),
        "rules-rnn": (
            "unseen.models.rules.models:RulesRNN",
            "the modularity paper's recurrent model, with four gatings",
        ),
        "gcog-rnn": ("unseen.models.gcog.models:GcogRNN", "the gCOG paper's recurrent network (RNN)"),
        "gcog-gru": ("unseen.models.gcog.models:GcogGRU", "the gCOG paper's gated recurrent network (GRU)"),
        "gcog-single-stream": (
            "unseen.models.gcog.models:GcogSingleStream",
            "the gCOG paper's Transformer on one sequence of rule and stimulus (SSTfmr)",
        ),
        "gcog-dual-stream": (
            "unseen.models.gcog.models:GcogDualStream",
            "the gCOG paper's Transformer with a stream each for rule and stimulus (DSTfmr)",
        ),
        "gcog-cross-attention": (
            "unseen.models.gcog.models:GcogCrossAttention",
            "the gCOG paper's Transformer whose rule looks at the stimulus (CrossAttn)",
        ),
        "gcog-perceiver": (
            "unseen.models.gcog.models:GcogPerceiver",
            "the gCOG paper's Perceiver: latents look at rule and stimulus in turn (Perceiver)",
        ),
        "gcog-bert": (
            "unseen.models.gcog.models:GcogBert",
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


BACKBONES = (
    *("lstm", "gru", "rnn", "transformer", "universal-transformer", "ndr", "perceiver", "modular"),
    *("moe-transformer", "s4d", "mamba", "gla", "deltanet"),
)
"""The generic models, which read any task, and which the exam compares a model with."""


def is_ours(name: str) -> bool:
    """Whether a model belongs to this package: building it runs no plug-in and no user's code.

    >>> is_ours("lstm"), is_ours("mine:Model")
    (True, False)
    """
    return ":" not in name and name in MODELS and MODELS.entry(name).target.startswith("unseen.")


def options(name: str | type[nn.Module], **values: Any) -> Config:
    """The validated options of a model, which is a registered name, a user's class, or `module:Class`.

    >>> options("retrieval-transformer", positions="none").options()
    {'name': 'retrieval-transformer', 'positions': 'none'}
    """
    if isinstance(name, str) and is_ours(name):
        ours: Config = MODELS.load(name).Options.parse({"name": MODELS.entry(name).name, **values})
        return ours
    from unseen.models.foreign import load_class, make_foreign

    if not isinstance(name, str):
        return make_foreign(f"{name.__module__}:{name.__qualname__}", name, **values)
    cls: Any = load_class(name)
    full_name = name if ":" in name else MODELS.entry(name).name
    if ":" in name or not hasattr(cls, "Options"):  # a plug-in without options is built from the spec alone
        return make_foreign(full_name, cls, **values)
    parsed: Config = cls.Options.parse({"name": full_name, **values})
    return parsed
