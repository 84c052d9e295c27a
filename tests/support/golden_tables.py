"""Golden fingerprints of the families groups and recall: a change is a decision."""

from __future__ import annotations

GROUPS = {
    "Z2": (
        "6f147293313237b9a67a653fb291e65e",
        "26581f501ab7168850d975b8ddcea4a0",
    ),
    "S3": (
        "a3a8b3052a5bb757cc0879d5eaca07db",
        "734d4ec2591756fd9788fff6a78c374f",
    ),
    "A5": (
        "ee8e14ddd4f3576eecb78f09363031f6",
        "27be5ea1329b5b3f6a6b251531be0d92",
    ),
    "S5": (
        "afee00ebb383e540100caef66f1a33b3",
        "8ce1f4c9976cbbe61d59f2fde644b18f",
    ),
    "own": (
        "86b5d563e2e9025043d42c17ad95ed44",
        "cf82c971ab1be75838e5de245523328f",
    ),
}
"""Of `train` and `ood/twice`."""
RECALL = {
    "train": "d11d55ec589d1e27cbf88faba974857f",
    "iid": "bcbb056888140d7a490214e8c01b9fa8",
    "ood/pairs": "38122ed584d76a95acdacc6f8e8683b2",
    "ood/longer": "530f402b90bb1ce89a24f352ac0f76ca",
    "ood/more": "7d9fa7a37fd1ae470826868382ab8cdf",
}
