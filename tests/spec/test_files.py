"""Specs as files: they read as they were written; errors name the value."""

import inspect
import itertools
import json
import random
import re
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import own_aggregations as own
import pytest
from seeds import SEED

import slidewise as sw
from slidewise import aggregations
from slidewise.aggregations.records import kinds
from slidewise.spec.spec import Spec

COUNT = {"n": sw.count()}
WORST = {"s": sw.sum("on"), "60": sw.max("1e5", where="yes"), "1:30": sw.min("~")}
# Further values of parameters; columns get the names of their parameters.
VALUES: dict[str, list[Any]] = {
    "ddof": [0, 1],
    "k": [1, 7],
    "top": [None, 3],
    "edges": [[0.5, 2.0], [7.0]],
    "q": [0, 0.25, 1.0, [0.5, 0.99]],
    "interpolation": ["linear", "nearest"],
    "capacity": [10_000, 64],
    "error_rate": [0.01, 1e-9],
    "error": [0.01, 0.02, 0.25],
    "confidence": [0.99, 0.5],
    "counters": [None, 200],
    "unit": [None, "1h", 60],
    "half_life": ["1h", 60, sw.rows(3)],
    "hold": ["previous", "linear"],
    "edge": ["carry", "first"],
}


COLUMNS = ("column", "of", "by", "x", "y")


def catalogue() -> list[Any]:
    """Every aggregation, by every combination of its options."""
    found = []
    for kind in kinds(every=True):
        make = getattr(aggregations, kind)
        names = [*inspect.signature(make).parameters]
        columns = {name: name for name in names if name in COLUMNS}
        options = {name: VALUES[name] for name in names if name in VALUES}
        if kind == "slope":  # over a column, which has no unit of time
            options["unit"] = [None]
            found.append(pytest.param(sw.slope("y", unit="1h"), id="slope over time"))
        options["where"] = [None, "flag"]
        if kind == "longest_run":  # of this column
            options["where"] = ["flag"]
        if kind in ("top_k", "bottom_k"):
            found.append(pytest.param(make("x", 3), id=f"{kind} of one column"))
        if kind == "approx_quantile":
            options["q"] = [0.5, [0, 0.5, 1.0]]
        for chosen in itertools.product(*options.values()):
            given = columns | dict(zip(options, chosen, strict=True))
            found.append(pytest.param(make(**given), id=f"{kind}-{len(found)}"))
    return found


def check(spec: Spec, tmp_path: Path | None = None) -> None:
    """The spec comes back from its JSON, and from files."""
    text = spec.to_json()
    again = Spec.from_json(text)
    assert again == spec
    assert again.hash == spec.hash
    assert again.to_json() == text
    if tmp_path is not None:
        pytest.importorskip("yaml", reason="slidewise[yaml]")
        for name in ("spec.json", "spec.yaml", "spec.YML"):
            spec.save(tmp_path / name)
            assert Spec.load(tmp_path / name) == spec


@pytest.mark.parametrize("agg", catalogue())
def test_every_aggregation_comes_back(agg: sw.Aggregation) -> None:
    check(sw.Spec(on="t", windows="1h", aggs={"a": agg}))


SPECS: list[dict[str, Any]] = [
    {"windows": ["1h", " 90 minutes ", sw.rows(100)]},
    {"windows": [5, 60], "offset": -7, "closed": "both"},
    {"windows": "1h", "closed": "neither", "offset": "-15m", "min_rows": 2},
    {"windows": ["1h"], "ties": "rows", "nan": "skip", "overflow": "null"},
    {"windows": ["1w", "7d"], "arrival": "seen", "by": ["k", "l"]},
    {"windows": "1h", "arrival": ("seen", "on")},
    {"windows": [sw.landmark("f"), sw.delta("km", 5), sw.delta("km", 5.0)]},
    {"windows": [sw.delta("t", "5m"), sw.delta("km", Decimal("0.10"))]},
    {"windows": [sw.delta("a_b", Fraction(1, 3)), sw.delta("a", Decimal("1E+2"))]},
    {"windows": sw.delta("km", 10**30)},
    {"window": "1h"},
    {"window": "1h", "every": "5m", "offset": "1m", "closed": "right"},
    {"window": 60, "every": 7, "empty": True},
    {"window": sw.session("30m")},
    {"window": sw.session(30)},
    {"window": sw.until("paid")},
    {"window": sw.rows(5), "every": sw.rows(2)},
    {"window": "1h", "every": sw.rows(2)},
    {"windows": ["1h", "2h"], "every": "1h"},
    {"windows": ["1h", sw.Query("1d", every="60m"), sw.session("5m")]},
    {"windows": ["1h", "3h", sw.Query(" 1d", every="1 h")], "every": "30m"},
    {"windows": [sw.Query("1h"), sw.until("f"), sw.Query(3 * "0" + "1h")]},
    {"windows": [sw.Query(60, every=7), sw.Query(60, every=sw.rows(3)), 60]},
    {"windows": [sw.Query(sw.rows(6), every=sw.rows(2)), sw.rows(3)]},
]


@pytest.mark.parametrize("given", SPECS, ids=str)
def test_every_window_comes_back(given: dict[str, Any], tmp_path: Path) -> None:
    check(sw.Spec(**{"on": "t", "aggs": COUNT, **given}), tmp_path)


def test_hopping_windows_that_all_tumble_come_back(tmp_path: Path) -> None:
    windows: list[Any]
    for windows in (["1h"], ["1h", "2h"], [sw.rows(3)], ["1h", sw.rows(3)]):
        spec = Spec.make_hopping(on="t", windows=windows, aggs=COUNT)
        check(spec, tmp_path)
        assert Spec.from_json(spec.to_json()).is_hopping


def test_names_that_yaml_reads_otherwise_come_back(tmp_path: Path) -> None:
    names = ["on", "yes", "60", "1e5", "1:30", "~", "null", "2020-01-01", "0x1f", "_1"]
    names += ["<<", "=", "", " a ", "ключ", "a: b", "\u2028", "- x", "*a", "0o7", ".5"]
    aggs = {name: sw.sum(name) for name in names}
    check(sw.Spec(on="no", by=names, windows=60, aggs=aggs), tmp_path)
    check(sw.Spec(on="off", windows=[60, sw.delta("y", 1e-9)], aggs=WORST), tmp_path)


def random_spec(rng: random.Random) -> Spec:
    """A random spec that is valid."""

    def length() -> str:
        return f"{rng.randint(1, 99)}{rng.choice(['s', 'm', ' hours', 'd', 'w'])}"

    def rolling() -> Any:
        return rng.choice(
            [
                length(),
                length(),
                sw.rows(rng.randint(1, 9)),
                sw.delta("km", rng.choice([rng.random(), rng.randint(1, 9), "5m"])),
                sw.landmark("flag"),
            ]
        )

    def hopping() -> Any:
        query = sw.Query(length(), every=length())
        return rng.choice([length(), query, sw.session(length()), sw.until("flag")])

    aggs = {f"a{at}": rng.choice(CATALOGUE) for at in range(rng.randint(1, 3))}
    given: dict[str, Any] = {"on": "t", "aggs": aggs}
    given |= {"by": ["k"]} if rng.random() < 0.5 else {}
    given |= {"nan": rng.choice(["propagate", "skip", "raise"])}
    given |= {"min_rows": rng.choice([0, 0, 3])}
    several = range(rng.randint(1, 4))
    kind = rng.randrange(4)
    if kind == 0:
        given["windows"] = [rolling() for _ in several]
    elif kind == 1:
        given |= {"windows": [length() for _ in several], "offset": length()}
        given["closed"] = rng.choice(["left", "right", "both", "neither"])
    elif kind == 2:
        given["windows"] = [hopping() for _ in several]
    else:
        given |= {"window": length(), "every": length(), "empty": rng.random() < 0.5}
        given |= {"offset": length()} if rng.random() < 0.5 else {}
        given["closed"] = rng.choice([None, "left", "right"])
    return sw.Spec(**given)


CATALOGUE = [param.values[0] for param in catalogue()]


def test_random_specs_come_back() -> None:
    made = 0
    for seed in range(SEED, SEED + 600):
        try:
            spec = random_spec(random.Random(seed))
        except sw.SpecError as error:
            # The same window, or ranks over windows without a row.
            if not re.search("twice|ranks the value of a row", str(error)):
                raise
            continue
        made += 1
        check(spec)
    assert made > 400, SEED


def test_it_is_written_for_people() -> None:
    spec = sw.Spec(
        on="t",
        by="card",
        windows=["24h", sw.rows(10), sw.delta("km", 5.0)],
        aggs={"n": sw.count(), "p99": sw.quantile("delay", 0.99)},
        min_rows=2,
    )
    assert spec.to_json() == (
        "{\n"
        '  "version": 1,\n'
        '  "on": "t",\n'
        '  "by": "card",\n'
        '  "windows": ["24h", "10rows", {"delta": "km", "width": 5.0}],\n'
        '  "aggs": {\n'
        '    "n": {"kind": "count"},\n'
        '    "p99": {"kind": "quantile", "column": "delay", "q": 0.99}\n'
        "  },\n"
        '  "min_rows": 2\n'
        "}\n"
    )


def test_a_file_by_hand(tmp_path: Path) -> None:
    pytest.importorskip("yaml", reason="slidewise[yaml]")
    file = tmp_path / "features.yaml"
    file.write_text(
        "on: starttime\n"
        "by: station\n"
        "windows: [1h, 24h, 100rows]\n"
        "closed: both\n"
        "arrival: ~\n"
        "aggs:\n"
        "  n: {kind: count}\n"
        "  avg:\n"
        "    kind: mean\n"
        "    column: km\n"
        "  seen: {kind: bloom, column: id, error_rate: 1e-3}\n"
    )
    with pytest.raises(sw.SpecError, match="closed='both' does not apply to"):
        Spec.load(file)
    file.write_text(file.read_text().replace("closed: both\n", ""))
    assert Spec.load(str(file)) == sw.Spec(
        on="starttime",
        by="station",
        windows=["1h", "24h", sw.rows(100)],
        aggs={
            "n": sw.count(),
            "avg": sw.mean("km"),
            "seen": sw.bloom("id", error_rate=0.001),
        },
    )


def test_own_aggregations_are_named_by_import_path(tmp_path: Path) -> None:
    aggs = {"p": own.Product("x"), "t": own.TOTAL("x", where="f")}
    spec = sw.Spec(on="t", windows="1h", aggs=aggs)
    check(spec, tmp_path)
    written = json.loads(spec.to_json())["aggs"]
    assert written["p"] == {"kind": "own_aggregations:Product", "column": "x"}
    assert dict(Spec.from_json(spec.to_json()).aggs)["p"].functions is (
        own.Product.functions
    )


def test_native_aggregations_are_named_by_import_path(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("numba", reason="slidewise[numba]")

    def product(a: float, b: float) -> float:
        return a * b

    made = sw.native(product, "float64", name="own_aggregations:NATIVE")
    spec = sw.Spec(on="t", windows="1h", aggs={"p": made("x")})
    with pytest.raises(sw.SpecError, match="which does not resolve"):
        spec.to_json()
    monkeypatch.setattr(own, "NATIVE", made, raising=False)
    check(spec)


@pytest.mark.parametrize(
    ("agg", "message"),
    [
        (own.UNNAMED("x"), r"^aggs\['a'\]: .* has no import path .*name='package"),
        (own.ELSEWHERE("x"), "'own_aggregations:OTHER', which does not resolve"),
        (own.MAIN("x"), "'__main__:MAIN' is defined in __main__, .*: move it to a mod"),
        (own.local(), "Local' is defined within a function: move it to the top"),
        (
            sw.Aggregation("sum", "x", ddof=0),
            r"sum\('x'\) cannot be written, as sw.sum",
        ),
    ],
)
def test_what_a_file_cannot_name_is_refused(agg: Any, message: str) -> None:
    spec = sw.Spec(on="t", windows="1h", aggs={"a": agg})
    with pytest.raises(sw.SpecError, match=message):
        spec.to_json()


def test_another_object_at_the_path_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = sw.Spec(on="t", windows="1h", aggs={"p": own.Product("x")})
    text = spec.to_json()
    monkeypatch.setattr(own, "Product", own.TOTAL)
    with pytest.raises(sw.SpecError, match="resolves to another object"):
        spec.to_json()
    with pytest.raises(sw.SpecError, match=r"has the name 'own_aggregations:TOTAL'"):
        Spec.from_json(text)


def test_loading_calls_nothing_but_aggregations() -> None:
    for kind in ("os:getcwd", "builtins:print", "own_aggregations:_add"):
        with pytest.raises(sw.SpecError, match=f"no aggregation at '{kind}'"):
            Spec.from_json(_with_agg(f'{{"kind": "{kind}", "column": "x"}}'))


def _with_agg(agg: str) -> str:
    return f'{{"on": "t", "windows": "1h", "aggs": {{"a": {agg}}}}}'


def _with(**changes: Any) -> str:
    base = {"on": "t", "windows": "1h", "aggs": {"n": {"kind": "count"}}}
    return json.dumps(base | changes)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not the JSON of a Spec: Expecting value"),
        ("{", "not the JSON of a Spec"),
        (_with()[:-1], "not the JSON of a Spec"),
        ("[1]", r"a Spec is a mapping with on, windows and aggs; got \[1\]"),
        ("{}", "on=, windows=, aggs= are missing"),
        ('{"on": "t", "on": "t"}', "the key 'on' is there twice"),
        ("[" * 100_000, "nested too deeply"),
        (_with_agg("[" * 700 + "]" * 700), r"\[\[.* is not an aggregation"),
        (_with(min_rows=1)[:-2] + "9" * 5_000 + "}", "not the JSON of a Spec"),
        (_with(agg={}), "unknown key 'agg': did you mean aggs="),
        (_with(xyzzy=1), "unknown key 'xyzzy'; there are on, windows, aggs"),
        (_with(version=2), "version=2 was written by a later release"),
        (_with(version="1"), "version='1' is not a version"),
        (_with(on=3), "on= takes the name of a column, got 3"),
        (_with(by={"k": 1}), "by= takes a column or a list of columns"),
        (_with(by=[["k"]]), "by= takes the name of a column"),
        (_with(closed=["left"]), "closed= is one of right, left, both, neither; got"),
        (_with(ties="row"), "ties= is one of peers, rows; got 'row'"),
        (_with(min_rows=1.5), "min_rows= takes an int .* got 1.5"),
        (_with(min_rows=True), "min_rows= takes an int .* got True"),
        (_with(window="1h"), "give windows= for rolling, or window= for hopping"),
        (_with(empty="no"), "empty= takes True or False, got 'no'"),
        (_with(every="5m", ties="rows"), "takes no keyword argument 'ties'"),
        (_with(windows="1 hr"), "windows='1 hr' has the unknown unit"),
        (_with(windows=[1.5]), "windows=1.5 is not a length of time"),
        (_with(windows=[["1h"]]), "is not a length of time"),
        (_with(windows=[]), "windows= is empty"),
        (_with(windows="0rows"), "0 is not a number of rows"),
        (_with(windows=[{"hop": "1h"}]), r"windows\[0\]={'hop': '1h'} is not a window"),
        (_with(windows=[{"range": "1h", "evry": "5m"}]), "'evry': did you mean every="),
        (_with(windows=[{"range": "1h", "every": 5}]), r"windows\[0\]: a query has"),
        (_with(windows={"delta": "km"}), "windows: width=None is not a width"),
        (_with(windows={"delta": "km", "width": "1.2.3"}), "width='1.2.3' is not a"),
        (_with(windows={"session": {}}), r"windows: gap=\{\} is not a length of time"),
        (_with(offset={"a": 1}), "offset=.* is not a length of time"),
        (_with(aggs=[["n", {}]]), "aggs=.* is not a mapping from names"),
        (_with(aggs={}), "aggs= is empty"),
        (_with_agg('"count"'), r"aggs\['a'\]: 'count' is not an aggregation: write"),
        (_with_agg("{}"), "no kind: an aggregation has"),
        (_with_agg('{"kind": 3}'), "kind=3 is not one"),
        (_with_agg('{"kind": "avg"}'), "unknown kind 'avg' .*: did you mean 'mean'"),
        (_with_agg('{"kind": "__class__"}'), "unknown kind '__class__'"),
        (_with_agg('{"kind": "sum"}'), r"aggs\['a'\]: sum\(\) needs a column"),
        (
            _with_agg('{"kind": "sum", "colum": "x"}'),
            "'colum' of sum: did you mean col",
        ),
        (_with_agg('{"kind": "sum", "column": 3}'), "column=3 of sum is not the name"),
        (_with_agg('{"kind": "top_k", "column": "x", "k": []}'), "k must be from 1"),
        (_with_agg('{"kind": "mean", "column": "x", "ddof": 1}'), "key 'ddof' of mean"),
        (
            _with_agg('{"kind": "quantile", "column": "x", "q": NaN}'),
            "NaN is not a num",
        ),
        (
            _with_agg('{"kind": "quantile", "column": "x", "q": 1e999}'),
            "q must be a num",
        ),
        (_with_agg('{"kind": "approx_quantile", "column": "x", "q": {}}'), "1 to 8"),
        (
            _with_agg('{"kind": "no.such:Name", "column": "x"}'),
            "cannot import 'no.such'",
        ),
        (_with_agg('{"kind": "__main__:A", "column": "x"}'), "defined in __main__"),
        (_with_agg('{"kind": "a:b c", "column": "x"}'), "is not the import path"),
        (_with_agg('{"kind": ":x"}'), "is not the import path"),
    ],
)
def test_what_is_wrong_is_named(text: str, message: str) -> None:
    with pytest.raises(sw.SpecError, match=message) as caught:
        Spec.from_json(text)
    assert len(str(caught.value)) < 1_000


def test_every_damage_is_one_error() -> None:
    """Text that is cut off or changed gives a Spec or a SpecError."""
    spec = sw.Spec(
        on="t",
        windows=["1h", sw.Query("1d", every="1h")],
        aggs={"n": sw.count(), "q": sw.approx_quantile("x", [0.5, 0.9])},
    )
    text, rng, refused = spec.to_json(), random.Random(SEED), 0
    for _ in range(2_000):
        at = rng.randrange(len(text))
        damaged = text[:at] + rng.choice('"{}[],:09aZ\\\n\x00-.é') + text[at + 1 :]
        try:
            Spec.from_json(rng.choice([damaged, text[:at]]))
        except sw.SpecError:
            refused += 1
    assert refused > 1_000, SEED


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [", "not the YAML of a Spec"),
        ("on: t\non: u", "the key 'on' is there twice"),
        ("60: t", "the key 60 is not text"),
        ("a: &a [1]\nb: *a", "the alias .a is not taken"),
        ("a: &a [*a]", "the alias .a is not taken"),
        ("a: !!python/object/apply:os.system [ls]", "not the YAML of a Spec"),
        ("<<: {on: t}", "unknown key '<<'"),
        (
            "windows: 1:30\non: t\naggs: {n: {kind: count}}",
            "windows='1:30' is not a dur",
        ),
        ("", "a Spec is a mapping with on, windows and aggs; got None"),
        ("on: t\n---\non: u", "not the YAML of a Spec"),
        ("[" * 20_000, "nested too deeply|not the YAML"),
    ],
)
def test_what_is_wrong_in_yaml_is_named(
    text: str, message: str, tmp_path: Path
) -> None:
    pytest.importorskip("yaml", reason="slidewise[yaml]")
    file = tmp_path / "a.yaml"
    file.write_text(text)
    with pytest.raises(sw.SpecError, match=message) as caught:
        Spec.load(file)
    assert str(caught.value).startswith(str(file))


def test_files_that_are_no_specs(tmp_path: Path) -> None:
    spec = sw.Spec(on="t", windows="1h", aggs=COUNT)
    with pytest.raises(sw.SpecError, match=r"\.json, \.yaml or \.yml; got 'a\.toml'"):
        spec.save(tmp_path / "a.toml")
    (tmp_path / "a.json").write_bytes(b'{"on": "\xff"}')
    with pytest.raises(sw.SpecError, match="not text in UTF-8"):
        Spec.load(tmp_path / "a.json")
    with pytest.raises(FileNotFoundError):
        Spec.load(tmp_path / "b.json")
    # The byte-order mark of editors on Windows.
    (tmp_path / "a.json").write_text(spec.to_json(), encoding="utf-8-sig")
    assert Spec.load(tmp_path / "a.json") == spec
    wrong: Any = 3
    with pytest.raises(sw.SpecError, match="from a str of JSON, got 3"):
        Spec.from_json(wrong)


def test_yaml_needs_pyyaml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from slidewise.spec import yaml_text

    yaml_text.classes.cache_clear()
    monkeypatch.setitem(__import__("sys").modules, "yaml", None)
    spec = sw.Spec(on="t", windows="1h", aggs=COUNT)
    with pytest.raises(sw.SpecError, match=r"pip install 'slidewise\[yaml\]'"):
        spec.save(tmp_path / "a.yaml")
    assert not (tmp_path / "a.yaml").exists()


@pytest.mark.parametrize("path", [3, None, ["a.json"]])
def test_a_path_is_no_other_object(path: object) -> None:
    spec = sw.Spec(on="t", windows=5, aggs={"n": sw.count()})
    with pytest.raises(sw.SpecError, match="is a path, such as"):
        sw.Spec.load(path)  # type: ignore[arg-type]
    with pytest.raises(sw.SpecError, match="is a path, such as"):
        spec.save(path)  # type: ignore[arg-type]


def test_arrays_of_numpy_are_written_as_lists() -> None:
    spec = sw.Spec(
        on="t",
        by=np.array(["k", "m"]),  # type: ignore[arg-type]
        windows=np.array([1, 2]),
        unique_by=np.array(["id"]),  # type: ignore[arg-type]
        aggs={"n": sw.count()},
    )
    assert sw.Spec.from_json(spec.to_json()) == spec
    assert '"by": ["k", "m"],\n  "windows": [1, 2]' in spec.to_json()
    assert '"unique_by": ["id"]' in spec.to_json()
