"""Checkpoints and weights as safetensors: no code is executed on loading."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from unseen.errors import CheckFailed


@dataclass
class Checkpoint:
    """Everything needed to continue: tensors by `key/group/name`, and the members' progress. Plain data, no code."""

    step: int
    progress: dict[str, dict[str, Any]]
    tensors: dict[str, Tensor] = field(default_factory=dict)

    def stack(self, keys: Sequence[str], group: str) -> dict[str, Tensor]:
        """The tensors of one group by name, those of these members stacked in their order."""
        prefix = f"{keys[0]}/{group}/"
        stacked = {}
        for name in self.tensors:
            if name.startswith(prefix):
                rows = [self.tensors[f"{key}/{group}/{name.removeprefix(prefix)}"] for key in keys]
                stacked[name.removeprefix(prefix)] = torch.stack(rows)
        return stacked

    def states(self, group: str) -> dict[str, dict[str, Tensor]]:
        """The tensors of one group by member and name, of the members that have any."""
        states: dict[str, dict[str, Tensor]] = {}
        for name, value in self.tensors.items():
            key, tensor_group, tensor_name = name.split("/", 2)
            if tensor_group == group:
                states.setdefault(key, {})[tensor_name] = value
        return states

    def only(self, key: str) -> Checkpoint:
        """The checkpoint of one member, from which it continues alone."""
        tensors = {name: value for name, value in self.tensors.items() if name.startswith(f"{key}/")}
        return Checkpoint(self.step, {key: self.progress[key]}, tensors)


def pack(checkpoint: Checkpoint) -> bytes:
    """A checkpoint as the bytes of a safetensors file."""
    header = {"step": checkpoint.step, "progress": checkpoint.progress}
    return save(checkpoint.tensors, {"checkpoint": json.dumps(header)})


def unpack(path: str, data: bytes) -> Checkpoint:
    """The checkpoint in a file's bytes; damage is an error that names the file."""
    try:
        # The format: 8 bytes of length, then a JSON header whose metadata are texts; ours is JSON again.
        length = int.from_bytes(data[:8], "little")
        header = json.loads(json.loads(data[8 : 8 + length])["__metadata__"]["checkpoint"])
        step = header["step"]
        progress = header["progress"]
        if type(step) is not int or step < 0 or not isinstance(progress, dict):
            raise ValueError("its header is not that of a checkpoint")
        return Checkpoint(step, progress, load(data))
    except (SafetensorError, KeyError, ValueError, TypeError, RecursionError, OverflowError, MemoryError) as error:
        raise CheckFailed(
            f"{path} is damaged and can't be read as a checkpoint ({error}); train into a new directory"
        ) from error


def split_checkpoint(members: Sequence[str], checkpoint: bytes) -> dict[str, bytes]:
    """The checkpoint of each member of a stack, from which it continues alone."""
    stacked = unpack("a checkpoint", checkpoint)
    return {key: pack(stacked.only(key)) for key in members}


def pack_weights(state: dict[str, Tensor]) -> bytes:
    """One module's state dict as the bytes of a safetensors file."""
    return save({name: tensor.detach().cpu().contiguous() for name, tensor in state.items()})


def unpack_weights(path: str, data: bytes) -> dict[str, Tensor]:
    """The state dict in a file's bytes."""
    try:
        return load(data)
    except (SafetensorError, KeyError, ValueError, TypeError, OverflowError, MemoryError) as error:
        raise CheckFailed(f"{path} is damaged and can't be read as weights: {error}") from error
