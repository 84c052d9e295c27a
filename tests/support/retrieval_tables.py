"""Literal data for the tests of the retrieval tasks: what was measured on the released data."""

from __future__ import annotations

# Shares measured on the released data, in the order train length 5, evaluation length 5, evaluation length 10.
# None: not measured there. The names are those of `measure` in test_retrieval_statistics.
SHARES = {
    "T1 occurrences 1": (0.467, 1.0, 1.0),
    "T1 occurrences 2": (0.371, 0.0, 0.0),
    "T1 occurrences 3": (0.137, 0.0, 0.0),
    "T1 occurrences 4": (0.023, 0.0, 0.0),
    "T1 occurrences 5": (0.002, 0.0, 0.0),
    "T2 positives common token": (0.551, 0.511, 0.508),
    "T2 negatives none": (0.499, 0.491, 0.505),
    "T2 negatives one": (0.501, 0.509, 0.495),
    "T2 positives both once": (0.296, None, None),
    "T2 positives both once, same token": (0.124, None, None),
    "T2 positives both once, different": (0.171, None, None),
    "T3 positives both": (0.503, 0.494, 0.494),
    "T3 positives a only": (0.248, 0.257, 0.248),
    "T3 positives b only": (0.249, 0.250, 0.258),
    "T3 both: common token": (0.541, 0.508, 0.491),
    "T4 positives common token": (0.543, 0.497, 0.503),
    "T4 negatives none": (0.501, 0.500, 0.501),
    "T4 negatives a only": (0.250, 0.249, 0.250),
    "T4 negatives b only": (0.249, 0.252, 0.249),
    "T6 negatives wrong": (0.501, 0.504, 0.500),
    "T6 negatives a only": (0.249, 0.253, 0.254),
    "T6 negatives b only": (0.250, 0.243, 0.246),
    "T6 negatives none": (0.0, 0.0, 0.0),
    "T6 positives common token": (0.081, 0.0, 0.0),
    "T6 wrong order, common token, even ids": (330 / 12605, 0.0, 0.0),
    "T6 wrong order, common token, odd ids": (0.0, 0.0, 0.0),
    "T5 positives, other none": (0.182, 0.388, 0.199),
    "T5 positives, other one": (0.497, 0.612, 0.801),
    "T5 positives, other both": (0.321, 0.0, 0.0),
    "T5 negatives none+none": (0.178, 0.181, 0.071),
    "T5 negatives none+one": (0.507, 0.507, 0.505),
    "T5 negatives one+one": (0.315, 0.313, 0.424),
    "T7 positives, other right": (0.187, 0.0, 0.0),
    "T7 positives, other wrong": (0.136, 0.0, 0.0),
    "T7 positives, other one": (0.493, 0.611, 0.804),
    "T7 positives, other none": (0.185, 0.389, 0.196),
    "T7 negatives, a pair complete": (0.57, 0.506, 0.490),
    "T7 positives, token with both pairs": (None, 0.332, 0.331),
    "T7 negatives, token with both pairs": (None, 0.0, 0.0),
}

# Shares of 1, 2, 3, 4 occurrences of forced features, training data of length 5.
OCCURRENCES = {
    "T2 positives": (0.517, 0.355, 0.112, 0.015),
    "T4 positives": (0.561, 0.323, 0.101, 0.014),
    "T6 positives": (0.611, 0.307, 0.076, 0.006),
    "T6 wrong order, a": (0.722, 0.233, 0.042, 0.002),
    "T6 wrong order, b": (0.744, 0.217, 0.037, 0.002),
    "T4 one feature": (0.51, 0.335, 0.125, 0.02),
    "T6 one feature": (0.51, 0.335, 0.125, 0.02),
}

# Mean number of excluded features among those that are not relevant: training length 5, evaluation length 10.
EXCLUDED = {
    "T1": {"yes": (3.49, 3.50), "no": (2.51, 2.46)},
    "T2": {"yes": (3.98, 4.00), "no/none": (1.97, 2.01), "no/one": (3.02, 2.99)},
    "T3": {"yes/both": (3.75, 3.80), "yes/one": (2.83, 2.81), "no": (1.90, 1.82)},
    "T4": {"yes": (3.28, 3.28), "no/none": (1.41, 1.44), "no/one": (2.34, 2.37)},
    "T5": {"yes": (3.50, 3.10), "no": (1.79, 1.75)},
    "T6": {"yes": (3.80, 3.75), "no/wrong": (3.77, 3.74), "no/one": (3.34, 3.36)},
    "T7": {"yes": (3.50, 3.11), "no": (3.26, 2.89)},
}

# Accuracy of shortcut rules on evaluation data, %, lengths 5 and 10: the shortcut's name here, task, figures.
SHORTCUTS = [
    ("one feature: a present", "T2", (87.5, 87.7)),
    ("one feature: b present", "T2", (87.5, 87.7)),
    ("one feature: a present", "T3", (87.3, 87.5)),
    ("one feature: a present", "T4", (87.5, 87.6)),
    ("one feature: b present", "T4", (87.5, 87.6)),
    ("one feature: a present", "T6", (62.6, 62.4)),
    ("any relevant feature present", "T2", (74.6, 75.4)),
    ("any relevant feature present", "T4", (75.1, 75.1)),
    ("any relevant feature present", "T5", (61.8, 56.8)),
    ("any relevant feature present", "T6", (50.3, 49.9)),
    ("any relevant feature present", "T7", (50.1, 49.8)),
    ("a pair complete, order ignored", "T6", (75.0, 75.0)),
    ("a pair complete, order ignored", "T7", (74.8, 75.2)),
    ("a pair in one token", "T2", (75.5, 75.2)),
    ("a pair in one token", "T4", (74.8, 75.1)),
    ("a pair in one token", "T5", (75.0, 75.3)),
    ("one feature per pair, either present", "T5", (77.1, 73.3)),
    ("one feature per pair, either present", "T7", (59.2, 57.65)),
    ("first pair complete", "T5", (75.2, 75.4)),
    ("first pair complete", "T7", (62.3, 62.9)),
    ("position of a", "T6", (80.4, 77.8)),
    ("at least 3 of 4 present", "T5", (83.7, 91.8)),
]

# Fingerprints of the first block of each preset and task at length 10: train, then ood/single. A change is a decision.
GOLDEN: dict[str, tuple[str, str]] = {
    "T1 clean": ("4bc2e065966a0d1e08c376d89a5fd403", "2b09ce5ca8d6a87d8d76c36580eeed78"),
    "T2 clean": ("b65dbe13af573f35a671a162a3ca645f", "e322f846e0ca84dcc21f004d7dd523f0"),
    "T3 clean": ("7d32c09541c6b366e32b1d9a5ddff42a", "a60df2c183dd55de2513d42e91e67036"),
    "T4 clean": ("bd73a55d9cbf95834fc1c4694b56a174", "eed7d322c5424d35dbc032e105afe358"),
    "T5 clean": ("e5b999d751a5ff9572aff13637f54f09", "032bb495d4af42e4b2a25b2cf4ba19d6"),
    "T6 clean": ("771097945ea9c03874f9b148d9849f7c", "56cd66c26ae2b417fa40058d8ef43d25"),
    "T7 clean": ("e65b22da08dd13aed4d71c310b48e118", "530d0664a67836c60d6684139e51f5f8"),
    "T1 released": ("9117e36883e03e53f4021be7a59e1db5", "17c47ad3a3891920fb02cd598c28f93c"),
    "T2 released": ("f33443ccadc5c2e6dc95e14fad39f11a", "dacabaf7ab755179c32bd4d8756e9dc0"),
    "T3 released": ("4c2a78edefb9e93944a2a9880398b77b", "4eab98fd5473bc4b909bccd2cfbf786e"),
    "T4 released": ("723453ac3f23a5c4d0fa9a48eeb21386", "cc15f75897941a4a10050ef7849a6d25"),
    "T5 released": ("be0da0d6e7ddfca707530471dd86c21e", "1bdb323ac973a3bdc27006deb244366e"),
    "T6 released": ("62c94774082004840229c2da5ad96819", "cf46a3f971b56d6b8c2b82bb97d6b07b"),
    "T7 released": ("67370ef297fc8d7ec6db78851d14e848", "f237b6dd58f154e7da3615014020ec58"),
    "T1 paper": ("06057d41ba632d0877de6b588fb68c1a", "fdff1080fd88e9bbfba5bba8d06f1fa2"),
    "T2 paper": ("2a78965ae50014505c998808108b972e", "8c4d4a22359675f32edeb3903cc433df"),
    "T3 paper": ("e0581f887de4e8f706bebe7e7c23a61f", "026f1d6a95ab448839ea3ee286a2f170"),
    "T4 paper": ("822684f55239a76712c1c7a1ade013ef", "c7dab42d57ac540547a44aeba45c68ea"),
    "T5 paper": ("85be56b20207f6e0fb8e4aa82f491d92", "785d11e5f13eb58a183d4c5af875c072"),
    "T6 paper": ("d57d2cc77d0ba20c1e1e2801ec518966", "f92697a9ab46e32e0a926d53bffd3871"),
    "T7 paper": ("fc0fae43862569117e4b823d0f2f1472", "b6c36a21752902924c0feb8298f90d2c"),
}
