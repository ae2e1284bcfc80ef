"""`Features`: several Specs under names, their columns, their files."""

import json
import pickle
import re
from pathlib import Path
from typing import Any

import pytest

import slidewise as sw

COUNT = {"n": sw.count()}
CARD = sw.Spec(on="t", by="card", windows=["1h", "1d"], aggs=COUNT)
SHOP = sw.Spec(on="t", by="shop", windows="1h", aggs={"sum": sw.sum("x")}, fill=0)
FEATURES = sw.Features(card=CARD, shop=SHOP)


def test_result_columns_begin_with_the_name() -> None:
    assert FEATURES.results == ("card_n_1h", "card_n_1d", "shop_sum_1h")
    own = sw.Features(
        a=CARD.replace(prefix="p_"),
        b=CARD.replace(names="{{{window}}} {group}: {agg}"),
        c=CARD.replace(names="{window}", prefix="p_"),
    )
    assert own.results == (
        *("a_p_n_1h", "a_p_n_1d"),
        *("{1h} b: n", "{1d} b: n"),
        *("c_p_1h", "c_p_1d"),
    )


def test_a_name_may_be_any_text() -> None:
    spec = CARD.replace(names="{group}/{window}")
    features = sw.Features(**{"a {b}": spec, "self": CARD})
    assert features.results[:3] == ("a {b}/1h", "a {b}/1d", "self_n_1h")
    assert sw.Features.from_json(features.to_json()) == features


def test_a_group_is_the_name_within_features_alone() -> None:
    spec = CARD.replace(names="{group}_{window}")
    assert spec.results == ("{group}_1h", "{group}_1d")
    assert sw.Spec.from_json(spec.to_json()) == spec
    uses: list[Any] = [
        lambda: sw.rolling({}, spec),
        lambda: sw.KeyedWindows(spec),
        lambda: sw.explain({}, spec),
        lambda: sw.KeyedWindows(
            on="t", windows=5, aggs=COUNT, names="{group}_{agg}_{window}"
        ),
    ]
    for use in uses:
        with pytest.raises(sw.SpecError, match=r"has \{group\}, the name of a Spec wi"):
            use()


def test_features_have_the_columns_of_all_specs() -> None:
    pair = SHOP.replace(by=["card", "shop"], arrival="came")
    features = sw.Features(pair=pair, card=CARD)
    assert (features.on, features.by) == ("t", ("card", "shop"))
    assert features.times == ("t", "came")
    assert features.columns == ("t", "card", "shop", "came", "x")
    assert not features.counts_ticks
    assert sw.Features(a=CARD.replace(windows=5)).counts_ticks


def test_equal_features_are_equal_in_all_forms() -> None:
    same = sw.Features(card=CARD, shop=SHOP)
    assert (same, hash(same), same.hash) == (FEATURES, hash(FEATURES), FEATURES.hash)
    assert pickle.loads(pickle.dumps(FEATURES)) == FEATURES
    assert sw.Features.from_json(FEATURES.to_json()).hash == FEATURES.hash
    assert repr(FEATURES) == f"Features(card={CARD!r}, shop={SHOP!r})"
    for other in (
        sw.Features(shop=SHOP, card=CARD),
        sw.Features(cards=CARD, shop=SHOP),
        sw.Features(card=CARD.replace(windows="1h"), shop=SHOP),
        sw.Features(card=CARD.replace(names="{group}{agg}{window}"), shop=SHOP),
    ):
        assert other != FEATURES
        assert other.hash != FEATURES.hash
    assert sw.Features(card=CARD.replace(overflow="null"), shop=SHOP).hash == same.hash


@pytest.mark.parametrize("name", ["features.json", "features.yaml"])
def test_a_saved_file_loads_as_it_was(tmp_path: Path, name: str) -> None:
    if name.endswith("yaml"):
        pytest.importorskip("yaml", reason="slidewise[yaml]")
    FEATURES.save(tmp_path / name)
    assert sw.Features.load(tmp_path / name) == FEATURES


def test_json_has_a_line_for_each_key_and_aggregation() -> None:
    assert FEATURES.to_json() == "\n".join(
        [
            "{",
            '  "version": 1,',
            '  "features": {',
            '    "card": {',
            '      "on": "t",',
            '      "by": "card",',
            '      "windows": ["1h", "1d"],',
            '      "aggs": {',
            '        "n": {"kind": "count"}',
            "      }",
            "    },",
            '    "shop": {',
            '      "on": "t",',
            '      "by": "shop",',
            '      "windows": "1h",',
            '      "aggs": {',
            '        "sum": {"kind": "sum", "column": "x"}',
            "      },",
            '      "fill": 0',
            "    }",
            "  }",
            "}",
            "",
        ]
    )


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"on": "t"}, "Features are a mapping with the key 'features'; got"),
        ([1], "Features are a mapping with the key 'features'; got"),
        ({"features": [1]}, "features=[1] is not a mapping from names to Specs"),
        ({"features": {}}, "Features are empty: give at least one Spec by name"),
        ({"features": {"a": 3}}, "features['a']: a Spec is a mapping with on"),
        (
            {"features": {"a": {"on": "t"}}},
            "features['a']: windows=, aggs= are missing",
        ),
        ({"features": {}, "on": "t"}, "unknown key 'on'"),
        ({"version": 9, "features": {}}, "version=9 was written by a later release"),
    ],
)
def test_a_wrong_document_is_refused(document: Any, message: str) -> None:
    with pytest.raises(sw.SpecError, match=re.escape(message)):
        sw.Features.from_json(json.dumps(document))


def test_a_spec_is_not_read_from_features() -> None:
    with pytest.raises(sw.SpecError, match=r"not a Spec: read them by sw\.Features"):
        sw.Spec.from_json(FEATURES.to_json())


def test_features_are_iterated_by_name() -> None:
    assert [*FEATURES] == ["card", "shop"]
    assert ("card" in FEATURES, "t" in FEATURES) == (True, False)
    assert FEATURES["card"] is CARD


@pytest.mark.parametrize(
    ("specs", "message"),
    [
        (
            {},
            "Features are empty: give at least one Spec by name, such as card=sw.Spec",
        ),
        ({"a": 3}, "a= takes a Spec, got 3"),
        ({"a": FEATURES}, "a= takes a Spec, got Features(card="),
        (
            {"a": CARD, "b": CARD.replace(on="u")},
            "a= has on='t', and b= has on='u': Features have one column of times",
        ),
        (
            {"a": sw.Spec(on="t", window="1h", aggs=COUNT)},
            "the windows of a= are not one per row, which those of Features are",
        ),
        (
            {"a_b": CARD, "a": CARD.replace(prefix="b_")},
            "the result column 'a_b_n_1h' would occur twice: give the Specs other",
        ),
    ],
)
def test_wrong_specs_are_refused(specs: Any, message: str) -> None:
    with pytest.raises(sw.SpecError, match=re.escape(message)):
        sw.Features(**specs)


def test_notebooks_show_specs_as_tables() -> None:
    spec = sw.Spec(
        on="t", windows="1h", aggs={"n<1": sw.count(where="a&b"), "m": sw.max("x")}
    )
    rows = (
        "<tr><td>on</td><td>&#x27;t&#x27;</td></tr>"
        "<tr><td>windows</td><td>&#x27;1h&#x27;</td></tr>"
        "<tr><td>n&lt;1</td><td>count(where=&#x27;a&amp;b&#x27;)</td></tr>"
        "<tr><td>m</td><td>max(&#x27;x&#x27;)</td></tr>"
    )
    assert spec._repr_html_() == f"<table>{rows}</table>"
    named = "<tr><th colspan=2>all</th></tr>"
    assert sw.Features(all=spec)._repr_html_() == f"<table>{named}{rows}</table>"
