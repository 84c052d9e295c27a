"""Specs of the rules family, and which models the tests of it go through."""

from __future__ import annotations

from typing import Any

from unseen.spec import Field, Spec, Stream, Target

GATINGS = ("none", "joint", "operation", "truth")


def spec(model: str, rules: int = 4, kind: str = "binary", *, search: int = 1, inputs: int | None = None) -> Spec:
    """The spec of the task a model is for; a real target of the recurrent model is the whole state."""
    if model == "rules-mlp":
        return Spec((), (Field("x", "real", inputs or 2), Field("rule", "category", rules)), Target(kind))
    tokens = Stream("tokens", 10, "set" if model == "rules-mha" else "sequence")
    name, width = ("features", {1: 4, 2: 6}[search] * rules) if model == "rules-mha" else ("x", inputs or 32)
    fields = Field(name, "real", width, "tokens"), Field("rule", "category", rules, "tokens")
    outputs = width if (model, kind) == ("rules-rnn", "real") else 1
    return Spec((tokens,), fields, Target(kind, outputs, "tokens"))


ALL: list[tuple[str, dict[str, Any]]] = [
    (model, {"gating": gating}) for model in ("rules-mlp", "rules-mha", "rules-rnn") for gating in GATINGS
]
VARIANTS: list[tuple[str, dict[str, Any]]] = [
    *(("rules-rnn", {"gating": gating, "cell": "elman"}) for gating in GATINGS),
    *(("rules-rnn", {"gating": gating, "bias": True}) for gating in GATINGS[1:]),
    *(
        (model, {"gating": gating, "modules": count})
        for model in ("rules-mlp", "rules-mha", "rules-rnn")
        for gating in GATINGS[1:]
        for count in (1, 2, 7)
    ),
    *(("rules-mlp", {"gating": gating, "modules": 32}) for gating in GATINGS[1:]),  # of one hidden unit each
    ("rules-mlp", {"gating": "truth", "modules": 3, "partition": (2, 0, 2, 1)}),
    ("rules-rnn", {"gating": "truth", "modules": 3, "partition": (2, 0, 2, 1)}),
    ("rules-mha", {"encoder": "scaled"}),
    ("rules-mha", {"gating": "operation", "gate_hidden": "width"}),
    ("rules-mha", {"gating": "operation", "gate_hidden": 5}),
    ("rules-mha", {"heads": 3}),
    ("rules-mha", {"heads": 1, "gating": "none"}),
    *(
        (model, {"match": "exact", "gating": gating})
        for model in ("rules-mlp", "rules-mha", "rules-rnn")
        for gating in GATINGS[1:]
    ),
]


def named(case: tuple[str, dict[str, Any]]) -> str:
    return " ".join([case[0], *(f"{k}={v}" for k, v in case[1].items())])
