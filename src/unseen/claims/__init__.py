"""Claims: statements of the papers, turned into criteria on records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unseen.registry import Registry, make_callable

if TYPE_CHECKING:
    from unseen.claims.claim import Claim

_RETRIEVAL = "unseen.claims.papers.retrieval"
_RULES = "unseen.claims.papers.rules"
_CTL = "unseen.claims.papers.ctl"
_GCOG = "unseen.claims.papers.gcog"

CLAIMS: Registry[Claim] = Registry(
    "claim",
    "unseen.claims",
    {
        "retrieval/C1": (f"{_RETRIEVAL}:C1", "T1 is learned by all variants, and both components help"),
        "retrieval/C2": (f"{_RETRIEVAL}:C2", "T2 and T4 stay at the one-feature ceiling"),
        "retrieval/C3": (f"{_RETRIEVAL}:C3", "T3 is solved"),
        "retrieval/C4": (f"{_RETRIEVAL}:C4", "T5 is not helped by self-attention"),
        "retrieval/C5": (f"{_RETRIEVAL}:C5", "T6 needs order: positions help, self-attention helps more"),
        "retrieval/C6": (f"{_RETRIEVAL}:C6", "T7 is best with self-attention alone"),
        "retrieval/C7": (f"{_RETRIEVAL}:C7", "positions beside self-attention cost accuracy on T6 and T7"),
        "retrieval/C8": (f"{_RETRIEVAL}:C8", "self-attention alone reads the later token; with positions seeds differ"),
        "retrieval/C9": (f"{_RETRIEVAL}:C9", "later positions are harder only with self-attention"),
        "retrieval/C10": (f"{_RETRIEVAL}:C10", "LSTMs fall behind with length, with telling exceptions"),
        "retrieval/table2": (f"{_RETRIEVAL}:TABLE2_VALUES", "the accuracies of table 2"),
        "retrieval/attention": (f"{_RETRIEVAL}:ATTENTION_VALUES", "the attention differences of T5, T6 and T7"),
        "retrieval/reading": (f"{_RETRIEVAL}:READING", "how T1 to T4 are answered: attention and errors"),
        "retrieval/lengths": (f"{_RETRIEVAL}:LENGTHS", "Transformers as sequences grow: better, level or worse"),
        "retrieval/spreads": (f"{_RETRIEVAL}:SPREADS", "how much seeds differ in table 2 and in attention"),
        "retrieval/variants": (f"{_RETRIEVAL}:READING_VARIANTS", "focus on T2 and T3 is alike in all variants"),
        "retrieval/one-feature": (f"{_RETRIEVAL}:ONE_FEATURE_RULE", "T4 is answered by one feature alone"),
        "retrieval/noise": (f"{_RETRIEVAL}:NOISE", "the gain of positions is that of the embedding dropout"),
        "rules/F1": (f"{_RULES}:F1", "the true rule as gate has most votes, gating by the operation comes second"),
        "rules/F2": (f"{_RULES}:F2", "joint gating beats a monolithic network, by a small margin"),
        "rules/F3": (f"{_RULES}:F3", "truth before operation before joint before none, with the most rules"),
        "rules/F4": (f"{_RULES}:F4", "the gain of specialization grows with the number of rules"),
        "rules/F5": (f"{_RULES}:F5", "learned gates collapse, the more the more rules there are"),
        "rules/F6": (f"{_RULES}:F6", "learned gates specialize better than random and worse than true ones"),
        "rules/F7": (f"{_RULES}:F7", "what specializes better learns faster"),
        "rules/F8": (f"{_RULES}:F8", "errors in and out of distribution go together"),
        "rules/F9": (f"{_RULES}:F9", "the last and the best weights hardly differ"),
        "rules/votes": (f"{_RULES}:VOTE_VALUES", "the printed shares of votes"),
        "rules/flipped": (f"{_RULES}:FLIPPED", "F1 and F2 hold with RNN classification counted the wrong way round"),
        "rules/votes-flipped": (f"{_RULES}:VOTE_VALUES_FLIPPED", "the printed shares of votes are counted so"),
        "rules/levels": (f"{_RULES}:ERROR_LEVELS", "how large classification errors are, by architecture"),
        "rules/C1": (f"{_RULES}:C1", "the order of F3 holds with longer sequences alone"),
        "rules/C2": (f"{_RULES}:C2", "F3 and F4 hold for losses in units of the zero predictor's"),
        "rules/C3": (f"{_RULES}:C3", "the order of F3 holds with a wide encoder"),
        "rules/C3-trend": (f"{_RULES}:C3_TREND", "with a wide encoder errors grow less with the rules"),
        "rules/C4": (f"{_RULES}:C4", "gating by the operation collapses with a wide gate, too"),
        "rules/C4-width": (f"{_RULES}:C4_WIDTH", "with a wide gate it collapses less"),
        "rules/C5": (f"{_RULES}:C5", "the order of F3 holds with a whole shared state"),
        "rules/C5-state": (f"{_RULES}:C5_STATE", "with a whole shared state errors are lower"),
        "rules/C6": (f"{_RULES}:C6", "F1 and F2 hold for votes beyond the luck of the seeds"),
        "rules/C7": (f"{_RULES}:C7", "joint gates fail to specialize by mixing softly"),
        "rules/R1": (f"{_RULES}_routers:R1", "no router brings end-to-end modules near true gates"),
        "rules/R2": (f"{_RULES}_routers:R2", "biases that are told the rule do"),
        "rules/R3": (f"{_RULES}_routers:R3", "specialization pays, out of distribution as well"),
        "rules/R4": (f"{_RULES}_routers:R4", "balanced modules are not specialized ones"),
        "ctl/K1": (f"{_CTL}:K1", "all three models learn A and R in distribution"),
        "ctl/K2": (f"{_CTL}:K2", "only the Bi-LSTM is nearly perfect on unseen transitions"),
        "ctl/K3": (f"{_CTL}:K3", "A is harder than R for NDR and Transformer"),
        "ctl/K4": (f"{_CTL}:K4", "on R success depends on the seed"),
        "ctl/K5": (f"{_CTL}:K5", "on S accuracy grows with bridge functions and shared symbols"),
        "ctl/K6": (f"{_CTL}:K6", "runs that fail represent one symbol differently for each group"),
        "ctl/K6-counted": (f"{_CTL}:K6_COUNTED", "most runs that fail do so beyond chance, few that succeed"),
        "ctl/K7": (f"{_CTL}:K7", "the cluster of a function's output predicts what may follow"),
        "ctl/K7-clusters": (f"{_CTL}:K7_CLUSTERS", "and does so more than the function's group"),
        "ctl/adding-up": (f"{_CTL}:ADDING_UP", "on A accuracy falls with the number of functions"),
        "ctl/table1": (f"{_CTL}:TABLE1_VALUES", "the accuracies of table 1"),
        "ctl/spreads": (f"{_CTL}:SPREADS", "how much seeds differ in table 1"),
        "ctl/lengths": (f"{_CTL}:LENGTHS", "Bi-LSTM and NDR compose more functions than they were trained on"),
        "gcog/distractors-learned": (f"{_GCOG}:DISTRACTORS_LEARNED", "all models learn among a few distractors"),
        "gcog/distractors": (f"{_GCOG}:DISTRACTORS", "only cross-attention models stay excellent among more of them"),
        "gcog/distractors-drop": (f"{_GCOG}:DISTRACTORS_DROP", "three models answer in part among 10, and drop at 20"),
        "gcog/distractors-weakest": (f"{_GCOG}:DISTRACTORS_WEAKEST", "recurrent models are the weakest among more"),
        "gcog/operators-learned": (f"{_GCOG}:OPERATORS_LEARNED", "all models learn operators with some objects"),
        "gcog/operators": (f"{_GCOG}:OPERATORS_NEW", "with other objects all do well, cross-attention models best"),
        "gcog/leak": (f"{_GCOG}:LEAK", "the published test of these is easier by the half of it that was trained"),
        "gcog/trees-learned": (f"{_GCOG}:TREES_LEARNED", "all models learn trees of some operators"),
        "gcog/trees": (f"{_GCOG}:TREES_NEW", "on fresh trees, of known and new triples, the Perceiver is the best"),
        "gcog/trees-values": (f"{_GCOG}:TREES_VALUES", "the accuracies on trees that are printed"),
        "gcog/relative-trees": (f"{_GCOG}:RELATIVE_TREES", "with relative positions the same, but somewhat lower"),
        "gcog/productivity-learned": (f"{_GCOG}:PRODUCTIVITY_LEARNED", "all models learn questions of depths 1 and 3"),
        "gcog/productivity": (f"{_GCOG}:PRODUCTIVITY", "all models are at chance on depths 5 and 7"),
        "gcog/relative-productivity": (f"{_GCOG}:RELATIVE_PRODUCTIVITY", "relative positions do not help there"),
        "gcog/depth-1": (f"{_GCOG}:DEPTH_1", "trained on depth 1 alone, all models fail on deeper questions"),
        "gcog/layers-distractors": (f"{_GCOG}:LAYERS_DISTRACTORS", "layers help among more distractors"),
        "gcog/layers-operators": (f"{_GCOG}:LAYERS_OPERATORS", "layers help with objects an operator never met"),
        "gcog/layers-trees": (f"{_GCOG}:LAYERS_TREES", "layers help with operators not trained together"),
        "gcog/layers-productivity": (f"{_GCOG}:LAYERS_PRODUCTIVITY", "layers do not help with deeper questions"),
        "gcog/similarity": (f"{_GCOG}:SIMILARITY", "cross-attention models come closest to stimuli and targets"),
        "gcog/pool": (f"{_GCOG}:POOL", "fresh training questions close the gap between training and test"),
    },
)

# `unseen.claims()` judges.
make_callable(__name__, "unseen.api:claims")
