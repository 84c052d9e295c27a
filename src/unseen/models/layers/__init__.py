"""Layers shared by the zoo: the one attention, the one recurrence, positions, embedding, read-out, the tape.

A member of a stack has the bits of the same member alone, and nothing is slower for it. That holds for layers that
keep these rules; `tests/models/test_stack_contract.py` finds the others.

* No `sigmoid`, `softplus`, `silu` or `gelu`, nor a loss whose backward pass is one: torch rounds the last elements of
  an array by other instructions than the rest, so an element's bits depend on its place. `tanh`, `exp`, `erf` and
  `logsigmoid` are safe; `activation` has a sigmoid and a GELU that are, because they fill whole registers.
* No matrix product with a single column, forward or backward: use `affine`, or make it a row.
* Reduce (a bias gradient is a sum) over contiguous tensors: the order of a sum follows the memory, and the memory of a
  transposed tensor depends on whether an axis has length one. The same for a reshape that may or may not copy.
* Mask by adding or multiplying numbers: `where` and `masked_fill` take ten times as long, booleans three times.
"""
