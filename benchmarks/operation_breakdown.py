"""Where the time of a step goes, by kind of operation."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

from torch.autograd.profiler_legacy import profile  # the newer one writes lines of its own on the terminal

KINDS = {
    "products": "mm bmm addmm baddbmm addbmm addmv mv dot mkldnn_linear convolution _scaled_dot_product",
    "optimiser": "_fused_adam _fused_adamw _fused_sgd linalg_vector_norm",
    "norms and softmax": "native_layer_norm layer_norm _softmax _log_softmax softmax logsumexp",
    "copies": "cat stack copy clone contiguous index gather scatter embedding_dense_backward fill zero one_hot",
}
"""What begins with one of these words after `aten::` is of that kind; any other operation of torch's is elementwise."""
ELEMENTWISE, OUTSIDE = "elementwise work", "Python, NumPy and autograd"
_BY_WORD = sorted(
    ((word, kind) for kind, words in KINDS.items() for word in words.split()),
    key=lambda pair: len(pair[0]),
    reverse=True,
)


def kind_of(operation: str) -> str:
    """The kind of an operation of torch's, by its name.

    >>> kind_of("aten::baddbmm_"), kind_of("aten::native_layer_norm_backward"), kind_of("aten::mul")
    ('products', 'norms and softmax', 'elementwise work')
    >>> kind_of("BmmBackward0")
    'Python, NumPy and autograd'
    """
    name = operation.removeprefix("aten::").removeprefix("cudnn_")
    if name == operation:
        return OUTSIDE
    return next((kind for word, kind in _BY_WORD if name.startswith(word)), ELEMENTWISE)


def spent(work: Callable[[], object]) -> dict[str, float]:
    """The share of each kind in the CPU time of some work on one thread, done under torch's profiler.

    The profiler itself takes a microsecond or so for every operation, which is counted as outside of them.
    """
    with profile() as seen:
        began = time.process_time()
        work()
        whole = time.process_time() - began
    found: Counter[str] = Counter()
    for event in seen.key_averages():
        found[kind_of(event.key)] += event.self_cpu_time_total / 1e6
    inside = sum(seconds for kind, seconds in found.items() if kind != OUTSIDE)
    # Events are timed by the wall clock: where others disturbed them, they may sum to more than the CPU time.
    whole = max(whole, inside)
    shares = {kind: found[kind] / whole for kind in (*KINDS, ELEMENTWISE)}
    return shares | {OUTSIDE: 1 - inside / whole}
