"""Layers shared by the models: linear maps, norms, attention, recurrence, positions, embeddings and read-outs.

Member s of a stack must have exactly the bits of the same model trained alone. A layer keeps this promise, without being
slower, if it follows these rules; `tests/models/test_stack_contract.py` detects violations.

* Avoid torch's `sigmoid`, `softplus`, `silu` and `gelu`, and any loss whose backward pass is one of them. Torch rounds the
  last elements of an array with other instructions than the rest, so that the bits of an element depend on its position.
  `tanh`, `exp`, `erf` and `logsigmoid` are safe; `linear` has a sigmoid and a GELU that fill whole vector registers.
* Avoid matrix products with a single column, forward or backward: use `affine`, or make the column a row.
* Reduce over contiguous tensors (a bias gradient is a sum). The order of a sum follows the memory layout, and the layout
  of a transposed tensor depends on whether an axis has length one. The same holds for a reshape that may or may not copy.
* Mask by adding or multiplying numbers: `where` and `masked_fill` take ten times as long, boolean masks three times.
"""
