"""The inputs of the gcog models: a rule and a stimulus as rows of numbers, separately or as one sequence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from unseen.errors import UsageError
from unseen.models.layers.constants import arange, constant
from unseen.models.requirements import describe_target
from unseen.spec import Field, Spec

RULE_POSITIONS = 100
"""The number of positions that relative positions reserve for a rule, and the first position of a fixed stimulus."""


@dataclass(frozen=True)
class TokenRows:
    """Tokens as rows of numbers.

    `rows` (B, T, columns); `positions`, those of the T tokens; `mask` (B, T), true where a token is real, or None if
    all are; `read_at` (B,), the index of the token that is read, or None if it is the last.
    """

    rows: Tensor
    positions: tuple[int, ...]
    mask: Tensor | None = None
    read_at: Tensor | None = None


@dataclass(frozen=True)
class InputReader:
    """The fields of both streams, the mask of the rule if it is used, and the sizes of stimulus and answer."""

    rule_fields: tuple[Field, ...]
    stimulus_fields: tuple[Field, ...]
    mask: str | None
    stimulus_length: int
    classes: int

    def rule(self, inputs: Mapping[str, Tensor], dtype: torch.dtype) -> TokenRows:
        """The rule, read at its last real token."""
        rows = number_rows(self.rule_fields, inputs, dtype)
        positions = tuple(range(rows.shape[1]))
        if self.mask is None:
            return TokenRows(rows, positions)
        mask = inputs[self.mask]
        return TokenRows(rows, positions, mask, _count_real(mask) - 1)

    def stimulus(self, inputs: Mapping[str, Tensor], dtype: torch.dtype) -> TokenRows:
        """The stimulus, read at its last token."""
        rows = number_rows(self.stimulus_fields, inputs, dtype)
        return TokenRows(rows, tuple(range(rows.shape[1])))

    def joint(self, inputs: Mapping[str, Tensor], dtype: torch.dtype, start: int | None = None) -> TokenRows:
        """Rule and stimulus as one sequence, read at its last token; each has its own columns.

        The stimulus follows the last real token of the rule, and padding comes at the end; or it has the positions from
        `start` on.
        """
        fields = self.rule_fields + self.stimulus_fields
        rule = inputs[self.rule_fields[0].name].shape[1]
        stimulus = inputs[self.stimulus_fields[0].name].shape[1]
        joint = {f.name: _pad(f, inputs[f.name], (0, stimulus)) for f in self.rule_fields}
        joint |= {f.name: _pad(f, inputs[f.name], (rule, 0)) for f in self.stimulus_fields}
        positions = tuple(range(rule + stimulus))
        if start is not None:
            if rule > start:
                raise UsageError(
                    f"a stimulus at position {start} leaves room for a rule of {start} tokens, {rule} "
                    "arrived; choose stim_position=following"
                )
            mask = None if self.mask is None else F.pad(inputs[self.mask], (0, stimulus), value=True)
            return TokenRows(
                number_rows(fields, joint, dtype), (*positions[:rule], *range(start, start + stimulus)), mask
            )
        if self.mask is None:
            return TokenRows(number_rows(fields, joint, dtype), positions)
        mask = inputs[self.mask]
        count = _count_real(mask)[:, None]
        position = arange(len(positions), mask.device)
        # From the end of the rule on, the tokens come from behind its padding; the clamped ones are padding themselves.
        source = (position + (position >= count) * (rule - count)).clamp_max(len(positions) - 1)
        joint = {name: _take(values, source) for name, values in joint.items()}
        rows = number_rows(fields, joint, dtype)
        return TokenRows(rows, positions, position < count + stimulus, count[:, 0] + stimulus - 1)


def make_reader(spec: Spec, pad_mask: bool) -> InputReader:
    """The reader of a task's inputs; a task without a rule and a stimulus is refused."""
    names = {stream.name for stream in spec.streams}
    if names != {"rule", "stimulus"} or spec.along(None) or spec.target.kind != "category" or spec.target.along:
        raise UsageError(
            "the gcog models read the streams 'rule' and 'stimulus' and answer with a category; this task "
            f"has {_list_streams(names)} and {describe_target(spec.target)}"
        )
    masks = [field for field in spec.inputs if field.kind == "mask"]
    if len(masks) > 1 or any(field.along == "stimulus" for field in masks):
        raise UsageError(
            f"the gcog models know one mask, that of the rule; this task has {', '.join(field.name for field in masks)}"
        )
    rule = tuple(field for field in spec.along("rule") if field.kind != "mask")
    stimulus = tuple(field for field in spec.along("stimulus") if field.kind != "mask")
    mask = masks[0].name if masks and pad_mask else None
    return InputReader(rule, stimulus, mask, spec.stream("stimulus").length, spec.target.width)


def count_columns(fields: tuple[Field, ...]) -> int:
    """The number of columns that these fields take in a row."""
    return sum(field.width for field in fields)


def number_rows(fields: tuple[Field, ...], inputs: Mapping[str, Tensor], dtype: torch.dtype) -> Tensor:
    """The fields of a stream side by side, (B, T, columns): numbers as they are, categories as one-hot codes.

    A category one past its last value, which marks padding, is a row of zeros.
    """
    blocks = []
    for field in fields:
        values = inputs[field.name]
        if field.kind == "category":
            blocks.append(F.embedding(values, _one_hot_table(field.width, dtype, values.device)))
        else:
            blocks.append(values.to(dtype))
    return blocks[0] if len(blocks) == 1 else torch.cat(blocks, -1)


def _pad(field: Field, values: Tensor, tokens: tuple[int, int]) -> Tensor:
    """The values of a field, with zero rows for these numbers of tokens before and after."""
    if field.kind == "category":
        return F.pad(values, tokens, value=field.width)
    return F.pad(values, (0, 0, *tokens))


def _take(values: Tensor, source: Tensor) -> Tensor:
    """The values (B, T) or (B, T, k) at positions (B, T)."""
    if values.dim() == 2:
        return values.gather(1, source)
    return values.gather(1, source[..., None].expand(values.shape))


def _count_real(mask: Tensor) -> Tensor:
    """The number of real tokens, which come first; at least 1, so that there is a token to read."""
    return mask.sum(1).clamp_min(1)


@constant
def _one_hot_table(width: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.eye(width + 1, width, dtype=dtype, device=device)


def _list_streams(names: set[str]) -> str:
    quoted = " and ".join(f"'{name}'" for name in sorted(names))
    return f"the stream{'s' * (len(names) > 1)} {quoted}" if names else "no streams"
