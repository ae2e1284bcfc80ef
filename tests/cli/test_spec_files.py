"""`--spec FILE` gives the same as the options in it, and refuses them beside it."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import slidewise as sw
from slidewise.cli import main
from slidewise.cli.stream import check
from slidewise.io.readers import read_table

ROLLS = [
    *("--on", "t", "--by", "k", "--window", "3", "--window", "2rows"),
    *("--agg", "n=count", "--agg", "top=top_k:x:2", "--offset", "0"),
    *("--min-rows", "1", "--nan", "skip", "--overflow", "null"),
    *("--arrival", "a", "--arrival", "t"),
]
HOPS = [
    *("--on", "t", "--by", "k", "--window", "4 every 2", "--window", "3"),
    *("--agg", "n=count", "--closed", "right", "--empty"),
]
FLAGS = {
    "--on": "t",
    "--by": "k",
    "--window": "3",
    "--agg": "n=count",
    "--arrival": "a",
    "--closed": "right",
    "--offset": "0",
    "--ties": "peers",
    "--nan": "propagate",
    "--overflow": "raise",
    "--min-rows": "0",
}


@pytest.fixture
def ticks(tmp_path):
    path = tmp_path / "ticks.parquet"
    table = pa.table({"t": [1, 2, 4, 9], "x": [1.5, None, 4.0, 2.0], "k": list("abab")})
    table = table.append_column("a", pa.array([2, 1, 1, 1]))
    pq.write_table(table, path)
    return path


def run(*arguments):
    return main.main([str(argument) for argument in arguments])


def fails(capsys, *arguments):
    assert run(*arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err


def written(capsys, path, *flags):
    """The file of the spec of some options."""
    assert run("spec", *flags) == 0
    path.write_text(capsys.readouterr().out)
    return path


@pytest.mark.parametrize(
    ("command", "flags"), [("rolling", ROLLS), ("hopping", HOPS)], ids=lambda x: str(x)
)
def test_a_file_gives_what_the_options_give(command, flags, ticks, tmp_path, capsys):
    flags = [flag for flag in flags if command == "rolling" or flag != "--empty"]
    spec = written(capsys, tmp_path / "spec.json", *flags)
    assert run(command, ticks, *flags, "-o", tmp_path / "a.parquet") == 0
    assert run(command, ticks, "--spec", spec, "-o", tmp_path / "b.parquet") == 0
    assert pq.read_table(tmp_path / "a.parquet").equals(
        pq.read_table(tmp_path / "b.parquet")
    )
    capsys.readouterr()
    assert run(command, ticks, *flags, "--quiet") == 0
    shown = capsys.readouterr().out
    assert run(command, ticks, "--spec", spec, "--quiet") == 0
    assert capsys.readouterr().out == shown
    for table in ((), (ticks,)):
        assert run("explain", *table, *flags) == 0
        explained = capsys.readouterr().out
        assert run("explain", *table, "--spec", spec) == 0
        assert capsys.readouterr().out == explained


def test_yaml(ticks, tmp_path, capsys):
    pytest.importorskip("yaml", reason="slidewise[yaml]")
    spec = tmp_path / "spec.yaml"
    assert run("spec", *ROLLS, "-o", spec) == 0
    assert run("rolling", ticks, *ROLLS, "--quiet") == 0
    shown = capsys.readouterr().out
    assert run("rolling", ticks, "--spec", spec, "--quiet") == 0
    assert capsys.readouterr().out == shown


@pytest.mark.parametrize("flag", FLAGS)
def test_an_option_beside_a_file_is_refused(flag, ticks, tmp_path, capsys):
    spec = written(capsys, tmp_path / "spec.json", *ROLLS)
    for command in ("rolling", "hopping", "stream", "explain", "spec"):
        file = () if command == "spec" else (ticks,)
        error = fails(capsys, command, *file, "--spec", spec, flag, FLAGS[flag])
        assert f"error: {flag} belongs in {spec}: give --spec or" in error


def test_options_of_hops_beside_a_file_are_refused(ticks, tmp_path, capsys):
    spec = written(capsys, tmp_path / "spec.json", *HOPS)
    error = fails(capsys, "hopping", ticks, "--spec", spec, "--every", "2", "--empty")
    assert "--every, --empty belong in" in error


def test_windows_of_the_other_command(ticks, tmp_path, capsys):
    rolls = written(capsys, tmp_path / "rolls.json", *ROLLS)
    hops = written(capsys, tmp_path / "hops.json", *HOPS)
    error = fails(capsys, "hopping", ticks, "--spec", rolls)
    assert "have one result per row: use slidewise rolling" in error
    error = fails(capsys, "rolling", ticks, "--spec", hops)
    assert "have one result per window: use slidewise hopping" in error


def test_what_is_missing(ticks, tmp_path, capsys):
    error = fails(capsys, "rolling", ticks, "--on", "t")
    assert "--window, --agg are missing: give what to compute, or --spec" in error
    assert "--on is missing" in fails(capsys, "explain", *ROLLS[2:])
    error = fails(capsys, "explain", "--spec", tmp_path / "no.json")
    assert f"there is no file or folder '{tmp_path / 'no.json'}'" in error


def test_errors_name_the_file_and_the_key(ticks, tmp_path, capsys):
    spec = tmp_path / "spec.json"
    record = {"on": "t", "windows": "3", "aggs": {"n": {"kind": "count"}}}
    spec.write_text(json.dumps(record))
    error = fails(capsys, "rolling", ticks, "--spec", spec)
    assert f"error: {spec}: windows='3' is not a duration" in error
    spec.write_text(json.dumps(record | {"windows": 3, "arrival": "seen"}))
    error = fails(capsys, "rolling", ticks, "--spec", spec)
    assert "no column 'seen'" in error


def test_streams_take_a_file(ticks, tmp_path, capsys, monkeypatch):
    """Up to the start of Spark."""
    spec = written(capsys, tmp_path / "spec.json", *ROLLS)
    given = []

    def checked(options, spec):
        given.append(spec)
        check(options, spec)

    monkeypatch.setattr(main.stream, "check", checked)
    error = fails(capsys, "stream", tmp_path, "--spec", spec)
    assert "how long to wait for late rows" in error
    assert given == [sw.Spec.load(spec)]


BY_KEY = sw.Spec(on="t", by="k", windows=3, aggs={"n": sw.count()})
FEATURES = sw.Features(
    key=BY_KEY, all=BY_KEY.replace(by=None, names="{group}:{agg}", windows=9)
)


@pytest.mark.parametrize("ending", ["json", "csv"])
def test_rolling_takes_a_file_of_features(ticks, tmp_path, ending):
    FEATURES.save(tmp_path / "features.json")
    out = tmp_path / f"out.{ending}"
    assert run("rolling", ticks, "--spec", tmp_path / "features.json", "-o", out) == 0
    table = read_table(out).select(["key_n_3", "all:n"])
    assert table.to_pydict() == {"key_n_3": [1, 1, 1, 1], "all:n": [1, 2, 3, 4]}


def test_explain_and_spec_take_a_file_of_features(ticks, tmp_path, capsys):
    FEATURES.save(tmp_path / "features.json")
    assert run("explain", ticks, "--spec", tmp_path / "features.json") == 0
    shown = capsys.readouterr().out
    for name, part in FEATURES.parts.items():
        assert f"{name}:\nrolling over t" in shown
        assert f"results\n  {part.results[0]}\n" in shown
    assert sw.explain(pq.read_table(ticks), FEATURES) in shown
    assert run("spec", "--spec", tmp_path / "features.json") == 0
    assert capsys.readouterr().out == FEATURES.to_json()


def test_other_commands_refuse_features_by_name(ticks, tmp_path, capsys):
    file, out = tmp_path / "features.json", tmp_path / "out.parquet"
    FEATURES.save(file)
    for arguments, message in [
        (
            ("hopping", ticks),
            "have one result per row: use slidewise rolling",
        ),
        (("stream", tmp_path, "--late", "1s"), "slidewise stream does not take Featur"),
        (("rolling", ticks, "--plot", "x.svg"), "--plot does not take Features: give "),
        (("rolling", ticks, "-o", out, "--memory", "1GB"), "a file that is sorted on "),
        (("rolling", ticks, "--window", "3"), "--window belongs in"),
    ]:
        assert message in fails(capsys, *arguments, "--spec", file), arguments
    sw.Spec(on="t", windows=3, aggs={"n": sw.count()}, names="{group}{window}").save(
        file
    )
    assert "has {group}, the name" in fails(capsys, "rolling", ticks, "--spec", file)
    flags = ("--on", "t", "--window", "3", "--agg", "n=count", "--names", "{group}")
    assert "has {group}, the name" in fails(capsys, "rolling", ticks, *flags)
