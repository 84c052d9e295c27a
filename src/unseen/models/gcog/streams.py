"""What the gcog models read: a rule and a stimulus, as rows of numbers, alone or as one sequence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from unseen.errors import UsageError
from unseen.models.layers.constants import constant
from unseen.spec import Field, Spec

RULE_PLACES = 100
"""How many places relative positions keep for a rule, and where a stimulus at a fixed place begins."""


@dataclass(frozen=True)
class Sequence:
    """Tokens as rows of numbers.

    `rows` (B, T, columns); `places` of the T tokens; `mask` (B, T), true where real, or None if all are; `end` (B,),
    the index of the token that is read, or None if it is the last.
    """

    rows: Tensor
    places: tuple[int, ...]
    mask: Tensor | None = None
    end: Tensor | None = None


@dataclass(frozen=True)
class Reading:
    """The fields of both streams, the mask of the rule if it is to be used, and the sizes of stimulus and answer."""

    rule_fields: tuple[Field, ...]
    stimulus_fields: tuple[Field, ...]
    mask: str | None
    stimulus_length: int
    classes: int

    def rule(self, inputs: Mapping[str, Tensor], dtype: torch.dtype) -> Sequence:
        """The rule, read at its last real token."""
        rows = number_rows(self.rule_fields, inputs, dtype)
        places = tuple(range(rows.shape[1]))
        if self.mask is None:
            return Sequence(rows, places)
        mask = inputs[self.mask]
        return Sequence(rows, places, mask, _count(mask) - 1)

    def stimulus(self, inputs: Mapping[str, Tensor], dtype: torch.dtype) -> Sequence:
        """The stimulus, read at its last token."""
        rows = number_rows(self.stimulus_fields, inputs, dtype)
        return Sequence(rows, tuple(range(rows.shape[1])))

    def joint(self, inputs: Mapping[str, Tensor], dtype: torch.dtype, start: int | None = None) -> Sequence:
        """Rule and stimulus as one sequence, read at its last token; each has columns of its own.

        The stimulus follows the last real token of the rule, and padding comes at the end; or it has the places from
        `start` on.
        """
        fields = self.rule_fields + self.stimulus_fields
        rule, stimulus = (inputs[part[0].name].shape[1] for part in (self.rule_fields, self.stimulus_fields))
        joint = {f.name: _padded(f, inputs[f.name], (0, stimulus)) for f in self.rule_fields}
        joint |= {f.name: _padded(f, inputs[f.name], (rule, 0)) for f in self.stimulus_fields}
        places = tuple(range(rule + stimulus))
        if start is not None:
            if rule > start:
                raise UsageError(
                    f"a stimulus at place {start} leaves room for a rule of {start} tokens, {rule} "
                    "arrived; choose stim_position=following"
                )
            mask = None if self.mask is None else F.pad(inputs[self.mask], (0, stimulus), value=True)
            return Sequence(number_rows(fields, joint, dtype), (*places[:rule], *range(start, start + stimulus)), mask)
        if self.mask is None:
            return Sequence(number_rows(fields, joint, dtype), places)
        mask = inputs[self.mask]
        count, place = _count(mask)[:, None], _numbers(len(places), mask.device)
        source = (place + (place >= count) * (rule - count)).clamp_max(len(places) - 1)
        joint = {name: _taken(values, source) for name, values in joint.items()}
        rows = number_rows(fields, joint, dtype)
        return Sequence(rows, places, place < count + stimulus, count[:, 0] + stimulus - 1)


def read(spec: Spec, pad_mask: bool) -> Reading:
    """What there is to read; a task without a rule and a stimulus is refused."""
    names = {stream.name for stream in spec.streams}
    if names != {"rule", "stimulus"} or spec.along(None) or spec.target.kind != "category" or spec.target.along:
        raise UsageError(
            "the gcog models read the streams 'rule' and 'stimulus' and answer with a category; this task "
            f"has streams {', '.join(sorted(names)) or 'none'} and the target {spec.target}"
        )
    masks = {stream: [f.name for f in spec.along(stream) if f.kind == "mask"] for stream in names}
    if masks["stimulus"] or len(masks["rule"]) > 1:
        raise UsageError(
            f"the gcog models know one mask, of the rule; the task has {', '.join(masks['rule'] + masks['stimulus'])}"
        )
    rule, stimulus = (tuple(f for f in spec.along(stream) if f.kind != "mask") for stream in ("rule", "stimulus"))
    mask = masks["rule"][0] if masks["rule"] and pad_mask else None
    return Reading(rule, stimulus, mask, spec.stream("stimulus").length, spec.target.width)


def columns(fields: tuple[Field, ...]) -> int:
    """How many numbers these fields take in a row."""
    return sum(field.width for field in fields)


def number_rows(fields: tuple[Field, ...], inputs: Mapping[str, Tensor], dtype: torch.dtype) -> Tensor:
    """The fields of a stream side by side, (B, T, columns): numbers as they are, a category as zeros and a one.

    A category one past its last is nothing but zeros.
    """
    parts = [
        F.embedding(inputs[f.name], _hot(f.width, dtype, inputs[f.name].device))
        if f.kind == "category"
        else inputs[f.name].to(dtype)
        for f in fields
    ]
    return parts[0] if len(parts) == 1 else torch.cat(parts, -1)


def _padded(field: Field, values: Tensor, tokens: tuple[int, int]) -> Tensor:
    """The values of a field, and zero rows for so many tokens before and after."""
    if field.kind == "category":
        return F.pad(values, tokens, value=field.width)
    return F.pad(values, (0, 0, *tokens))


def _taken(values: Tensor, source: Tensor) -> Tensor:
    """The values (B, T) or (B, T, k) at places (B, T)."""
    if values.dim() == 2:
        return values.gather(1, source)
    return values.gather(1, source[..., None].expand(values.shape))


def _count(mask: Tensor) -> Tensor:
    """How many tokens are real; they come first."""
    return mask.sum(1).clamp_min(1)


@constant
def _hot(width: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.eye(width + 1, width, dtype=dtype, device=device)


@constant
def _numbers(count: int, device: torch.device) -> Tensor:
    return torch.arange(count, device=device)
