"""Over three hundred wrong inputs to all commands: no traceback, exit code 2 (1 for a failed check), nothing left behind."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from typer.main import get_command

from support.finished_store import fill_store
from support.program import inside
from support.small import STUDY
from unseen.cli.main import app
from unseen.store.store import Store

BASE = "base: {task: {name: retrieval/T1, length: 3}, model: {name: lstm, width: 4}, recipe: {steps: 2, batch: 4}}\n"
ANCHORS = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 10)
)
TEN_AXES = "".join(f"  a{i}: {{{', '.join(f'l{j}: {{}}' for j in range(10))}}}\n" for i in range(10))
FILES = {
    "anchors.yaml": f"study: x\n{ANCHORS}",
    "ten_axes.yaml": f"study: x\n{BASE}axes:\n{TEN_AXES}",
    "seeds.yaml": f"study: x\nseeds: 1000000000\n{BASE}",
    "minutes.yaml": f"study: x\n{BASE}scales: {{mini: {{minutes: 1e999}}}}\n",
    "tag.yaml": "study: !!int zzz\n",
    "deep.yaml": "study: " + "[" * 5000,
    "surrogate.yaml": f'study: x\nquestion: "\\ud800"\n{BASE}',
    "python_tag.yaml": "study: !!python/object/apply:os.system [ls]\n",
    "cycle.yaml": "study: &a [*a]\n",
    "empty.yaml": "",
    "list.yaml": "- 1\n",
    "wide.yaml": f"study: x\n{BASE.replace('width: 4', 'width: 1000000')}",
    "good.yaml": f"study: good\n{BASE}axes: {{task.length: [3, 4]}}\nscales: {{smoke: {{seeds: 1}}}}\n",
    "dotted.yaml": f"study: x\n{BASE}axes: {{width: {{narrow: {{model.width: 8}}}}}}\n",
    "unknown_axis.yaml": f"study: x\n{BASE}axes: {{task.lenght: [3, 4]}}\n",
    "twice.yaml": f"study: x\nstudy: y\n{BASE}",
    "no_model.yaml": "study: x\nbase: {task: {name: retrieval/T1}}\n",
    "claims_text.yaml": f"study: x\n{BASE}claims: attention helps\n",
    "boolean.yaml": f"study: x\n{BASE.replace('length: 3', 'length: true')}",
    "raises.py": "raise SystemError('no')\n",
    "exits.py": "raise SystemExit(0)\n",
    "model_raises.py": """
from torch import nn

class Model(nn.Module):
    def __init__(self, spec):
        super().__init__()
        self.answer = nn.Linear(1, 1)

    def forward(self, inputs):
        raise TypeError("no such stream")

class Exits(Model):
    def forward(self, inputs):
        raise SystemExit(0)

class ExitsAtOnce(nn.Module):
    def __init__(self, spec):
        raise SystemExit(0)
""",
    "own_model.yaml": f"study: x\n{BASE.replace('lstm, width: 4', 'model_raises:Model')}",
    "long_name.yaml": f"study: {'x' * 10_000}\n{BASE}",
    "unknown_claim.yaml": f"study: x\n{BASE}claims: [retrieval/C99]\n",
    "wrong_claim.yaml": f"study: x\n{BASE}claims: [{{text: 1}}]\n",
    "nothing.py": "study = 3\n",
    "notes.txt": "mine\n",
    "broken.jsonl": "{\n",
    "key.jsonl": '{"tree": {"op": "Exist", "objects": [{"shape": "v", "color": "blue"}]}, "objects": '
    '[{"shape": "v", "color": "blue", "x": 1, "y": 2, "colour": "red"}], "target": 0}\n',
    "mapping.txt": "0\t0 99\n",
    "world.json": '{"symbols": ' + "[" * 3000,
}
LONG = "9" * 5000
SMALL = ["--steps", "1", "--seeds", "1", "--set", "length=3", "--set", "train_size=10", "--set", "evaluation_size=10"]
TRAIN = ["train", "retrieval/T1", "lstm", "--out", "new", *SMALL]

CASES: list[list[str]] = [
    # devices, executors, sizes
    [*TRAIN, "--device", "cuda"],
    [*TRAIN, "--device", "cdua"],
    [*TRAIN, "--set", "analyses=specialization"],
    ["train", "rules/mlp", "rules-mlp", "--out", "new", "--steps", "1", "--set", "analyses=R1"],
    [*TRAIN, "--device", "meta"],
    [*TRAIN, "--device", "cpu:zero"],
    [*TRAIN, "--device", ""],
    ["run", "good.yaml", "--out", "new", "--device", "cuda"],
    ["run", "good.yaml", "--out", "new", "--device", "cdua"],
    ["run", "good.yaml", "--out", "new", "--executor", "inline", "--device", "meta"],
    ["run", "good.yaml", "--out", "new", "--executor", "slrum"],
    ["run", "good.yaml", "--out", "new", "--address", "auto"],
    ["run", "good.yaml", "--out", "new", "--executor", "ray", "--address", "10.0.0.1"],
    ["run", "good.yaml", "--out", "new", "--executor", "ray", "--address", "127.0.0.1:1"],
    ["run", "good.yaml", "--out", "new", "--executor", "ray", "--address", "http://127.0.0.1:8265"],
    ["run", "good.yaml", "--out", "new", "--executor", "slurm", "--address", "missing.yaml"],
    ["run", "good.yaml", "--out", "new", "--workers", "0"],
    ["run", "good.yaml", "--out", "new", "--stack", "-1"],
    ["run", "good.yaml", "--out", "new", "--chunk-seconds", "nan"],
    ["run", "good.yaml", "--out", "new", "--weights", "some"],
    ["run", "good.yaml", "--out", "new", "--track", "tensorbord"],
    ["exam", "lstm", "--scale", "smoke", "--out", "new", "--device", "cdua"],
    ["exam", "lstm", "--scale", "smoke", "--out", "new", "--set", "width=10000000"],
    ["exam", "lstm", "--scale", "small", "--out", "new"],
    ["exam", "nothing:Model", "--out", "new"],
    ["tune", "retrieval/T1", "lstm", "--steps", "2", "--out", "new", "--device", "cuda"],
    ["tune", "retrieval/T1", "lstm", "--steps", "2", "--out", "new", "--set", "width=10000000"],
    ["tune", "retrieval/T1", "lstm", "--steps", "2", "--out", "new", "--budget", "0"],
    ["tune", "retrieval/T1", "lstm", "--steps", "2", "--out", "new", "--search", "learning_rate=1..0"],
    [*TRAIN, "--set", "width=1000000000"],
    [*TRAIN, "--set", "layers=99999999"],
    [*TRAIN, "--set", "width=1000000"],
    ["train", "retrieval/T1", "lstm", "--out", "new", "--set", "length=50000"],
    ["train", "retrieval/T1", "transformer", "--out", "new", "--set", "length=20000", "--set", "evaluation_size=9"],
    [*TRAIN, "--set", "batch=1000000000"],
    ["run", "wide.yaml", "--out", "new"],
    ["plan", "wide.yaml", "--no-probe"],
    ["bench", "lstm", "--set", "width=1000000"],
    ["bench", "lstm", "--json", "no/such/file.json"],
    # values
    [*TRAIN, "--set", "task.length=true"],
    [*TRAIN, "--set", f"clip={LONG}"],
    [*TRAIN, "--set", f"clip={'[' * 5000}"],
    [*TRAIN, "--set", "clip=1e999"],
    [*TRAIN, "--set", "batch=99999999999999999999999"],
    [*TRAIN, "--set", 'preset="\\ud800"'],
    [*TRAIN, "--set", "width"],
    [*TRAIN, "--set", "=3"],
    [*TRAIN, "--set", "widht=3"],
    [*TRAIN, "--set", "analyses=specialisation"],
    ["train", "retrieval/T1", "lstm", "--out", "new", "--seeds", "1000000000"],
    ["train", "retrieval/T1", "lstm", "--out", "new", "--seeds", LONG],
    ["train", "retrieval/T1", "lstm", "--out", "new", "--seeds", "1,1"],
    ["train", "retrieval/T1", "lstm", "--out", "new", "--seeds", "99999999999999999999,"],
    ["train", "retrieval/T1", "lstm", "--out", "new", "--seeds", "-3,"],
    ["train", "retrieval/T1", "lstm", "--out", "new", "--seeds", ","],
    ["train", "retrieval/T1", "lstm", "--out", "new", "--data-seed", "-1"],
    ["train", "retrieval/T1", "lstm", "--out", "new", "--recipe", "slow"],
    ["train", "retrieval", "lstm", "--out", "new"],
    ["train", "retrieval/T1", "lsmt", "--out", "new"],
    ["train", "retrieval/T1", "notes.txt:Model", "--out", "new"],
    ["train", "retrieval/T1", "lstm", "--out", "notes.txt"],
    ["train", "retrieval/T1", "lstm", "--out", "folder"],
    ["train", "retrieval/T1", "lstm", "--out", "notes.txt/new"],
    # studies
    ["plan", "anchors.yaml"],
    ["plan", "ten_axes.yaml"],
    ["plan", "seeds.yaml"],
    ["plan", "minutes.yaml"],
    ["plan", "tag.yaml"],
    ["plan", "deep.yaml"],
    ["plan", "surrogate.yaml"],
    ["plan", "python_tag.yaml"],
    ["plan", "cycle.yaml"],
    ["plan", "empty.yaml"],
    ["plan", "list.yaml"],
    ["plan", "boolean.yaml"],
    ["plan", "raises.py"],
    ["plan", "nothing.py"],
    ["plan", "missing.yaml"],
    ["plan", "good.yaml", "--seeds", "1000000000"],
    ["plan", "quickstart@7"],
    ["run", "anchors.yaml", "--out", "new"],
    ["run", "ten_axes.yaml", "--out", "new"],
    ["run", "quikstart", "--out", "new"],
    ["run", "quickstart", "--scale", "huge", "--out", "new"],
    ["run", "quickstart", "--scale", "smoke", "--out", "folder"],
    ["run", "quickstart", "--scale", "smoke", "--out", "new", "--only", "variant"],
    ["run", "quickstart", "--scale", "smoke", "--out", "new", "--only", "variant=none"],
    ["run", "quickstart", "--scale", "smoke", "--out", "new", "--only", "variants=T+Pos+Att"],
    ["run", "quickstart", "--scale", "smoke", "--out", "new", "--set", "stepps=3"],
    ["run", "quickstart", "--scale", "smoke", "--out", "new", "--set", "self_attention=true"],
    ["studies", "quikstart"],
    # tasks
    ["show", "ctl"],
    ["show", "T6"],
    ["show", "gcog/distractor", "--set", "grid=6"],
    ["show", "ctl/A", "--set", "symbols=100000"],
    ["show", "retrieval/T1", "--set", "length=50000000"],
    ["show", "retrieval/T1", "--set", "length=50000"],
    ["show", "retrieval/T1", "--set", f"length={LONG}"],
    ["show", "retrieval/T4", "--set", "mapping=/dev/zero"],
    ["show", "retrieval/T4", "--set", "mapping=mapping.txt"],
    ["show", "ctl/A", "--set", "world=/dev/zero"],
    ["show", "ctl/A", "--set", "world=world.json"],
    ["show", "rules/mlp", "--set", "rules=1000000000"],
    ["show", "retrieval/T1", "-n", "0"],
    ["show", "retrieval/T1", "-n", "1000000000"],
    ["show", "retrieval/T1", "--start", "-1"],
    ["show", "retrieval/T1", "--data-seed", "-1"],
    ["show", "retrieval/T1", "-n", "1", "--format", "svg", "--out", "page.docx"],
    ["show", "retrieval/T1", "-n", "1", "--out", "link"],
    ["show", "retrieval/T1", "-n", "1", "--out", "no/such/file"],
    ["verify", "retrieval/T4", "--data", "broken.jsonl"],
    ["verify", "gcog", "--data", "key.jsonl"],
    ["verify", "ctl/A", "--data", "notes.txt", "--world", "world.json"],
    ["verify", "retrieval/T4", "--mapping", "mapping.txt"],
    ["verify", "nothing"],
    ["export", "retrieval/T1", "--format", "jsonl", "--out", "folder", "-n", "3"],
    ["export", "retrieval/T1", "--format", "jsonl", "--out", "new", "-n", "-3"],
    ["export", "retrieval/T1", "--format", "jsonl", "--out", "new", "--data-seed", "mine"],
    ["export", "ctl", "--format", "jsonl", "--out", "new"],
    # looking
    ["results", "nothing"],
    ["results", "folder"],
    ["results", "store", "--format", "csv", "--out", "table.docx"],
    ["results", "store", "--format", "csv", "--out", "link"],
    ["results", "store", "--format", "latex", "--out", "table.csv"],
    ["results", "store", "--format", "parquet"],
    ["results", "store", "--grid", "rate"],
    ["results", "store", "--votes"],
    ["results", "text"],
    ["report", "store", "--out", "page.docx"],
    ["report", "store", "--out", "link"],
    ["report", "store", "--out", "/dev/full"],
    ["report", "store", "--out", "no/such/page.html"],
    ["report", "store", "--scale", "huge"],
    ["report", "store", "--figure", "seeds", "--out", "figure.docx"],
    ["report", "store", "--figure", "seedz", "--out", "figure.svg"],
    ["compare", "store", "nothing"],
    ["compare", "store", "store", "--metric", "acuracy"],
    ["compare", "store", "store", "--format", "latex", "--out", "page.docx"],
    ["claims", "nothing"],
    ["claims", "--out", "claims.docx"],
    ["merge", "store", "nothing", "--out", "new"],
    ["track", "store", "--to", "nothing"],
    ["new", "task", "../elsewhere"],
    ["new", "tsak", "mine"],
    ["check", "nothing:Model"],
    # more of every kind
    ["tasks", "retrieval/T9"],
    ["tasks", "retrieval/T1", "extra"],
    ["models", "lsmt"],
    ["models", "nothing:Model"],
    ["models", ""],
    ["studies", "missing.yaml"],
    ["show", ""],
    ["show", "retrieval/T1", "--split", "odd"],
    ["show", "retrieval/T1", "--set", "length=0"],
    ["show", "retrieval/T1", "--set", "length=-5"],
    ["show", "retrieval/T1", "--set", "length=2.5"],
    ["show", "retrieval/T1", "--set", "length=five"],
    ["show", "retrieval/T1", "--set", "length=null"],
    ["show", "retrieval/T1", "--set", "features=1"],
    ["show", "retrieval/T1", "--set", "preset=dirty"],
    ["show", "retrieval/T4", "--set", "mapping=folder"],
    ["show", "retrieval/T4", "--set", "mapping=missing.txt"],
    ["show", "rules/mlp", "--set", "rules=0"],
    ["show", "rules/mlp", "--set", "setting=both"],
    ["show", "ctl/A", "--set", "world=folder"],
    ["show", "ctl/A", "--set", "symbols=1"],
    ["show", "gcog/distractor", "--set", "grid=[0,0]"],
    ["show", "gcog/distractor", "--set", "grid=[1,2,3]"],
    ["show", "retrieval/T1", "-n", "two"],
    ["show", "retrieval/T1", "--start", "99999999999999999999"],
    ["show", "retrieval/T1", "--format", "gif"],
    ["show", "retrieval/T1", "-n", "1", "--out", "folder"],
    ["verify", "retrieval/T1", "-n", "-1"],
    ["verify", "retrieval/T1", "-n", "0"],
    ["verify", "retrieval/T1", "--data", "missing.jsonl"],
    ["verify", "retrieval/T1", "--data", "folder"],
    ["verify", "retrieval/T1", "--data", "/dev/zero"],
    ["verify", "ctl/A", "--world", "missing.json"],
    ["verify", "gcog/distractor", "--ties", "largest", "--data", "key.jsonl"],
    ["verify", "rules/mlp", "--data", "notes.txt"],
    ["export", "retrieval/T1", "--format", "jsonl", "--out", "notes.txt", "-n", "3"],
    ["export", "retrieval/T1", "--format", "jsonl", "--out", ".", "-n", "3"],
    ["export", "retrieval/T1", "--format", "xml", "--out", "new"],
    ["export", "retrieval/T1", "--format", "jsonl", "--out", "new", "--split", "odd"],
    ["export", "ctl/A", "--format", "tsv", "--out", "new", "-n", "3"],
    ["export", "retrieval/T1", "--format", "jsonl", "--out", "notes.txt/new", "-n", "3"],
    [*TRAIN, "--set", "steps=0"],
    [*TRAIN, "--steps", "-1"],
    [*TRAIN, "--set", "learning_rate=0"],
    [*TRAIN, "--set", "learning_rate=nan"],
    [*TRAIN, "--set", "learning_rate=-1"],
    [*TRAIN, "--set", "learning_rate=fast"],
    [*TRAIN, "--set", "batch=0"],
    [*TRAIN, "--set", "width=0"],
    [*TRAIN, "--set", "width=4.5"],
    [*TRAIN, "--set", "validate_every=0"],
    [*TRAIN, "--set", "model.length=4"],
    [*TRAIN, "--set", "nothing.width=4"],
    [*TRAIN, "--set", "name=gru"],
    [*TRAIN, "--track", "wandb:notes.txt"],
    [*TRAIN, "--executor", "cloud"],
    [*TRAIN, "--workers", "-2"],
    ["train", "retrieval/T1", "raises:Model", "--out", "new"],
    ["train", "retrieval/T1", "nothing:study", "--out", "new"],
    ["train", "retrieval/T1", "rules-mlp", "--out", "new"],
    ["train", "retrieval/T1", "--out", "new"],
    ["train", "retrieval/T1", "lstm", "--out", "store"],
    ["train", "retrieval/T1", "lstm", "--out", "link"],
    ["plan", "folder"],
    ["plan", "notes.txt"],
    ["plan", "quickstart", "--scale", ""],
    ["plan", "quickstart", "--workers", "0"],
    ["plan", "dotted.yaml"],
    ["plan", "unknown_axis.yaml"],
    ["plan", "twice.yaml"],
    ["plan", "no_model.yaml"],
    ["plan", "claims_text.yaml"],
    ["run", "good.yaml", "--out", "new", "--set", "model.width=0"],
    ["run", "good.yaml", "--out", "new", "--only", "task.length=5"],
    ["run", "good.yaml", "--out", "new", "--hours", "-1"],
    ["run", "good.yaml", "--out", "new", "--hours", "nan"],
    ["run", "good.yaml", "--out", "new", "--reuse", "nothing"],
    ["run", "good.yaml", "--out", "new", "--reuse", "notes.txt"],
    ["run", "good.yaml", "--out", "store"],
    ["run", "good.yaml", "--out", "new", "--until-decided"],
    ["run", "good.yaml", "--out", "new", "--extend"],
    ["run", "good.yaml"],
    ["exam", "lstm", "--scale", "smoke", "--out", "store"],
    ["exam", "lstm", "--scale", "smoke", "--out", "new", "--set", "depth=1"],
    ["exam", "raises:Model", "--out", "new"],
    ["tune", "retrieval/T1", "lstm", "--steps", "2", "--out", "new", "--vary", "gating=none"],
    ["tune", "retrieval/T1", "lstm", "--steps", "2", "--out", "new", "--search", "learning_rate"],
    ["tune", "retrieval/T1", "lstm", "--steps", "2", "--out", "new", "--set", "task_seed=3"],
    ["tune", "retrieval/T1", "lstm", "--steps", "2", "--out", "new", "--tasks", "0"],
    ["results", "notes.txt"],
    ["results", "store", "--curves", "--trials"],
    ["results", "store", "--format", "xml"],
    ["results", "store", "--grid", "rate,nothing"],
    ["results", "store", "--grid", "rate,rate", "--format", "csv"],
    ["results", "store", "--out", "store/store.sqlite"],
    ["results", "store", "--out", "good.yaml"],
    ["results", "empty_store"],
    ["report", "nothing"],
    ["report", "text"],
    ["report", "store", "--figure", "seeds"],
    ["report", "store", "--figures", "notes.txt"],
    ["report", "store", "--figures", "figures", "--out", "page.html"],
    ["report", "store", "--out", "folder"],
    ["compare", "store"],
    ["compare", "store", "text"],
    ["compare", "store", "store", "--split", "odd"],
    ["claims", "store", "--file", "missing.yaml"],
    ["claims", "store", "--file", "good.yaml"],
    ["claims", "store", "--file", "anchors.yaml"],
    ["claims", "text"],
    ["merge", "store", "nothing", "--into", "new"],
    ["merge", "store", "text", "--into", "new"],
    ["merge", "store", "--into", "folder"],
    ["merge", "store", "--into", "store"],
    ["merge", "store", "--into", "notes.txt"],
    ["track", "store", "--to", "tensorboard", "--out", "notes.txt"],
    ["track", "nothing", "--to", "tensorboard", "--out", "new"],
    ["records", "add", "nothing"],
    ["records", "add", "text", "--out", "new"],
    ["records", "add", "store", "--out", "notes.txt"],
    ["records", "list", "notes.txt"],
    ["records", "list", "folder"],
    ["records", "check", "missing.zip"],
    ["records", "check", "--store", "store"],
    ["records", "remove", "store"],
    ["new", "model", "lstm"],
    ["new", "model", "My Model"],
    ["new", "model", "mine", "--study", "quickstart"],
    ["new", "claim", "mine", "--out", "good.yaml"],
    ["new", "claim", "mine", "--study", "quikstart"],
    ["new", "claim", "mine", "--out", "claim.txt"],
    ["new", "study", "mine", "--out", "folder"],
    ["check", "no-such-package"],
    ["check", "raises:Model"],
    ["bench", "lsmt"],
    ["bench", "lstm", "--task", "retrieval/T9"],
    ["bench", "lstm", "--json", "notes.docx"],
    ["tasks", "--prefix", "retrieval"],
    ["tasks", "retrieval/T1", "--set", "length=0"],
    ["tasks", "a/b/c"],
    ["models", "lstm", "--set", "width=0"],
    ["models", "notes.txt"],
    ["studies", "deep.yaml"],
    ["studies", "raises.py"],
    ["studies", "quickstart@0"],
    ["inspect", "nothing"],
    ["inspect", "notes.txt"],
    ["inspect", "folder"],
    ["inspect", "store"],
    ["inspect", "store", "symbol[0]"],
    ["inspect", "store", "symbol[0]", "-n", "5"],
    ["inspect", "store", "symbol[0]", "--weights", "first"],
    ["inspect", "store", "symbol[0]", "--out", "link"],
    ["inspect", "store", "symbol[0]", "--out", "page.docx"],
    ["track", "store", "--to", "tensorboard", "--out", "folder/thesis.tex"],
    ["track", "text", "--to", "mlfow", "--out", "new"],
    ["check", "notes.txt"],
    ["check", ""],
    ["compare", "store", "store", "--selection", "first"],
    ["claims", "store", "--claim", "retrieval/C99"],
    ["claims", "notes.txt"],
    ["records", "check", "notes.txt"],
    ["records", "add", "store", "--out", "link"],
    # found by an audit
    ["plan", "exits.py"],
    ["studies", "exits.py"],
    ["models", "exits:Model"],
    ["train", "retrieval/T1", "exits:Model", "--out", "new"],
    ["run", "own_model.yaml", "--out", "new", "--executor", "inline"],
    ["tune", "retrieval/T1", "model_raises:Model", "--steps", "2", "--out", "new"],
    ["plan", "long_name.yaml", "--no-probe"],
    ["run", "long_name.yaml", "--out", "new", "--executor", "inline"],
    ["studies", "unknown_claim.yaml"],
    ["plan", "unknown_claim.yaml", "--no-probe"],
    ["run", "unknown_claim.yaml", "--out", "new", "--executor", "inline"],
    ["studies", "wrong_claim.yaml"],
    ["plan", "wrong_claim.yaml", "--no-probe"],
    ["plan", LONG],
    ["show", LONG],
    ["models", LONG],
    ["records", "check", "pipe"],
    ["claims", "pipe"],
    ["records", "check", "/dev/zero"],
    ["results", "no_tables"],
    ["track", "no_tables", "--to", "tensorboard", "--out", "new"],
    ["merge", "store", "--into", "loop"],
    ["export", "retrieval/T1", "--format", "jsonl", "-n", "3", "--out", "loop"],
    ["new", "model", "reader", "--out", "loop"],
    ["train", "retrieval/T1", "lstm", "--out", "loop"],
    ["report", "store", "--figures", "notes.txt/figures"],
    ["report", "store", "--figures", ""],
    ["track", "store", "--to", "tensorboard", "--out", ""],
    ["merge", "store", "--into", ""],
    ["doctor", "everything"],
    ["doctor", "--everything"],
    ["trian", "retrieval/T1", "lstm"],
    # found by a third one: an exit code of 0, and no word
    [*TRAIN[:2], "model_raises:Exits", *TRAIN[3:]],
    [*TRAIN[:2], "model_raises:ExitsAtOnce", *TRAIN[3:]],
    ["verify", "rules/mlp", "-n", "1000000000000"],
    ["bench", "lstm", "--stack", "1000000000"],
    ["plan", "good.yaml", "--no-probe", "--out", "notes.txt"],
    ["--verison"],
]


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a store, a store with a text where a number should be, and wrong files of every kind."""
    path = tmp_path_factory.mktemp("wrong")
    for name, text in FILES.items():
        (path / name).write_text(text)
    (path / "folder").mkdir()
    (path / "folder" / "thesis.tex").write_text("mine")
    (path / "link").symlink_to("notes.txt")
    (path / "loop").symlink_to("loop")
    os.mkfifo(path / "pipe")
    (path / "empty_store").mkdir()
    (path / "empty_store" / "store.sqlite").touch()
    for name in ("store", "text", "no_tables"):
        fill_store(STUDY.entries("smoke"), path / name)
    with Store.write(path / "text") as store:
        store._db.execute("UPDATE records SET value = 'much'")
        store._db.commit()
    with Store.write(path / "no_tables") as store:
        store._db.execute("DROP TABLE entries")
        store._db.commit()
    return path


def listed(path: Path) -> dict[str, bytes | None]:
    """Every file, and what it holds; not the journals of SQLite, which readers make."""
    files: dict[str, bytes | None] = {}
    for folder, _, names in os.walk(path):
        for name in names:
            if not name.endswith(("-wal", "-shm")) and "__pycache__" not in folder:
                file = Path(folder) / name
                files[str(file.relative_to(path))] = file.read_bytes() if file.is_file() else None
        files[f"{Path(folder).relative_to(path)}/"] = None
    return {name: data for name, data in files.items() if "__pycache__" not in name}


@pytest.mark.parametrize("arguments", CASES, ids=lambda case: " ".join(case)[:80])
def test_a_wrong_input_is_answered(arguments: list[str], there: Path) -> None:
    before = listed(there)
    done = inside(*arguments, cwd=there)
    assert done.returncode in (1, 2), done.stdout[-500:]
    assert "Traceback" not in done.stderr
    assert "error: " in done.stderr or "Usage:" in done.stderr
    assert len(done.stderr) < 4_000, done.stderr[:500]
    assert listed(there) == before


ANSWERS = {
    "tasks T6": "Did you mean retrieval/T6?",
    "tasks retreival": "Did you mean 'retrieval'?",
    "verify T6": "Did you mean retrieval/T6?",
    "models :Bag": "the module as Python imports it, and the class, like mine:Model",
    "models mine:": "the module as Python imports it, and the class, like mine:Model",
    "show retrieval/T6 --out x.docx": "this is written as text, not as docx; end it in .txt",
    "show retrieval/T6 --format html --out x.txt": "end it in .html or .htm",
    "inspect store --weights worst": "'worst' is not one of 'best', 'last'",
    "track store --to tensorboard --out good.yaml": "good.yaml is a file; give a directory for the logs",
    "plan wide.yaml --no-probe": "of memory; there are",
}


@pytest.mark.parametrize("command", ANSWERS)
def test_the_answer_says_what_to_do(command: str, there: Path) -> None:
    before = listed(there)
    done = inside(*command.split(), cwd=there)
    assert done.returncode == 2
    assert ANSWERS[command] in re.sub(r"[\s│]+", " ", done.stderr)  # Typer's errors are in boxes
    assert listed(there) == before


@pytest.mark.parametrize("command", ["results text", "report text", "claims text", "compare store text"])
def test_a_text_in_a_column_of_numbers_is_named_with_its_table(command: str, there: Path) -> None:
    done = inside(*command.split(), cwd=there)
    assert done.returncode == 1 and "could not convert" not in done.stderr
    assert "in its table records, the column value holds something that is not a number" in done.stderr


def test_to_show_a_long_example_is_refused_with_the_number_before_it_is_drawn(there: Path) -> None:
    done = inside("show", "retrieval/T1", "--set", "length=50000", cwd=there)
    assert "1,024 are drawn at once, which takes about 5." in done.stderr and " GB of memory" in done.stderr


def test_there_are_three_hundred_of_them_over_all_commands() -> None:
    assert len({tuple(case) for case in CASES}) == len(CASES) >= 300
    assert {case[0] for case in CASES} >= set(get_command(app).commands)  # type: ignore[attr-defined]
