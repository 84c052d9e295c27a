"""From inputs to tokens: rule and stimulus as one stream, or as two with a block each."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn

from unseen.models.gcog.block import Block
from unseen.models.gcog.options import JointOptions, TransformerOptions
from unseen.models.gcog.streams import Sequence, read
from unseen.models.gcog.tokens import Embedding, Made, Tokens
from unseen.models.layers.distances import DistanceTable
from unseen.models.layers.tape import Tape
from unseen.spec import Field, Spec


class OneStream(nn.Module):
    """Rule and stimulus embedded as one sequence."""

    def __init__(self, options: JointOptions, spec: Spec) -> None:
        super().__init__()
        self.options, self.reading = options, read(spec, options.pad_mask)
        fields = self.reading.rule_fields + self.reading.stimulus_fields
        self.embed = Embedding(fields, options.width, positions=options.absolute, dropout=options.pos_dropout)

    def table(self, heads: int = 1) -> DistanceTable | None:
        """The distances in the sequence, if positions are relative."""
        return self.options.table(heads, self.reading.stimulus_length)

    def forward(self, inputs: Mapping[str, Tensor], tape: Tape) -> Tokens:
        tokens: Tokens = self.embed(self.reading.joint(inputs, self.embed.weight.dtype, self.options.start), tape)
        return tokens


class TwoStreams(nn.Module):
    """Rule and stimulus with an embedding and a block each; relative positions are for the rule alone."""

    def __init__(self, options: TransformerOptions, spec: Spec) -> None:
        super().__init__()
        self.reading = read(spec, options.pad_mask)
        self.rule = Stream("rule", self.reading.rule_fields, options, options.table())
        self.stimulus = Stream("stimulus", self.reading.stimulus_fields, options)

    def sequences(self, inputs: Mapping[str, Tensor]) -> tuple[Sequence, Sequence]:
        """The rows of both."""
        dtype = self.rule.embed.weight.dtype
        return self.reading.rule(inputs, dtype), self.reading.stimulus(inputs, dtype)


class Stream(nn.Module):
    """The embedding and the block of one stream. Without a table of distances tokens get codes of their places."""

    def __init__(
        self, name: str, fields: tuple[Field, ...], options: TransformerOptions, table: DistanceTable | None = None
    ) -> None:
        super().__init__()
        self.name = name
        self.embed = Embedding(fields, options.width, positions=table is None, dropout=options.pos_dropout)
        self.block = Block(options.width, options.width, table=table)

    def forward(self, sequence: Sequence, tape: Tape) -> Tokens:
        """All tokens. Keeps `rule.attention` (B, 1, T, T) and `rule.state` (B, T, width), or those of the stimulus."""
        states = self.block(self.embed(sequence, tape), tape, f"{self.name}.attention")
        tape.keep(f"{self.name}.state", states)
        return Made(states, sequence)

    def last(self, sequence: Sequence, tape: Tape) -> Tensor:
        """The token that is read, (B, width). Keeps the same, of this token: (B, 1, 1, T) and (B, width)."""
        state: Tensor = self.block.last(self.embed(sequence, tape), tape, f"{self.name}.attention")
        tape.keep(f"{self.name}.state", state)
        return state
