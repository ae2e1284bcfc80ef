"""The command line: results equal those of `slidewise.rolling`, errors are one line."""

import os
import re
import subprocess
import sys

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from definitions import COMPARED, OF_TIMES, PAIRS

import slidewise as sw
import trips
from slidewise.aggregations import Aggregation
from slidewise.aggregations.records import RECORDS, kinds
from slidewise.cli import main
from slidewise.cli.spec_options import parse_aggregation
from slidewise.cli.windows import parse_window

ROLL = ["--on", "t", "--window", "3", "--agg", "n=count"]


@pytest.fixture(scope="module")
def stream():
    return trips.generate(2_000, seed=11, days=1)


@pytest.fixture
def ticks(tmp_path):
    """A small file with integer times."""
    path = tmp_path / "ticks.parquet"
    table = pa.table({"t": [1, 2, 4, 9], "x": [1.5, None, 4.0, 2.0], "k": list("abab")})
    pq.write_table(table, path)
    return path


def run(*arguments):
    return main.main([str(argument) for argument in arguments])


def fails(capsys, *arguments):
    """The one line that a refused command prints."""
    assert run(*arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("slidewise: error: ")
    assert captured.err.count("\n") == 1
    return captured.err


# Results


def test_csv_to_parquet_is_what_rolling_gives(stream, tmp_path, capsys):
    source, target = tmp_path / "trips.csv", tmp_path / "features.parquet"
    csv.write_csv(stream, source)
    assert (
        run(
            *("rolling", source, "--on", "starttime", "--by", "start station id"),
            *("--window", "1h", "--window", "20rows", "--agg", "n=count"),
            *("--agg", "avg=mean:tripduration", "-o", target),
        )
        == 0
    )
    expected = sw.rolling(
        stream,
        on="starttime",
        by="start station id",
        windows=["1h", sw.rows(20)],
        aggs={"n": sw.count(), "avg": sw.mean("tripduration")},
    )
    got = pq.read_table(target)
    for name in ("n_1h", "avg_1h", "n_20rows", "avg_20rows"):
        assert got[name].to_pylist() == expected[name].to_pylist(), name
    summary = capsys.readouterr().err
    assert "2,000 rows × 4 results" in summary
    assert f"wrote {target}" in summary


def test_every_option_reaches_the_spec(ticks, tmp_path):
    target = tmp_path / "out.parquet"
    options = ["--closed", "both", "--ties", "rows", "--nan", "skip", "--min-rows", "2"]
    arguments = ["--on", "t", "--by", "k", "--window", "7", "--agg", "s=sum:x"]
    assert run("rolling", ticks, *arguments, *options, "-o", target, "--quiet") == 0
    expected = sw.rolling(
        pq.read_table(ticks),
        on="t",
        by="k",
        windows=7,
        aggs={"s": sw.sum("x")},
        closed="both",
        ties="rows",
        nan="skip",
        min_rows=2,
    )
    assert pq.read_table(target)["s_7"].equals(expected["s_7"])


def test_results_are_named_and_filled(ticks, tmp_path, capsys):
    target = tmp_path / "out.parquet"
    options = ["--on", "t", "--window", "1", "--agg", "s=sum:x", "--agg", "n=count"]
    names = ["--names", "{window}-{agg}", "--prefix", "card_"]
    for fill, value in [(["0"], 0.0), (["s=-1.5", "n=7"], -1.5)]:
        given = [option for one in fill for option in ("--fill", one)]
        assert (
            run("rolling", ticks, *options, *names, *given, "-o", target, "--quiet")
            == 0
        )
        found = pq.read_table(target)
        assert found.column_names[3:] == ["card_1-s", "card_1-n"]
        assert found["card_1-s"].to_pylist() == [1.5, value, 4.0, 2.0]
    command = ["rolling", ticks, *options]
    assert "--fill x does not fit" in fails(capsys, *command, "--fill", "x")
    twice = fails(capsys, *command, "--fill", "1", "--fill", "s=2")
    assert "--fill is there twice: give one value, or --fill NAME=VALUE" in twice


def test_arrival(stream, tmp_path):
    source, target = tmp_path / "trips.parquet", tmp_path / "live.parquet"
    pq.write_table(stream, source)
    arguments = ["--on", "starttime", "--arrival", "arrived", "--window", "1h"]
    assert run("rolling", source, *arguments, "--agg", "n=count", "-o", target) == 0
    expected = sw.rolling(
        stream, on="starttime", arrival="arrived", windows="1h", aggs={"n": sw.count()}
    )
    assert pq.read_table(target)["n_1h"].equals(expected["n_1h"])


def test_arrival_by_several_columns(tmp_path):
    table = pa.table({"t": [3, 2, 2, 1], "file": [1, 0, 0, 0], "line": [0, 1, 0, 1]})
    source = tmp_path / "rows.csv"
    csv.write_csv(table, source)
    arguments = ["--on", "t", "--arrival", "file", "--arrival", "line"]
    arguments += ["--window", "9", "--agg", "n=count", "--agg", "t=collect:t"]
    request = {"on": "t", "windows": 9, "arrival": ["file", "line"]}
    aggs = {"n": sw.count(), "t": sw.collect("t")}
    expected = sw.rolling(table, **request, aggs=aggs)
    for memory in ("unlimited", "1MB"):
        target = tmp_path / f"{memory}.arrow"
        assert run("rolling", source, *arguments, "--memory", memory, "-o", target) == 0
        got = feather.read_table(target)
        for name in ("n_9", "t_9"):
            assert got[name].to_pylist() == expected[name].to_pylist()


def test_without_output_the_first_rows_are_shown(stream, tmp_path, capsys):
    source = tmp_path / "trips.parquet"
    pq.write_table(stream, source)
    arguments = ["--on", "starttime", "--window", "1h", "--agg", "n=count"]
    assert run("rolling", source, *arguments) == 0
    captured = capsys.readouterr()
    assert captured.out.splitlines()[0].split() == ["starttime", "n_1h"]
    assert "1,990 more rows" in captured.out


def test_quiet_prints_nothing(ticks, tmp_path, capsys):
    target = tmp_path / "out.parquet"
    assert run("rolling", ticks, *ROLL, "-o", target, "--quiet") == 0
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_plot(ticks, tmp_path, ending):
    picture = tmp_path / f"picture.{ending}"
    more = ["--by", "k", "--agg", "avg=mean:x", "--agg", "who=last:k"]
    assert run("rolling", ticks, *ROLL, *more, "--plot", picture) == 0
    start = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[ending]
    assert picture.read_bytes().startswith(start)


def test_plot_of_an_empty_table_and_of_null_keys(tmp_path):
    for number, rows in enumerate(([], [1, 2])):
        source = tmp_path / f"{number}.parquet"
        keys = pa.array([None] * len(rows), pa.string())
        pq.write_table(pa.table({"t": pa.array(rows, pa.int64()), "k": keys}), source)
        picture = tmp_path / f"{number}.png"
        assert run("rolling", source, *ROLL, "--by", "k", "--plot", picture) == 0
        assert picture.exists()


# Forms of the arguments


@pytest.mark.parametrize("kind", [kind for kind in kinds() if kind != "histogram"])
def test_every_kind_can_be_requested(kind):
    compared = kind in (*COMPARED, *PAIRS)
    of = None if kind in OF_TIMES else "x"
    text = f"a={kind}:x:y" if compared else f"a={kind}:{of or ''}"
    k = 1 if "k" in RECORDS[kind].parameters else 0
    expected = Aggregation(kind, of, "y" if compared else None, k=k)
    assert parse_aggregation(text) == ("a", expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("n=count", Aggregation("count")),
        ("when=arg_max::price", Aggregation("arg_max", None, "price")),
        (r"odd=sum:a\:b", Aggregation("sum", "a:b")),
        ("top=top_k:x:3", Aggregation("top_k", "x", k=3)),
        ("pop=stddev:x:0", Aggregation("stddev", "x", ddof=0)),
        ("b=bloom:x:500", sw.bloom("x", capacity=500)),
        ("n=approx_count_distinct:x", sw.approx_count_distinct("x")),
        ("n=approx_count_distinct:x:0.1", sw.approx_count_distinct("x", error=0.1)),
        ("v=rate:x:1h", sw.rate("x", "1h")),
        ("v=slope:x:y", sw.slope("x", "y")),
        ("g=max_gap", sw.max_gap()),
        ("l=lag:x:2", sw.lag("x", 2)),
        ("v=value_counts:x:3", sw.value_counts("x", 3)),
        ("h=histogram:x:0.5,2", sw.histogram("x", edges=[0.5, 2])),
        ("r=longest_run:up", sw.longest_run("up")),
        ("p=approx_quantile:x:0.9", sw.approx_quantile("x", 0.9)),
        ("c=count_min:x:0.1", sw.count_min("x", error=0.1)),
        ("h=heavy_hitters:x:5", sw.heavy_hitters("x", 5)),
        ("s=sum:start station id", Aggregation("sum", "start station id")),
    ],
)
def test_records_of_an_aggregation(text, expected):
    assert parse_aggregation(text)[1] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1h", "1h"),
        ("3", 3),
        ("100rows", sw.rows(100)),
        ("1 row", sw.rows(1)),
        ("1h every 5m", sw.Query("1h", every="5m")),
        ("1h  every 10rows", sw.Query("1h", every=sw.rows(10))),
        ("6 every 2", sw.Query(6, every=2)),
        ("until:paid", sw.until("paid")),
        ("landmark:a b", sw.landmark("a b")),
        ("session:30m", sw.session("30m")),
        ("session:5", sw.session(5)),
        ("delta:km:5", sw.delta("km", 5)),
        ("delta:km:5.0", sw.delta("km", 5.0)),
        (r"delta:at\:utc:5m", sw.delta("at:utc", "5m")),
    ],
)
def test_records_of_a_window(text, expected):
    assert parse_window(text) == expected


HOPS = ["--on", "t", "--by", "k", "--agg", "s=sum:x"]


@pytest.mark.parametrize(
    ("windows", "request_"),
    [
        (["3"], {"window": 3}),
        (["3", "--every", "1"], {"window": 3, "every": 1}),
        (["4 every 2"], {"window": 4, "every": 2}),
        (["4", "--every", "2rows"], {"window": 4, "every": sw.rows(2)}),
        (["until:f"], {"window": sw.until("f")}),
        (["session:2"], {"window": sw.session(2)}),
        (["3", "--closed", "right"], {"window": 3, "closed": "right"}),
        (
            ["3", "--offset", "-1", "--empty"],
            {"window": 3, "offset": -1, "empty": True},
        ),
        (
            ["3", "--window", "6 every 2", "--window", "until:f"],
            {"windows": [3, sw.Query(6, every=2), sw.until("f")]},
        ),
    ],
)
def test_hopping_is_what_hopping_gives(tmp_path, capsys, windows, request_):
    source, target = tmp_path / "ticks.csv", tmp_path / "out.parquet"
    source.write_text("t,k,x,f\n1,a,1,\n2,b,2,true\n4,a,4,true\n9,b,2,false\n")
    assert run("hopping", source, *HOPS, "--window", *windows, "-o", target) == 0
    expected = sw.hopping(
        csv.read_csv(source), on="t", by="k", aggs={"s": sw.sum("x")}, **request_
    )
    assert pq.read_table(target).equals(expected)
    assert f"wrote {target}" in capsys.readouterr().err
    assert run("hopping", source, *HOPS, "--window", *windows, "--quiet") == 0
    assert "window_start" in capsys.readouterr().out


def test_hopping_takes_units_of_a_calendar(tmp_path):
    source, target = tmp_path / "trips.csv", tmp_path / "out.parquet"
    source.write_text("t\n2026-01-02\n2026-01-31\n2026-03-01\n")
    arguments = ["--on", "t", "--agg", "n=count", "--window", "calendar:1mo"]
    assert run("hopping", source, *arguments, "-o", target, "--quiet") == 0
    found = pq.read_table(target)
    assert [start.month for start in found["window_start"].to_pylist()] == [1, 3]
    assert found["n"].to_pylist() == [2, 1]


def test_rolling_takes_data_driven_windows(tmp_path, capsys):
    source, target = tmp_path / "meter.csv", tmp_path / "out.parquet"
    source.write_text("t,x,f\n1,1,\n2,2,true\n4,4,false\n9,9,true\n")
    windows = ["--window", "landmark:f", "--window", "delta:x:2", "--window", "3"]
    arguments = ["--on", "t", "--agg", "n=count", *windows, "--offset", "0"]
    assert run("rolling", source, *arguments, "-o", target, "--quiet") == 0
    expected = sw.rolling(
        csv.read_csv(source),
        on="t",
        windows=[sw.landmark("f"), sw.delta("x", 2), 3],
        aggs={"n": sw.count()},
    )
    assert pq.read_table(target).equals(expected)


def test_explain_words_of_every_window(capsys):
    arguments = ["--on", "t", "--agg", "n=count", "--window"]
    rolls = ["landmark:f", "--window", "delta:km:5", "--window", "delta:at:90s"]
    assert run("explain", *arguments, *rolls) == 0
    printed = capsys.readouterr().out
    assert "rolling over t" in printed
    assert "landmark_f   from the last row where 'f' is true on" in printed
    assert "first row whose 'km' is more than 5 away" in printed
    assert "first row whose 'at' is more than 90s away" in printed
    hops = ["until:f", "--window", "session:5m", "--window", "1h every 5m"]
    assert run("explain", *arguments, *hops, "--window", "5rows every 2rows") == 0
    printed = capsys.readouterr().out
    assert "hopping over t" in printed
    assert "up to a row where 'f' is true" in printed
    assert "rows at most 5m apart" in printed
    assert "[end − 1h, end), every 5m" in printed
    assert "5rows every 2rows the last 5 rows, this one included, after ev" in printed
    assert "window, window_start, window_end, n" in printed


# Errors


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--window", "1 month"], "give --window calendar:1mo for a month back"),
        (["--window", "0"], "longer than zero"),
        (["--window", "-5"], "--window -5 must be longer than zero"),
        (["--window", "1h"], "give --window as an int"),
        (["--window", "1h"], "when reading a file, give --time-unit"),
        (["--window", "9rows", "--closed", "both"], "--closed both does not apply to"),
        (["--agg", "a=cnt"], "heavy_hitters"),
        (["--agg", "a=cnt"], "--agg 'a=cnt': unknown aggregation 'cnt' (did you mean"),
        (["--agg", "a=bloom:x:0"], "--agg 'a=bloom:x:0': capacity="),
        (["--threads", "0"], "--threads 0: give"),
        (["--window", "0rows"], "0 is not a number of rows"),
        (["--window", "soon"], "--window soon is not a duration"),
        (["--window", "until:k"], "--window until:k has one result per window"),
        (["--window", "3 every 1"], "--window '3 every 1' has one result per window"),
        (["--window", "landmark:"], "write it landmark:COLUMN"),
        (["--window", "delta:x"], "write it delta:COLUMN:WIDTH"),
        (["--window", "delta:x:far"], "'far'"),
        (["--window", "session:3rows"], "session() takes a length of time"),
        (["--window", "1h"], "integers"),
        (["--window", "3"], "n_3"),
        (["--agg", "count"], "name=kind:column"),
        (["--agg", "=count"], "name=kind:column"),
        (["--agg", "a=average:x"], "'average'"),
        (["--agg", "a=sum"], "needs a column"),
        (["--agg", "a=sum(x)"], "(write a=sum:x)"),
        (["--agg", "a=sum:x:y"], "no by= (write a=sum:COLUMN)"),
        (["--agg", "a=sum:x:where=k"], "(write a=sum:COLUMN, and --where a=k)"),
        (["--agg", "a=sum:x:y:z"], "too many parts"),
        (["--agg", "a=stddev:x:many"], "'many'"),
        (["--agg", "n=sum:x"], "twice"),
        (["--agg", "a=sum:y"], "'y'"),
        (["--agg", "a=sum:k"], "'k'"),
        (["--by", "key"], "'key'"),
        (["--arrival", "a"], "'a'"),
        (["--arrival", "t", "--arrival", "a"], "'a'"),
        (
            ["--arrival", "t", "--arrival", "t"],
            "--arrival t --arrival t names 't' twic",
        ),
        (["--min-rows", "-1"], "--min-rows takes an int"),
        (["--min-rows", "few"], "few"),
        (["--closed", "open"], "open"),
        (["--nonsense"], "--nonsense"),
        (["--plot", "picture.gif"], ".png"),
        (["-o", "features.docx"], "features.docx"),
        (["-o", "no/such/folder/out.parquet"], "no/such/folder"),
    ],
)
def test_what_the_user_got_wrong_is_one_line(ticks, capsys, arguments, words):
    assert words in fails(capsys, "rolling", ticks, *ROLL, *arguments)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--window", "delta:x:1"], "--window delta:x:1 has one result per row"),
        (["--window", "1mo"], "give --window calendar:1mo for calendar months"),
        (["--window", "3", "--arrival", "t"], "--arrival does not go with windows"),
        (["--window", "3", "--ties", "rows"], "--ties does not go with windows"),
        (["--window", "3", "--closed", "both"], "--closed is one of left, right"),
        (["--window", "until:k", "--every", "2"], "--every does not apply to until"),
        (["--window", "3", "--window", "3"], "the window '3' is given twice"),
        (["--window", "3", "-o", "features.docx"], "features.docx"),
    ],
)
def test_what_hopping_does_not_take_is_one_line(ticks, capsys, arguments, words):
    assert words in fails(capsys, "hopping", ticks, *HOPS, *arguments)


def test_rolling_windows_are_not_empty(capsys):
    assert "--empty is for hopping" in fails(capsys, "explain", *ROLL, "--empty")


def test_a_file_that_is_not_there(tmp_path, capsys):
    path = tmp_path / "none.csv"
    assert str(path) in fails(capsys, "rolling", path, *ROLL)


def test_a_file_that_is_not_what_it_says(tmp_path, capsys):
    path = tmp_path / "picture.parquet"
    path.write_bytes(b"\x89PNG and more")
    assert str(path) in fails(capsys, "rolling", path, *ROLL)


def test_a_folder(tmp_path, capsys):
    folder = tmp_path / "folder.csv"
    folder.mkdir()
    assert str(folder) in fails(capsys, "rolling", folder, *ROLL)


def test_an_ambiguous_date_needs_a_format(tmp_path, capsys):
    path = tmp_path / "trips.csv"
    path.write_text("t,x\n07/03/18 10:00:00,1\n07/04/18 11:00:00,2\n")
    arguments = ["--on", "t", "--window", "1d", "--agg", "n=count"]
    assert "write its format as --time-format '%m" in fails(
        capsys, "rolling", path, *arguments
    )
    wrong = fails(capsys, "rolling", path, *arguments, "--time-format", "x")
    assert "--time-format x is not a format" in wrong
    form = ["--time-format", "%m/%d/%y %H:%M:%S"]
    assert run("rolling", path, *arguments, *form) == 0
    assert "2018-07-03" in capsys.readouterr().out


@pytest.mark.parametrize("more", [[], ["--memory", "1MB"]])
def test_arrivals_are_numbers_beside_times_with_a_format(tmp_path, more):
    path, target = tmp_path / "trips.csv", tmp_path / "out.csv"
    path.write_text("t,a\n07/03/18,2\n07/03/18,1\n07/02/18,3\n")
    arguments = ["--on", "t", "--arrival", "a", "--window", "2d", "--agg", "n=count"]
    form = ["--time-format", "%m/%d/%y", "--quiet", "-o", target]
    assert run("rolling", path, *arguments, *form, *more) == 0
    assert csv.read_csv(target)["n_2d"].to_pylist() == [2, 1, 1]


def test_no_command_and_missing_options(capsys):
    assert "COMMAND" in fails(capsys)
    assert "--on" in fails(
        capsys, "rolling", "f.csv", "--window", "3", "--agg", "n=count"
    )


def test_interrupted(monkeypatch, capsys):
    def interrupt(options):
        raise KeyboardInterrupt

    monkeypatch.setattr(main, "_explain", interrupt)
    assert run("explain", *ROLL) == 130
    assert capsys.readouterr().err == "slidewise: interrupted\n"


# Other commands


def test_explain(capsys):
    assert run("explain", *ROLL, "--by", "k", "--closed", "left") == 0
    printed = capsys.readouterr().out
    for words in ("one group per k", "[t − 3, t)", "count()", "n_3"):
        assert words in printed
    assert run("explain", "--on", "t", "--window", "9rows", "--agg", "n=count") == 0
    printed = capsys.readouterr().out
    assert "the last 9 rows" in printed
    assert "ids" not in printed.split()
    assert run("explain", *ROLL, "--unique-by", "id") == 0
    assert "ids\n  of rows with equal id, the first to" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("kind", "meant"),
    [("avg", "mean"), ("nunique", "count_distinct"), ("std", "stddev")],
)
def test_kinds_in_words_of_other_libraries(capsys, kind, meant):
    assert run("explain", *ROLL, "--agg", f"a={kind}:x") == 2
    assert f"aggregation {kind!r} (did you mean {meant!r}?)" in capsys.readouterr().err


def test_one_result_is_one(ticks, capsys):
    arguments = ("--on", "t", "--window", "3", "--agg", "n=count")
    assert run("rolling", ticks, *arguments) == 0
    assert "rows × 1 result (n_3)" in capsys.readouterr().err


def test_help_explains_the_third_part_of_an_aggregation(capsys):
    with pytest.raises(SystemExit):
        run("rolling", "--help")
    printed = " ".join(capsys.readouterr().out.split())
    for example in ("who=arg_max:name:price", "p99=quantile:delay:0.99"):
        assert example in printed


def test_explain_states_the_hash(capsys):
    assert run("explain", "--on", "t", "--window", "9", "--agg", "n=count") == 0
    spec = sw.Spec.make(on="t", windows=9, aggs={"n": sw.count()})
    last = capsys.readouterr().out.splitlines()[-2:]
    assert last == [
        f"spec hash {spec.hash[:16]}: a checkpoint of a stream is tied to it, and any",
        "  change to the request changes it",
    ]


def test_explain_looks_at_a_file(tmp_path, capsys):
    source = tmp_path / "trips.parquet"
    pq.write_table(pa.table({"t": [2, 1], "k": ["a", "a"]}), source)
    assert run("explain", source, *ROLL, "--by", "k", "--threads", "2") == 0
    printed = capsys.readouterr().out
    assert "rolling over t: 2 rows, one group per k, not in order" in printed
    assert "2 threads share the keys" in printed


def test_threads_answer_alike(tmp_path, capsys):
    source, target = tmp_path / "in.parquet", tmp_path / "out.parquet"
    table = pa.table({"t": range(1000), "k": [i % 7 for i in range(1000)]})
    pq.write_table(table, source)
    arguments = ("rolling", source, *ROLL, "--by", "k", "-o", target)
    assert run(*arguments, "--threads", "3") == 0
    expected = sw.rolling(table, on="t", by="k", windows=3, aggs={"n": sw.count()})
    assert pq.read_table(target)["n_3"].to_pylist() == expected["n_3"].to_pylist()
    capsys.readouterr()
    for more in (["--threads", "0"], ["--threads", "2", "--memory", "1MB"]):
        assert run(*arguments, *more) == 2
        assert "threads" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["rolling", "hopping", "stream", "explain"])
def test_unknown_options_name_the_help_of_their_command(command, capsys):
    file = [] if command == "stream" else ["ticks.csv"]
    assert run(command, *file, *ROLL, "--windw", "3") == 2
    printed = capsys.readouterr().err
    assert "unrecognized arguments: --windw" in printed
    assert f"(see slidewise {command} --help)" in printed


def test_algorithms(capsys):
    assert run("algorithms") == 0
    printed = capsys.readouterr().out
    assert printed == f"{sw.algorithms()!r}\n"


def test_algorithms_by_name(capsys):
    assert run("algorithms", "daba_lite", "fiba") == 0
    cards = sw.algorithms()
    printed = capsys.readouterr().out
    assert printed == f"{cards['daba_lite']}\n\n{cards['fiba']}\n"
    assert run("algorithms", "fibs") == 2
    assert "unknown algorithm 'fibs'; there are fiba, " in capsys.readouterr().err


def test_help_names_every_command(capsys):
    with pytest.raises(SystemExit) as left:
        run("--help")
    assert left.value.code == 0
    printed = capsys.readouterr().out
    for command in ("rolling", "stream", "explain", "algorithms"):
        assert re.search(rf"^    {command}\b", printed, re.MULTILINE)


def test_the_installed_command(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "slidewise", "--version"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert re.fullmatch(r"slidewise \d+\.\d+\.\d+\S*\n", done.stdout)


def test_the_command_without_rich_names_the_extra(tmp_path):
    (tmp_path / "rich.py").write_text("raise ModuleNotFoundError(name='rich')")
    done = subprocess.run(
        [sys.executable, "-m", "slidewise", "--version"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])},
    )
    assert done.returncode == 2
    message = "the command needs rich: pip install 'slidewise[cli]'"
    assert done.stderr == f"slidewise: error: {message}\n"


def test_answers_that_overflow(tmp_path, capsys):
    source, target = tmp_path / "large.csv", tmp_path / "out.csv"
    source.write_text(f"t,x\n1,{2**62}\n2,{2**62}\n")
    arguments = ["--on", "t", "--window", "5", "--agg", "s=sum:x", "--quiet"]
    assert run("rolling", source, *arguments, "-o", target) == 2
    assert "or give --overflow null" in capsys.readouterr().err
    options = ["--overflow", "null", "-o", target]
    assert run("rolling", source, *arguments, *options) == 0
    assert target.read_text().splitlines()[1:] == [f"1,{2**62},{2**62}", f"2,{2**62},"]


def test_a_misspelt_aggregation_gets_a_hint(tmp_path, capsys):
    file = tmp_path / "rows.csv"
    file.write_text("t\n1\n")
    given = ["--on", "t", "--window", "3", "--agg", "n=cout"]
    assert main.main(["rolling", str(file), *given]) == 2
    assert "did you mean 'count'?" in capsys.readouterr().err


@pytest.mark.parametrize("output", ["nowhere/out.csv", "out.xyz", "out.csv.gz"])
def test_outputs_are_checked_before_the_input_is_read(tmp_path, capsys, output):
    missing = tmp_path / "there-is-no-such.csv"
    given = [str(missing), *ROLL, "-o", str(tmp_path / output)]
    assert main.main(["rolling", *given]) == 2
    assert "there-is-no-such" not in capsys.readouterr().err
