"""What every registered model computes, by hand: the one thing about a model that can't be generated.

A model is a list of steps at its default options. A step says how many parameters it trains, as an expression in the
model's sizes: the tests hold their sum to what is built, for every task.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import nn

from unseen.spec import Spec

Size = tuple[str, Callable[[Any, Spec, Any], int]]
"""What a letter stands for, and its value for (options, spec, module)."""


@dataclass(frozen=True)
class Step:
    """What is computed: in words, in TeX (vectors are columns), and the number of parameters, '' for none."""

    words: str
    tex: str
    count: str = ""


@dataclass(frozen=True)
class Equations:
    """The steps of a model and the letters in them; `notes` say what other options change."""

    sizes: dict[str, Size]
    steps: tuple[Step, ...]
    notes: tuple[str, ...] = ()
    printed: str = ""

    def values(self, options: Any, spec: Spec, module: nn.Module) -> dict[str, int]:
        """The value of every letter."""
        return {letter: value(options, spec, module) for letter, (_, value) in self.sizes.items()}


def parameters(step: Step, values: dict[str, int]) -> int:
    """How many parameters a step has.

    >>> parameters(Step("a map", "y = W x + b", "d * (F + 1)"), {"d": 100, "F": 36})
    3700
    """
    return int(eval(step.count, {"__builtins__": {}}, dict(values))) if step.count else 0


def _fields(spec: Spec, stream: str | None = None) -> int:
    """The numbers of all fields, or of those along a stream, side by side; a category has one for each value."""
    return sum(f.width for f in spec.inputs if f.kind != "mask" and stream in (None, f.along))


# ---------------------------------------------------------------------------------------------- the generic backbones

WIDTH: Size = ("width of a state", lambda options, spec, module: options.width)
LAYERS: Size = ("layers", lambda options, spec, module: options.layers)
ANSWER: Size = ("numbers of the answer", lambda options, spec, module: spec.target.width)
HIDDEN: Size = ("hidden units of the feed-forward", lambda options, spec, module: options.feedforward * options.width)
GENERIC: dict[str, Size] = {
    "d": WIDTH,
    "F": ("numbers of all input fields", lambda options, spec, module: _fields(spec)),
    "S": (
        "streams, and one more if something is given once",
        lambda options, spec, module: len(spec.streams) + bool(spec.along(None)),
    ),
    "R": ("read-out tokens: 1 if the answer is given once", lambda options, spec, module: int(not spec.target.along)),
    "o": ANSWER,
}
PLACED = Step(
    "a token of stream s at place t: its fields, a vector of its stream, the code of its place",
    r"x_t = \sum_{f \in s} E_f \, a_{f,t} + v_s + p_t",
    "d * (F + S)",
)
UNPLACED = Step(
    "a token of stream s: its fields and a vector of its stream",
    r"x_t = \sum_{f \in s} E_f \, a_{f,t} + v_s",
    "d * (F + S)",
)
READ_TOKEN = Step("a last token to read from, if the answer is given once", r"x_T = r", "d * R")
READ = Step(
    "the answer, at the tokens that are read: logits of bits and categories, or numbers",
    r"\hat y_t = W_o z_t + b_o",
    "o * (d + 1)",
)
SOFTMAX = r"\operatorname{softmax}"

RECURRENT_NOTES = (
    "Everything starts from zero states. At padded tokens the state is carried on unchanged.",
    "Several layers: the states of one are the inputs of the next.",
)
SELF_NOTES = (
    "Padded tokens are not looked at. The last layer works for the tokens that are read alone.",
    "A category field is a row of E for each value; numbers and bits are multiplied with E.",
)


def _attention(layers: str, source: str, scores: str, where: str = "") -> tuple[Step, ...]:
    """Self-attention with heads: projections, weights; `layers` is what their counts are multiplied with."""
    return (
        Step(
            "queries, keys and values, split into A heads of width k = d / A",
            rf"q_i, k_i, v_i = W_q {source}, \; W_k {source}, \; W_v {source} \quad (+\,b)",
            f"{layers}(3 * d**2 + 3 * d)",
        ),
        Step(f"what token i sees of token j, in each head{where}", scores),
    )


def _pre_norm(layers: str, scores: tuple[Step, ...]) -> tuple[Step, ...]:
    return (
        *scores,
        Step(
            "what the heads found, side by side, is mapped and added",
            r"u_i = x_i + W_h [ \sum_j A_{ij} v_j ] + b_h",
            f"{layers}(d**2 + d)",
        ),
        Step(
            "feed-forward",
            r"x_i \leftarrow u_i + W_2 \max(0, W_1 \mathrm{LN}(u_i) + b_1) + b_2",
            f"{layers}(2 * d * m + m + d)",
        ),
        Step("norms: two in each layer, one at the end", r"z_i = \mathrm{LN}(x_i)", f"{layers}4 * d + 2 * d"),
    )


GEOMETRIC = (
    Step(
        "queries, keys and values, split into A heads of width k = d / A",
        r"q_i, k_i, v_i = W_q h_i, \; W_k h_i, \; W_v h_i \quad (+\,b)",
        "3 * d**2 + 3 * d",
    ),
    Step(
        "a number of token i for all tokens to its right and one for those to its left, in each head",
        r"\delta_{ij} = (D h_i + b_D)_{\mathrm{right}} \;\; (j > i), \quad (D h_i + b_D)_{\mathrm{left}} \;\; (j < i)",
        "2 * A * (d + 1)",
    ),
    Step(
        "how well token j matches; nobody matches himself",
        r"p_{ij} = \sigma(\alpha \, q_i^\top k_j + \beta \, \delta_{ij} + \gamma), \quad p_{ii} = 0",
        "3",
    ),
    Step(
        "the first match from the nearest token outwards, right before left",
        r"A_{ij} = p_{ij} \prod_{k \prec_i j} (1 - p_{ik})",
    ),
    Step(
        "what the heads found, side by side, is mapped and added",
        r"a_i = \mathrm{LN}( h_i + W_h [ \sum_j A_{ij} v_j ] )",
        "d**2 + 2 * d",
    ),
    Step(
        "feed-forward",
        r"u_i = \mathrm{LN}( a_i + W_2 \operatorname{gelu}(W_1 a_i + b_1) + b_2 )",
        "2 * d * m + m + 3 * d",
    ),
    Step(
        "gate; its bias starts at −3, nearly closed",
        r"g_i = \sigma(G_2 \operatorname{gelu}(G_1 a_i + c_1) + c_2)",
        "2 * d**2 + 2 * d",
    ),
    Step("what the gate leaves closed is copied", r"h_i \leftarrow (1 - g_i) \odot h_i + g_i \odot u_i"),
)
"""One layer of the Neural Data Router, which is applied L times."""
LSTM_STEPS = (
    r"i_t, f_t, o_t = \sigma(\cdot), \quad g_t = \tanh(\cdot) \quad \text{of} \quad W x_t + U h_{t-1} + b + c",
    r"c_t = f_t \odot c_{t-1} + i_t \odot g_t, \quad h_t = o_t \odot \tanh(c_t)",
)
LATENT = "4 * d**2 + 2 * d * m + m"
"""Attention and feed-forward of a block, without biases of its own width (5 d) and norms."""

KERNEL: Size = ("tokens that the short convolution sees", lambda options, spec, module: options.kernel)
SHORT_CONVOLUTION = Step(
    "a short convolution of each channel",
    r"u_t = \sum_{j<k} w_j \odot \mathrm{LN}(x_{t-j}) + b",
    "L * d * (k + 1)",
)
MATRIX_PROJECTIONS = Step(
    "queries, keys and values, split into heads", r"q_t, k_t, v_t = W_q u_t, \; W_k u_t, \; W_v u_t", "L * 3 * d**2"
)
FEED_FORWARD = (
    Step(
        "feed-forward",
        r"x_t \leftarrow u_t + W_2 \max(0, W_1 \mathrm{LN}(u_t) + b_1) + b_2",
        "L * (2 * d * m + m + d)",
    ),
    Step("norms: two in each layer, one at the end", r"z_t = \mathrm{LN}(x_t)", "L * 4 * d + 2 * d"),
)
CHUNKED = "Computed in chunks of 16 tokens, which are matrix products inside; the tests hold this to the recurrence."
LINEAR_NOTES = (
    "Everything starts from zero states. Padding is moved before the real tokens, where it writes nothing.",
    "The steps from the norm to the feed-forward are one of L layers.",
)

BACKBONES: dict[str, Equations] = {
    "lstm": Equations(
        {**GENERIC, "L": LAYERS},
        (
            UNPLACED,
            READ_TOKEN,
            Step("gates: input, forget, output, candidate", LSTM_STEPS[0], "L * 4 * d * (2 * d + 2)"),
            Step("cell and state", LSTM_STEPS[1]),
            Step("what is read", "z_t = h_t"),
            READ,
        ),
        RECURRENT_NOTES,
    ),
    "gru": Equations(
        {**GENERIC, "L": LAYERS},
        (
            UNPLACED,
            READ_TOKEN,
            Step("gates: reset, keep", r"r_t, k_t = \sigma(W x_t + b + U h_{t-1} + c)", "L * 2 * d * (2 * d + 2)"),
            Step(
                "candidate, the reset inside",
                r"n_t = \tanh(W_n x_t + b_n + r_t \odot (U_n h_{t-1} + c_n))",
                "L * d * (2 * d + 2)",
            ),
            Step("state", r"h_t = (1 - k_t) \odot n_t + k_t \odot h_{t-1}"),
            Step("what is read", "z_t = h_t"),
            READ,
        ),
        RECURRENT_NOTES,
    ),
    "rnn": Equations(
        {**GENERIC, "L": LAYERS},
        (
            UNPLACED,
            READ_TOKEN,
            Step("state", r"h_t = \tanh(W x_t + U h_{t-1} + b + c)", "L * d * (2 * d + 2)"),
            Step("what is read", "z_t = h_t"),
            READ,
        ),
        (*RECURRENT_NOTES, "`activation = relu` has max(0, ·) in place of tanh."),
    ),
    "transformer": Equations(
        {**GENERIC, "L": LAYERS, "m": HIDDEN},
        (
            PLACED,
            READ_TOKEN,
            *_pre_norm(
                "L * ", _attention("L * ", r"\mathrm{LN}(x_i)", rf"A_{{ij}} = {SOFTMAX}_j (q_i^\top k_j / \surd k)")
            ),
            READ,
        ),
        (
            *SELF_NOTES,
            "`norm = post`: u = LN(x + …), x ← LN(u + …), and no norm at the end. `causal`: j ≤ i only.",
            "`positions`: `learned` has a table for p; `rotary` turns queries and keys by an angle that grows with the "
            "place; `relative` has the scores of [universal-transformer](universal-transformer.md).",
        ),
    ),
    "universal-transformer": Equations(
        {**GENERIC, "m": HIDDEN},
        (
            UNPLACED,
            READ_TOKEN,
            *_pre_norm(
                "",
                _attention(
                    "",
                    r"\mathrm{LN}(x_i)",
                    rf"A_{{ij}} = {SOFTMAX}_j ( [ (q_i + u)^\top k_j + (q_i + v)^\top (W_r e_{{j-i}})_a ] / \surd k )",
                    " a; u and v are vectors of the head, e the sinusoidal code of the difference of positions",
                ),
            ),
            Step("the map of differences, and u and v of all heads", r"W_r, \; u, \; v", "d**2 + 2 * d"),
            READ,
        ),
        (
            *SELF_NOTES,
            "The steps from queries to feed-forward are one layer, applied `layers` times.",
            "Places count from 0 in every stream; what is given once and the read-out token are at −1. The cells of "
            "a grid are at 0 and have sinusoidal codes of row and column added.",
        ),
    ),
    "ndr": Equations(
        {**GENERIC, "A": ("heads", lambda options, spec, module: options.heads), "m": HIDDEN},
        (UNPLACED, READ_TOKEN, *GEOMETRIC, Step("what is read, after the last layer", "z_i = h_i"), READ),
        (
            "The steps from queries to the copy are one layer, applied `layers` times to h = x.",
            "Padding is moved to the front, so that it lies between no neighbours; it matches nobody.",
        ),
    ),
    "perceiver": Equations(
        {**GENERIC, "n": ("latents", lambda options, spec, module: options.latents), "L": LAYERS, "m": HIDDEN},
        (
            PLACED,
            READ_TOKEN,
            Step("latents at the start, learned", r"\ell = \ell_1, \dots, \ell_n", "n * d"),
            Step(
                "they look at the tokens: attention C with heads, then a feed-forward, both pre-norm",
                r"u = \ell + C(\mathrm{LN}(\ell), \mathrm{LN}(x)), \quad \ell \leftarrow u + \mathrm{FF}(\mathrm{LN}(u))",
                f"L * ({LATENT} + 11 * d)",
            ),
            Step(
                "they look at each other",
                r"u = \ell + C(\mathrm{LN}(\ell), \mathrm{LN}(\ell)), \quad "
                r"\ell \leftarrow u + \mathrm{FF}(\mathrm{LN}(u))",
                f"L * ({LATENT} + 9 * d)",
            ),
            Step(
                "in the end the tokens that are read look at the latents",
                r"u = x + C(\mathrm{LN}(x), \mathrm{LN}(\ell)), \quad z = \mathrm{LN}(u + \mathrm{FF}(\mathrm{LN}(u)))",
                f"{LATENT} + 13 * d",
            ),
            READ,
        ),
        (
            "C maps the first to queries and the second to keys and values, with biases: softmax(q·k / √k) in each head, "
            "then a map of all heads. FF(x) = W₂ max(0, W₁ x + b₁) + b₂.",
            "Padded tokens are not looked at.",
        ),
    ),
    "modular": Equations(
        {
            **GENERIC,
            "L": LAYERS,
            "M": ("modules: as many as symbols", lambda options, spec, module: module.symbols.count),
            "w": (
                "hidden units of a module: those of a feed-forward, dealt out",
                lambda options, spec, module: options.feedforward * options.width // module.symbols.count,
            ),
        },
        (
            PLACED,
            READ_TOKEN,
            Step(
                "hidden units of module m",
                r"h_m = \max(0, F_m \mathrm{LN}(x_t) + f_m)",
                "L * (M * w * (d + 1) + 2 * d)",
            ),
            Step(
                "the weights of the modules: each scores itself (gating `joint`)",
                rf"p = {SOFTMAX}_m (c_m^\top h_m + c_{{m0}})",
                "L * M * (w + 1)",
            ),
            Step("the mixture is added", r"u_t = x_t + \sum_m p_m (G_m h_m + g_m)", "L * M * (w + 1) * d"),
            Step(
                "self-attention C with A heads, as in a Transformer",
                r"x_t \leftarrow u_t + C(\mathrm{LN}(u))_t",
                "L * (4 * d**2 + 6 * d)",
            ),
            Step("a norm at the end", r"z_t = \mathrm{LN}(x_t)", "2 * d"),
            READ,
        ),
        (
            "A symbol is the value of the first category field of a token's stream; where there is none, the stream "
            "itself. The read-out token has the symbol of what is given once, or one of its own.",
            "`gating = operation`: p = softmax(B max(0, A e + a) + b) of the symbol's one-hot code e. `truth`: p is 1 for "
            "the module of the symbol. `none`: one module, p = 1.",
        ),
    ),
    "moe-transformer": Equations(
        {
            **GENERIC,
            "L": LAYERS,
            "E": ("experts", lambda options, spec, module: options.experts),
            "w": ("hidden units of an expert", HIDDEN[1]),
        },
        (
            PLACED,
            READ_TOKEN,
            Step(
                "hidden units of expert m",
                r"h_m = \max(0, F_m \mathrm{LN}(x_t) + f_m)",
                "L * (E * w * (d + 1) + 2 * d)",
            ),
            Step("the router scores the experts", rf"q = {SOFTMAX}_m (r_m^\top \mathrm{{LN}}(x_t))", "L * d * E"),
            Step(
                "the K largest of them, scaled to sum to 1; all others are 0",
                r"p_m = q_m / \sum_{j \in \mathrm{top}_K} q_j",
            ),
            Step("the mixture is added", r"u_t = x_t + \sum_m p_m (G_m h_m + g_m)", "L * E * (w + 1) * d"),
            Step(
                "self-attention C with A heads, as in a Transformer",
                r"x_t \leftarrow u_t + C(\mathrm{LN}(u))_t",
                "L * (4 * d**2 + 6 * d)",
            ),
            Step("a norm at the end", r"z_t = \mathrm{LN}(x_t)", "2 * d"),
            READ,
        ),
        (
            "K is `top_k`. The sum by which the weights are scaled is taken as a constant when gradients are computed, so "
            "that the router learns with K = 1, too.",
            "All experts are computed for every token, which FLOPs count; weights of 0 leave out their results. No loss "
            "balances the experts.",
        ),
    ),
    "s4d": Equations(
        {
            **GENERIC,
            "L": LAYERS,
            "m": HIDDEN,
            "n": ("complex states of a channel", lambda options, spec, module: options.state),
        },
        (
            UNPLACED,
            READ_TOKEN,
            Step(
                "each channel of u = LN(x) has its own step Δ, n complex rates a and a number s",
                r"\bar a = e^{\Delta a}, \quad \bar b = (e^{\Delta a} - 1) / a, \quad \mathrm{Re}\, a < 0",
                "L * (2 * d * n + 2 * d)",
            ),
            Step("states", r"h_t = \bar a \odot h_{t-1} + \bar b \, u_t"),
            Step("result of the channel", r"y_t = 2 \, \mathrm{Re}\, c^\top h_t + s \, u_t", "L * 2 * d * n"),
            Step(
                "all channels are mixed and added", r"u_t = x_t + W_y \operatorname{gelu}(y_t) + b_y", "L * (d**2 + d)"
            ),
            *FEED_FORWARD,
            READ,
        ),
        (
            "Computed as a convolution: y is the sum over j ≤ t of K at t − j times u at j, where K at t is 2 Re Σ c b̄ āᵗ.",
            *LINEAR_NOTES,
        ),
    ),
    "mamba": Equations(
        {
            **GENERIC,
            "L": LAYERS,
            "m": HIDDEN,
            "c": ("channels", lambda options, spec, module: options.expand * options.width),
            "n": ("states of a channel", lambda options, spec, module: options.state),
            "r": ("rank of the map to steps: width / 16", lambda options, spec, module: -(-options.width // 16)),
            "k": KERNEL,
        },
        (
            UNPLACED,
            READ_TOKEN,
            Step("channels and gates", r"u_t, g_t = W_u \mathrm{LN}(x_t), \; W_g \mathrm{LN}(x_t)", "L * 2 * d * c"),
            Step(
                "a short convolution of each channel",
                r"v_t = \operatorname{silu}( \sum_{j<k} w_j \odot u_{t-j} + b )",
                "L * c * (k + 1)",
            ),
            Step(
                "step, input and output of the token",
                r"\Delta_t = \operatorname{softplus}(W_\Delta D v_t + b_\Delta), \quad B_t = W_B v_t, \quad C_t = W_C v_t",
                "L * (c * (r + 2 * n) + c * (r + 1))",
            ),
            Step(
                "n states of each channel, with rates a < 0 of its own",
                r"h_t = e^{\Delta_t a} \odot h_{t-1} + \Delta_t v_t B_t",
                "L * c * n",
            ),
            Step("result of the channel", r"y_t = C_t^\top h_t + s \, v_t", "L * c"),
            Step("gated, mixed and added", r"u_t = x_t + W_y (y_t \odot \operatorname{silu}(g_t))", "L * c * d"),
            *FEED_FORWARD,
            READ,
        ),
        LINEAR_NOTES,
    ),
    "gla": Equations(
        {**GENERIC, "L": LAYERS, "m": HIDDEN, "k": KERNEL},
        (
            UNPLACED,
            READ_TOKEN,
            SHORT_CONVOLUTION,
            MATRIX_PROJECTIONS,
            Step(
                "decays of each key channel",
                r"\alpha_t = \max(e^{-4}, \sigma(W_\alpha u_t + b_\alpha)^{1/16})",
                "L * (d**2 + d)",
            ),
            Step("the matrix of each head", r"S_t = \operatorname{diag}(\alpha_t) S_{t-1} + k_t v_t^\top"),
            Step("what the query reads, of width K", r"o_t = S_t^\top q_t / \surd K"),
            Step(
                "the heads side by side, normed, gated, mixed and added",
                r"u_t = x_t + W_h ( \mathrm{LN}(o_t) \odot \operatorname{silu}(W_g u_t) )",
                "L * (2 * d**2 + 2 * d)",
            ),
            *FEED_FORWARD,
            READ,
        ),
        (CHUNKED, *LINEAR_NOTES),
    ),
    "deltanet": Equations(
        {**GENERIC, "L": LAYERS, "m": HIDDEN, "k": KERNEL, "A": ("heads", lambda options, spec, module: options.heads)},
        (
            UNPLACED,
            READ_TOKEN,
            SHORT_CONVOLUTION,
            MATRIX_PROJECTIONS,
            Step(
                "queries and keys of each head have length one",
                r"q_t \leftarrow q_t / \surd(|q_t|^2 + \epsilon), \quad k_t \leftarrow k_t / \surd(|k_t|^2 + \epsilon), \quad "
                r"\epsilon = 10^{-6}",
            ),
            Step(
                "how strongly each head corrects",
                r"\beta_t = \sigma(W_\beta u_t + b_\beta)",
                "L * A * (d + 1)",
            ),
            Step(
                "the matrix of each head: what it stores under the key moves towards the value",
                r"S_t = S_{t-1} (1 - \beta_t k_t k_t^\top) + \beta_t v_t k_t^\top",
            ),
            Step("what the query reads", r"o_t = S_t q_t"),
            Step(
                "the heads side by side, normed, mixed and added",
                r"u_t = x_t + W_h \mathrm{LN}(o_t)",
                "L * (d**2 + 2 * d)",
            ),
            *FEED_FORWARD,
            READ,
        ),
        (
            "`negative_eigenvalues`: β is twice as large, so that the eigenvalue 1 − β of a step lies between −1 and 1.",
            CHUNKED,
            *LINEAR_NOTES,
        ),
    ),
}

# --------------------------------------------------------------------------------------------------- the papers' models

RETRIEVAL: dict[str, Size] = {
    "d": ("width", lambda options, spec, module: options.width),
    "F": ("bits of a token", lambda options, spec, module: spec.field("sequence").width),
    "Q": ("bits of the query", lambda options, spec, module: spec.field("query").width),
}
DECODER = (
    Step(
        "the query reads the states, without a scale",
        rf"\alpha_i = {SOFTMAX}_i (h_i^\top q), \quad c = \sum_i \alpha_i h_i",
    ),
    Step("the logit of yes", r"\hat y = w^\top \max(0, W [c ; q] + b) + b_0", "d * (2 * d + 1) + d + 1"),
)
CTL: dict[str, Size] = {
    "V": ("values of a token", lambda options, spec, module: spec.field("token").width),
    "C": ("values of the answer", lambda options, spec, module: spec.target.width),
    "d": ("width", lambda options, spec, module: options.width),
    "A": ("heads", lambda options, spec, module: options.heads),
    "m": ("hidden units of the feed-forward", lambda options, spec, module: options.feedforward),
}
MARKER = Step("the answer, at the start marker", r"\hat y = W_o h_0 + b_o", "C * (d + 1)")
RULES: dict[str, Size] = {
    "R": ("rules", lambda options, spec, module: module.sizes.rules),
    "F": ("numbers that are given", lambda options, spec, module: module.sizes.inputs),
    "e": ("width of the encoder", lambda options, spec, module: module.sizes.width),
    "M": ("modules: as many as rules", lambda options, spec, module: module.sizes.modules),
    "o": ANSWER,
}
CORE: Size = ("width of the core, 4 e", lambda options, spec, module: module.sizes.core)
GATING_NOTE = "`gating = none`: one module and p = 1. `truth`: p is 1 for the module of the rule. `operation`: "
TOKEN_CODE = Step(
    "code of a token: its numbers and its rule's one-hot code",
    r"x_t = E_2 \max(0, E_1 [a_t ; 1_{r_t}] + b_1) + b_2",
    "e * (F + R + e + 2)",
)
GCOG: dict[str, Size] = {
    "F": ("numbers of a rule token", lambda options, spec, module: _fields(spec, "rule")),
    "S": ("numbers of a stimulus token", lambda options, spec, module: _fields(spec, "stimulus")),
    "C": ("values of the answer", lambda options, spec, module: spec.target.width),
}
GCOG_WIDE: dict[str, Size] = {
    **GCOG,
    "d": ("width of a token", lambda options, spec, module: options.width),
    "H": ("width of what follows the blocks", lambda options, spec, module: options.hidden),
}
GCOG_STATE: dict[str, Size] = {
    **GCOG,
    "T": ("stimulus tokens", lambda options, spec, module: spec.stream("stimulus").length),
    "d": ("width of the state", lambda options, spec, module: options.width),
}
BLOCK = "6 * d**2 + 10 * d"
"""Attention with an output map, two layers of the same width, two norms."""
STREAM_BLOCK = (
    r"u_i = \mathrm{LN}(x_i + C(x)_i), \quad "
    r"h_i = \mathrm{LN}( u_i + \max(0, W_2 \max(0, W_1 u_i + b_1) + b_2) )"
)
ONE_SEQUENCE = Step(
    "rule and stimulus as one sequence, each with columns of its own in row a; p is a sinusoidal code",
    r"x_t = E a_t + b + p_t",
    "d * (F + S + 1)",
)
TWO_STREAMS = (
    Step(
        "tokens of rule and stimulus, with sinusoidal codes of their positions",
        r"x_t^s = E^s a_t^s + b^s + p_t, \quad s \in \{\mathrm{rule}, \mathrm{stimulus}\}",
        "d * (F + S + 2)",
    ),
    Step("a block for each stream", STREAM_BLOCK, f"2 * ({BLOCK})"),
)
C_NOTE = (
    "C, with an index or without, is attention with one head: softmax(q·k / √width) and an output map. The bias of the "
    "keys is declared, as published, and changes nothing. Padding of the rule is not seen, and a rule is read at its "
    "end token."
)
GCOG_END = Step("the answer", r"\hat y = W_o \mathrm{LN}(z) + b_o", "2 * H + C * (H + 1)")
RELATIVE_NOTE = (
    "`positions = relative`: scores (q·k + q·r) / √k with a learned vector r for each distance i − j ≥ 0, "
    "in place of codes and of the output map"
)

PAPERS: dict[str, Equations] = {
    "retrieval-transformer": Equations(
        RETRIEVAL,
        (
            Step(
                "a token: its bits, scaled, and the sinusoidal code of its place",
                r"e_i = \surd F \, (W_e a_i + b_e) + p_i",
                "d * (F + 1)",
            ),
            Step(
                "queries, keys and values, with biases",
                r"q_i, k_i, v_i = W_q e_i, \; W_k e_i, \; W_v e_i \quad (+\,b)",
                "3 * d**2 + 3 * d",
            ),
            Step(
                "what token i sees of token j, of itself and what came before",
                rf"A_{{ij}} = {SOFTMAX}_{{j \le i}} (q_i^\top k_j / \surd d)",
            ),
            Step("attention, post-norm", r"u_i = \mathrm{LN}( e_i + W_h \sum_j A_{ij} v_j + b_h )", "d**2 + 3 * d"),
            Step(
                "feed-forward of the same width",
                r"h_i = \mathrm{LN}(u_i + W_2 \max(0, W_1 u_i + b_1) + b_2)",
                "2 * d**2 + 4 * d",
            ),
            Step("the query s, which arrives now", r"q = \max(0, W_s s + b_s)", "d * (Q + 1)"),
            *DECODER,
        ),
        (
            "`self_attention = false` leaves out A and its residual; `positions = none` leaves out p. With more `layers` "
            "the block is repeated, with weights of its own.",
            "`encoder = literal`, as the appendix writes it: h = softmax(e eᵀ / √d) e, causal, on e = W a + b + p: no "
            "parameters in the encoder.",
        ),
    ),
    "retrieval-lstm": Equations(
        RETRIEVAL,
        (
            Step(
                "gates: input, forget, output, candidate, of the bits themselves",
                LSTM_STEPS[0].replace("W x_t", "W a_t"),
                "4 * d * (F + d + 2)",
            ),
            Step("cell and state", LSTM_STEPS[1]),
            Step("the query s, which arrives now", r"q = W_s s + b_s", "d * (Q + 1)"),
            *DECODER,
        ),
        (
            "`form = basic`: c is the last state. `matched`: the Transformer with this encoder, e = √F (W a + b) with "
            "dropout as the input and a ReLU on the query.",
        ),
    ),
    "ctl-bilstm": Equations(
        {
            "V": CTL["V"],
            "C": CTL["C"],
            "E": ("width of the embedding", lambda options, spec, module: options.embedding),
            "d": ("width of one direction", lambda options, spec, module: options.width),
        },
        (
            Step("a vector for each token but the start marker, which is not read", r"x_t = E_{a_t}", "(V - 1) * E"),
            Step("gates, of each direction", LSTM_STEPS[0], "2 * 4 * d * (E + d + 2)"),
            Step("cell and state, of each direction; leftwards t − 1 is t + 1", LSTM_STEPS[1]),
            Step(
                "the answer, from the two final states",
                r"\hat y = W_o [h^{\rightarrow}_T ; h^{\leftarrow}_1] + b_o",
                "C * (2 * d + 1)",
            ),
        ),
        ("Padding carries the state on.",),
        "408 k (table 2)",
    ),
    "ctl-transformer": Equations(
        {key: CTL[key] for key in "VCdm"},
        (
            Step("a vector for each token", r"h_t = E_{a_t}", "V * d"),
            Step(
                "queries, keys and values, no biases, split into A heads of width k = d / A",
                r"q_i, k_i, v_i = W_q h_i, \; W_k h_i, \; W_v h_i",
                "3 * d**2",
            ),
            Step(
                "what token i sees of token j, in each head a; λ is learned from 1 / √k on, e is the sinusoidal code",
                rf"A_{{ij}} = {SOFTMAX}_j ( \lambda [ (q_i + u)^\top k_j + (q_i + v)^\top (W_r e_{{j-i}})_a "
                r"] )",
                "d**2 + 2 * d + 1",
            ),
            Step("attention, post-norm", r"u_i = \mathrm{LN}( h_i + W_h [ \sum_j A_{ij} v_j ] )", "d**2 + 2 * d"),
            Step(
                "feed-forward",
                r"h_i \leftarrow \mathrm{LN}(u_i + W_2 \max(0, W_1 u_i + b_1) + b_2)",
                "2 * d * m + m + 3 * d",
            ),
            MARKER,
        ),
        ("The steps from queries to feed-forward are one layer, applied `layers` times. Padding is not looked at.",),
        "672 k (table 2), with 516 744 numbers that are not trained",
    ),
    "ctl-ndr": Equations(
        CTL,
        (Step("a vector for each token", r"h_t = E_{a_t}", "V * d"), *GEOMETRIC, MARKER),
        (
            "The steps from queries to the copy are one layer, applied `layers` times in training and `extra_layers` "
            "times more in evaluation. Padding matches nobody.",
            "`form = original`: ReLU in place of gelu, no residual around the feed-forward, and a vector added to the "
            "queries of each head in place of the biases of queries, keys and values.",
        ),
        "679 k (table 2), with 5 000 numbers that are not trained",
    ),
    "rules-mlp": Equations(
        {
            **RULES,
            "D": CORE,
            "w": ("hidden units of a module, D / M", lambda options, spec, module: module.sizes.inner),
        },
        (
            Step(
                "code of each number, by one network for all", r"x_k = E_2 \max(0, E_1 a_k + b_1) + b_2", "e**2 + 3 * e"
            ),
            Step("code of the rule", r"c = R_2 \max(0, R_1 1_r + c_1) + c_2", "e * (R + e + 2)"),
            Step("hidden units of module m", r"h_m = \max(0, F_m [x_1 ; x_2 ; c] + f_m)", "M * w * ((F + 1) * e + 1)"),
            Step(
                "the weights of the modules: each scores itself (gating `joint`)",
                rf"p = {SOFTMAX}_m (s_m^\top h_m + s_{{m0}})",
                "M * (w + 1)",
            ),
            Step("the mixture", r"z = \sum_m p_m (G_m h_m + g_m)", "M * (w + 1) * D"),
            Step("the answer", r"\hat y = W_o \max(0, W z + b) + b_o", "(D + 1) * e + (e + 1) * o"),
        ),
        (GATING_NOTE + "p = softmax(B c + b), of the rule's code.",),
    ),
    "rules-mha": Equations(
        {
            **RULES,
            "H": ("heads of a module", lambda options, spec, module: module.sizes.heads),
            "k": ("width of a head, 4 e / (M H)", lambda options, spec, module: module.sizes.head),
            "w": (
                "hidden units of a module, by the authors' equation",
                lambda options, spec, module: module.sizes.inner,
            ),
        },
        (
            TOKEN_CODE,
            Step(
                "queries, keys and values of every head of every module, and each module's own view of the token",
                r"q_i, k_i, v_i, o_i = W x_i + b",
                "(3 * H + 1) * M * k * (e + 1)",
            ),
            Step(
                "what token i sees of another token j, in each head",
                rf"A_{{ij}} = {SOFTMAX}_{{j \ne i}} "
                r"(q_i^\top k_j / \surd k)",
            ),
            Step(
                "hidden units of module m, of what its H heads found and its own view",
                r"h_m = \max(0, F_m [ \sum_j A^1_{ij} v^1_j ; \dots ; \sum_j A^H_{ij} v^H_j ; o_i ] "
                r"+ f_m )",
                "M * w * ((H + 1) * k + 1)",
            ),
            Step(
                "the weights of the modules: each scores itself (gating `joint`)",
                rf"p = {SOFTMAX}_m (s_m^\top h_m + s_{{m0}})",
                "M * (w + 1)",
            ),
            Step("the mixture", r"z_i = \sum_m p_m (G_m h_m + g_m)", "M * (w + 1) * e"),
            Step("the answer", r"\hat y_i = W_o \max(0, W_z z_i + b_z) + b_o", "(e + o) * (e + 1)"),
        ),
        (
            GATING_NOTE + "p = softmax(B max(0, A 1ᵣ + a) + b), with as many hidden units as a head is wide.",
            "Without gating one module has the heads of all rules.",
        ),
    ),
    "rules-rnn": Equations(
        {
            **RULES,
            "h": (
                "width of the shared state, by the authors' equation",
                lambda options, spec, module: module.sizes.inner,
            ),
        },
        (
            TOKEN_CODE,
            Step(
                "what drives the four gates of module m",
                r"a_m = W_m x_t, \quad b_m = U_m h_{t-1}",
                "4 * M * h * (e + h)",
            ),
            Step(
                "the weights of the modules: each scores itself (gating `joint`)",
                rf"p = {SOFTMAX}_m ( s_m^\top \max(0, a_m) + v_m^\top \max(0, b_m) )",
                "2 * 4 * M * h",
            ),
            Step(
                "gates: input, forget, output, candidate",
                r"i_m, f_m, o_m = \sigma(\cdot), \quad g_m = \tanh(\cdot) \quad \text{of} \quad a_m + b_m",
            ),
            Step(
                "cell and state of a module",
                r"c_m = f_m \odot c_{t-1} + i_m \odot g_m, \quad h_m = o_m \odot \tanh(c_m)",
            ),
            Step("the shared ones are mixtures", r"c_t = \sum_m p_m c_m, \quad h_t = \sum_m p_m h_m"),
            Step("the answer", r"\hat y_t = W_o \max(0, W_z h_t + b_z) + b_o", "(h + o) * (h + 1)"),
        ),
        (
            GATING_NOTE + "p = softmax(B max(0, A 1ᵣ)), with as many hidden units as the state is wide.",
            "`cell = elman`: h = tanh(a + b), without gates and cell. `bias` adds a vector to a + b of each module.",
        ),
    ),
    "gcog-rnn": Equations(
        GCOG_STATE,
        (
            Step(
                "state, at rule token t; s is the whole stimulus, token by token",
                r"h_t = \max(0, W [a_t ; s] + U h_{t-1} + b + c)",
                "d * (F + T * S + d + 2)",
            ),
            Step("the answer, at the end of the rule", r"\hat y = W_o \mathrm{LN}(h_T) + b_o", "2 * d + C * (d + 1)"),
        ),
        ("`activation = tanh` and `norm_each_step`, LN after every step and fed back, are the paper's text.",),
    ),
    "gcog-gru": Equations(
        GCOG_STATE,
        (
            Step(
                "gates: reset, keep, at rule token t; s is the whole stimulus, token by token",
                r"r_t, k_t = \sigma(W [a_t ; s] + b + U h_{t-1} + c)",
                "2 * d * (F + T * S + d + 2)",
            ),
            Step(
                "candidate, the reset inside",
                r"n_t = \tanh(W_n [a_t ; s] + b_n + r_t \odot (U_n h_{t-1} + c_n))",
                "d * (F + T * S + d + 2)",
            ),
            Step("state", r"h_t = (1 - k_t) \odot n_t + k_t \odot h_{t-1}"),
            Step("the answer, at the end of the rule", r"\hat y = W_o \mathrm{LN}(h_T) + b_o", "2 * d + C * (d + 1)"),
        ),
        ("`norm_each_step`, LN after every step and fed back, is the paper's text.",),
    ),
    "gcog-single-stream": Equations(
        GCOG_WIDE,
        (
            ONE_SEQUENCE,
            Step("a block, of the last token T alone", STREAM_BLOCK, BLOCK),
            Step(
                "three layers, a ReLU after each",
                r"z = \varphi(M_3 \varphi(M_2 \varphi(M_1 h_T + m_1) + m_2) + m_3), \quad \varphi = \max(0, \cdot)",
                "4 * H**2 + d * H + 4 * H",
            ),
            GCOG_END,
        ),
        (C_NOTE, RELATIVE_NOTE + "."),
    ),
    "gcog-dual-stream": Equations(
        GCOG_WIDE,
        (
            *TWO_STREAMS,
            Step(
                "a layer for the last token of each stream; the sum is normed",
                r"s = \mathrm{LN}( \max(0, P h^{\mathrm{rule}}_T + p) "
                r"+ \max(0, Q h^{\mathrm{stimulus}}_T + q) )",
                "2 * d * H + 4 * H",
            ),
            Step(
                "three layers, a ReLU after each",
                r"z = \varphi(M_3 \varphi(M_2 \varphi(M_1 s + m_1) + m_2) + m_3), \quad \varphi = \max(0, \cdot)",
                "8 * H**2 + 5 * H",
            ),
            GCOG_END,
        ),
        (C_NOTE, RELATIVE_NOTE + ", in the rule alone."),
    ),
    "gcog-cross-attention": Equations(
        GCOG_WIDE,
        (
            *TWO_STREAMS,
            Step(
                "the last rule token looks at all stimulus tokens",
                r"f = C_2(h^{\mathrm{rule}}_T, h^{\mathrm{stimulus}})",
                "4 * d**2 + 4 * d",
            ),
            Step(
                "what it finds is normed before its own state is added, then two layers",
                r"z = \varphi(M_2 \varphi(M_1 (\mathrm{LN}(f) + h^{\mathrm{rule}}_T) + m_1) + m_2), \quad "
                r"\varphi = \max(0, \cdot)",
                "H**2 + d * H + 2 * H + 2 * d",
            ),
            GCOG_END,
        ),
        (C_NOTE, RELATIVE_NOTE + ", in the rule alone."),
    ),
    "gcog-perceiver": Equations(
        {**GCOG_WIDE, "H": ("width of the latents", lambda options, spec, module: options.hidden)},
        (
            *TWO_STREAMS,
            Step(
                "the latent, zero at the start, looks at the rule, then likewise (with other maps) at the stimulus",
                r"f = \mathrm{LN}(C_s(\ell, h^s)), \quad g = f + \max(0, G^s f + g^s)",
                "2 * (3 * H**2 + 2 * d * H + 7 * H)",
            ),
            Step(
                "it takes what it found, and looks at itself; one norm and one attention for both turns",
                r"\ell \leftarrow \mathrm{LN}(\ell + g), \quad \ell \leftarrow \mathrm{LN}(\ell + C_0(\ell))",
                "4 * H**2 + 6 * H",
            ),
            Step("a layer and the answer", r"\hat y = W_o \max(0, M \ell + m) + b_o", "(H + C) * (H + 1)"),
        ),
        (
            C_NOTE,
            "The published ten latents start at zero and stay equal for ever, so one does the work of all; alone it sees "
            "nothing but itself. `latents = learned` has ten vectors that differ.",
            RELATIVE_NOTE + ", in the rule alone.",
        ),
    ),
    "gcog-bert": Equations(
        {
            **GCOG,
            "T": (
                "positions of distances: 100 for the rule, then the stimulus",
                lambda options, spec, module: 100 + spec.stream("stimulus").length,
            ),
            "d": ("width of a token", lambda options, spec, module: options.width),
            "m": ("hidden units of a block's MLP", lambda options, spec, module: options.hidden),
            "A": ("heads", lambda options, spec, module: options.heads),
            "L": LAYERS,
        },
        (
            Step(
                "rule and stimulus as one sequence; each has columns of its own in a row a",
                r"x_t = E a_t + b",
                "d * (F + S + 1)",
            ),
            Step(
                "queries, keys and values, split into A heads of width k = d / A",
                r"q_i, k_i, v_i = W_q x_i, \; W_k x_i, \; W_v x_i \quad (+\,b)",
                "L * (3 * d**2 + 3 * d)",
            ),
            Step(
                "what token i sees of token j, with a learned vector r for each distance, the same for all heads",
                rf"A_{{ij}} = {SOFTMAX}_{{j \le i}} ( (q_i^\top k_j + q_i^\top r_{{i-j}}) / \surd k )",
                "L * T * d // A",
            ),
            Step(
                "attention, post-norm, no output map", r"u_i = \mathrm{LN}( x_i + [ \sum_j A_{ij} v_j ] )", "L * 2 * d"
            ),
            Step(
                "MLP with gelu after both layers",
                r"x_i \leftarrow \mathrm{LN}(u_i + \operatorname{gelu}(W_2 "
                r"\operatorname{gelu}(W_1 u_i + b_1) + b_2))",
                "L * (2 * d * m + m + 3 * d)",
            ),
            Step("the answer, at the last token", r"\hat y = W_o x_T + b_o", "C * (d + 1)"),
        ),
        (
            "The bias of the keys is declared, as published, and changes nothing. Padding is not seen.",
            "`positions = absolute`: sinusoidal codes, added again before every block, all tokens are seen, and an output "
            "map follows the heads. `causal = false`: vectors for negative distances as well.",
        ),
    ),
}

EQUATIONS: dict[str, Equations] = {**BACKBONES, **PAPERS}
"""By the name of the model."""
