"""The schema: codes, classes and the two ways to number cells."""

from __future__ import annotations

import numpy as np
import pytest

from support.gcog_cases import PAPER, PUBLISHED, SCHEMAS, get_code
from unseen.tasks.gcog.schema import COLORS, FEATURES, LETTERS, STANDARD, Schema, build_operators


def test_the_paper_has_138_answers_in_a_fixed_order() -> None:
    assert len(PAPER.answers) == 138
    assert PAPER.answers[:2] == (True, False)
    assert PAPER.answers[2:4] == ((0, 0), (1, 0)) and PAPER.answers[101] == (9, 9)
    assert PAPER.answers[102] == ("shape", "a") and PAPER.answers[127] == ("shape", "z")
    assert PAPER.answers[128] == ("color", "red") and PAPER.answers[137] == ("color", "brown")
    assert [kind for kind, _ in FEATURES] == ["shape", "color"]
    assert " ".join(list(COLORS)[:10]) == "red green blue yellow purple orange white pink cyan brown"


def test_published_targets_have_the_classes_of_the_schema() -> None:
    for sample in PUBLISHED:
        target = sample["target"]
        value = {
            "boolean": target["value"],
            "location": tuple(target["value"] if target["kind"] == "location" else ()),
            "shape": ("shape", target["value"]),
            "color": ("color", target["value"]),
        }[target["kind"]]
        assert PAPER.answers.index(value) == target["index"]
        assert PAPER.answer_kinds[target["index"]] == target["kind"]


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_cells_run_down_the_columns_and_answers_along_the_rows(schema: Schema) -> None:
    for x in range(schema.columns):
        for y in range(schema.rows):
            cell = schema.cell(x, y)
            assert cell == schema.rows * x + y and schema.coordinates(cell) == (x, y)
            assert schema.answers[schema.location_answer(cell)] == (x, y)
    assert schema.location_answer(np.arange(schema.cells)).tolist() != list(range(2, 2 + schema.cells))
    for feature, (name, values) in enumerate(schema.features):
        for code, value in enumerate(values, 1):
            assert schema.answers[schema.value_answer(feature, code)] == (name, value)
            assert get_code(schema, feature, value) == code


def test_codes_of_the_operators() -> None:
    codes = {name: PAPER.operators[name].code for name in PAPER.operators}
    assert codes == {
        "Exist": 1,
        "GetLocation": 2,
        "GetColor": 3,
        "GetShape": 4,
        "SumEven": 5,
        "ProductEven": 6,
        "ProductOdd": 7,
        "SumOdd": 8,
        "ExistAnd": 10,
        "ExistOr": 11,
        "ExistXor": 12,
        "IsColor": 13,
        "IsShape": 14,
        "SameColor": 15,
        "SameShape": 16,
        "NotSameColor": 17,
        "NotSameShape": 18,
        "AddEqual": 19,
        "SubtractEqual": 20,
        "MultiplyEqual": 21,
    }
    assert tuple(sorted(STANDARD, key=codes.__getitem__)) == STANDARD
    assert sum(operator.boolean for name, operator in PAPER.operators.items() if name in STANDARD) == 5
    assert all(operator.boolean for name, operator in PAPER.operators.items() if name not in STANDARD)


def test_further_features_keep_the_old_codes() -> None:
    more = build_operators(["shape", "color", "size", "texture"])
    assert {name: more[name].code for name in PAPER.operators} == {n: o.code for n, o in PAPER.operators.items()}
    assert len({operator.code for operator in more.values()}) == len(more) == len(PAPER.operators) + 8
    assert (
        more["GetTexture"].named_features == (0,)
        and more["GetShape"].named_features == (1,)
        and more["Exist"].named_features == (0, 1, 2, 3)
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"features": FEATURES[::-1]}, "expected shape, color and then further features"),
        ({"features": (("shape", LETTERS), ("color", ("red", "gren")))}, "unknown color 'gren'. Did you mean 'green'"),
        ({"features": (("shape", ("a",)), FEATURES[1])}, "shape needs 2 to 255 values, got 1"),
        (
            {"features": (*FEATURES, ("size", ("big", "Small")))},
            "expected values of lower-case ASCII letters, got size 'Small'",
        ),
        ({"features": (*FEATURES, ("size", ("big", "object")))}, "expected values of lower-case ASCII letters"),
        ({"features": (*FEATURES, ("fruit", ("orange", "lemon")))}, "the value 'orange' occurs twice"),
        ({"features": (*FEATURES, ("Size", ("big", "small")))}, "expected names of lower-case ASCII letters"),
        ({"columns": 1}, "at least 2 columns and 2 rows, got 1 × 10"),
        ({"enabled": ("Exists",)}, "unknown operator 'Exists'. Did you mean 'Exist'"),
        ({"enabled": ("Exist", "Exist")}, "at least one operator and none twice"),
        ({"enabled": ()}, "at least one operator and none twice"),
    ],
)
def test_what_makes_no_sense_is_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Schema(**change)


def test_colours_are_those_of_the_release() -> None:
    assert COLORS["lavender"] == (230, 190, 255) and COLORS["coral"] == (255, 215, 180)
