"""Pictures are well-formed, complete for small windows, and of bounded size."""

import random
import xml.etree.ElementTree as ET
from datetime import datetime, timedelta
from itertools import pairwise

import pytest

import slidewise as sw

NS = "{http://www.w3.org/2000/svg}"


def texts(window):
    root = ET.fromstring(window.to_svg())
    return [element.text for element in root.iter(f"{NS}text")]


def window(count, agg=None, **options):
    w = sw.Window(agg or sw.sum(), **options)
    for time in range(count):
        w.insert(time, time)
    return w


def test_a_small_window_shows_every_entry():
    shown = texts(window(5))
    for text in ("0 1 2 3 4", "↑ both fingers", "5 entries", "Π 10"):
        assert text in shown


def test_spines_fingers_and_arity():
    w = window(400)
    shown = texts(w)
    capacity, arity, nodes = w._shape()
    leaves = [node for node in nodes if node[0] == 0]
    assert sum(len(node[2]) for node in leaves) == 400
    assert f"{len(nodes[0][3])} children" in shown
    assert f"a leaf holds up to {capacity} entries" in shown[1]
    assert f"an inner node up to {arity} children" in shown[1]
    kinds = [text[:2] for text in shown if text.startswith("Π")]
    assert {"Π ", "Π↑", "Π↙", "Π↘"} == set(kinds)
    ends = [(node[2][0], node[2][-1]) for node in leaves]
    assert set(shown) >= {f"{first} … {last}" for first, last in ends}
    assert {"↑ left finger", "↑ right finger"} <= set(shown)


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 1000, 30_000])
@pytest.mark.parametrize("algorithm", ["fiba", "recalculate"])
def test_pictures_of_any_size(count, algorithm):
    w = window(count, algorithm=algorithm)
    picture = w.to_svg()
    root = ET.fromstring(picture)
    assert float(root.get("width")) < 5_000
    assert len(picture) < 60_000
    width, height = float(root.get("width")), float(root.get("height"))
    for element in root.iter(f"{NS}rect"):
        assert 0 <= float(element.get("x")) <= width - float(element.get("width"))
        assert 0 <= float(element.get("y")) <= height - float(element.get("height"))
    if count >= 30_000:
        assert any("⋯" in text for text in texts(w))


def test_boxes_do_not_overlap():
    w = sw.Window(sw.sum())
    rng = random.Random(4)
    for at in range(800):
        w.insert(at * 7 if rng.random() < 0.8 else rng.randrange(at * 7 + 1), 1)
    boxes = {}
    for group in ET.fromstring(w.to_svg()).iter(f"{NS}g"):
        box = group.find(f"{NS}rect")
        left, top = float(box.get("x")), float(box.get("y"))
        boxes.setdefault(top, []).append((left, left + float(box.get("width"))))
    for row in boxes.values():
        row.sort()
        for (_, right), (left, _) in pairwise(row):
            assert right < left


def test_nodes_stand_above_the_middle_of_their_children():
    root = ET.fromstring(window(400).to_svg())
    lefts = [float(box.get("x")) for box in root.iter(f"{NS}rect")]
    top, *leaves = lefts
    assert leaves == sorted(leaves)
    assert top == pytest.approx((leaves[0] + leaves[-1]) / 2, abs=0.1)
    thick = [path for path in root.iter(f"{NS}path") if path.get("stroke-width") == "3"]
    assert len(thick) == 2, "the spines"
    assert len(list(root.iter(f"{NS}path"))) == len(leaves)


def test_text_is_escaped():
    w = sw.Window({"<a & b>": sw.collect("x")})
    w.insert(1, {"x": "</svg><script>"})
    ET.fromstring(w.to_svg())
    assert "<script>" not in w.to_svg()


def test_times_of_one_day_are_short():
    w = sw.Window(sw.max())
    for minute in range(5):
        w.insert(datetime(2024, 3, 1) + timedelta(minutes=minute), minute)
    shown = texts(w)
    assert "00:00:00 00:01:00 00:02:00 00:03:00 00:04:00" in shown
    assert shown[1].endswith("times of 2024-03-01")


def test_notebooks_show_it():
    w = window(3)
    assert w._repr_svg_() == w.to_svg()


@pytest.mark.parametrize("card", sw.algorithms(), ids=lambda card: card.name)
def test_without_a_tree_the_picture_shows_a_query(card):
    agg = sw.max() if card.laws.startswith("selection") else sw.sum()
    w = window(6, agg, algorithm=card.name)
    subtitle = texts(w)[1]
    if w._shape() is not None:
        assert "folds" not in subtitle
    elif card.name == "recalculate":
        assert "every query folds all of them" in subtitle
    else:
        # The other algorithms keep partial results and need not fold all entries.
        assert "folds" not in subtitle
        assert f"{card.name} keeps partial results" in subtitle
        assert card.query.partition(";")[0] in subtitle


def test_values_beside_a_tree_are_not_described_as_folded():
    assert "an index their values" in texts(window(6, sw.median()))[1]


def test_no_picture_where_the_answer_overflows():
    window = sw.Window(sw.sum(), algorithm="daba_lite")
    window.insert(1, 2**62)
    window.insert(1, 2**62)
    assert window._repr_svg_() is None
    assert "beyond int64" in repr(window)
