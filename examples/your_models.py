"""Four models as a user might write them; each runs on every task. See docs/your-model.md.

unseen train ctl/A your_models:Recurrent --steps 2000 --out runs/mine         # from this directory
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import unseen


class Recurrent(unseen.Adapter):
    """torch's LSTM: three lines."""

    def core(self, width: int) -> nn.Module:
        return nn.LSTM(width, width, batch_first=True)


class Stock(unseen.Adapter):
    """torch's Transformer encoder, with its own option: `--set layers=3`."""

    class Options(unseen.Adapter.Options):
        layers: int = 2

    def core(self, width: int) -> nn.Module:
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, batch_first=True)
        return nn.TransformerEncoder(layer, self.options.layers, enable_nested_tensor=False)


class Decay(nn.Module):
    """A small state-space model: every channel decays at its own rate and adds its input."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.enter, self.leave = nn.Linear(width, width), nn.Linear(width, width)
        self.rate = nn.Parameter(torch.linspace(-4, 1, width))

    def forward(self, x: Tensor) -> Tensor:
        decay = torch.exp(-torch.exp(self.rate))
        inputs = self.enter(x)
        states = [inputs[:, 0]]
        for t in range(1, x.shape[1]):
            states.append(decay * states[-1] + inputs[:, t])
        return x + self.leave(F.relu(torch.stack(states, 1)))


class StateSpace(unseen.Adapter):
    """Two layers written by hand."""

    def core(self, width: int) -> nn.Module:
        return nn.Sequential(Decay(width), Decay(width))


class Bert(unseen.Adapter):
    """A Hugging Face encoder, built from its config: nothing is downloaded. `pip install transformers`."""

    def core(self, width: int) -> nn.Module:
        from transformers import BertConfig, BertModel

        config = BertConfig(
            vocab_size=1, hidden_size=width, num_hidden_layers=2, num_attention_heads=4, intermediate_size=4 * width
        )
        return BertModel(config, add_pooling_layer=False)

    def call(self, core: nn.Module, states: Tensor, mask: Tensor | None) -> Tensor:
        return core(inputs_embeds=states, attention_mask=mask).last_hidden_state
