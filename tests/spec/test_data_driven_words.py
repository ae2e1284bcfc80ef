"""`until`, `landmark` and `delta` as they are written, named and refused."""

from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import slidewise as sw
from slidewise.spec.spec import Spec

WIDTHS: list[tuple[Any, str]] = [
    (5, "5"),
    (5.0, "5.0"),
    (np.float32(0.5), "0.5"),
    (np.int8(5), "5"),
    (Decimal("0.10"), "0.10"),
    (Fraction(1, 3), "1/3"),
    ("5m", "'5m'"),
    (timedelta(minutes=5), "'5m'"),
    (np.timedelta64(5, "m"), "'5m'"),
]


@pytest.mark.parametrize(("width", "written"), WIDTHS, ids=str)
def test_a_width_is_shown_as_it_was_written(width: Any, written: str) -> None:
    window = sw.delta("km", width)
    assert repr(window) == f"delta('km', {written})"
    assert window == sw.delta("km", width)
    assert hash(window) == hash(sw.delta("km", width))
    spec = Spec.make(on="t", windows=window, aggs={"n": sw.count()})
    assert spec.results == (f"n_delta_km_{written}".replace("'", ""),)
    assert spec.columns == ("t", "km")


NO_WIDTHS: list[tuple[Any, str]] = [
    (0, "width=0 must be a finite number above zero"),
    (-1.5, "width=-1.5 must be a finite number above zero"),
    (float("nan"), "must be a finite number above zero"),
    (float("inf"), "must be a finite number above zero"),
    (Decimal("1E+999999999"), "must be a finite number above zero"),
    ("0s", "width='0s' must be longer than zero"),
    ("1mo", "width='1mo' has no fixed length"),
    (None, "width=None is not a width"),
    (True, "width=True is not a width"),
    (np.bool_(True), "is not a width"),
]


@pytest.mark.parametrize(("width", "message"), NO_WIDTHS, ids=str)
def test_other_widths_are_refused(width: Any, message: str) -> None:
    with pytest.raises(sw.SpecError) as error:
        sw.delta("km", width)
    assert message in str(error.value)


@pytest.mark.parametrize(
    "make", [sw.until, sw.landmark], ids=lambda make: make.__name__
)
def test_a_flag_is_the_name_of_a_column(make: Any) -> None:
    assert repr(make("done")) == f"{make.__name__}('done')"
    assert make("done") == make("done") != make("other")
    assert {make("done"), make("done")} == {make("done")}
    with pytest.raises(sw.SpecError, match="takes the name of a column, got None"):
        make(None)
    assert sw.until("done") != sw.landmark("done")


@pytest.mark.parametrize(
    "window", [sw.landmark("f"), sw.delta("km", 5)], ids=lambda window: repr(window)
)
@pytest.mark.parametrize("name", ["closed", "offset"])
def test_frame_bounds_do_not_apply(window: Any, name: str) -> None:
    given: dict[str, Any] = {name: "left" if name == "closed" else "5m"}
    with pytest.raises(
        sw.SpecError, match=f"{name}=.* does not apply to windows="
    ) as e:
        Spec.make(on="t", windows=[window], aggs={"n": sw.count()}, **given)
    assert repr(window) in str(e.value)


def test_each_word_has_its_call() -> None:
    with pytest.raises(sw.SpecError, match=r"until\('f'\) is a window of hopping"):
        Spec.make(on="t", windows=sw.until("f"), aggs={"n": sw.count()})
    with pytest.raises(sw.SpecError, match=r"landmark\('f'\) is a window of rolling"):
        Spec.make_hopping(on="t", window=sw.landmark("f"), aggs={"n": sw.count()})


def test_hopping_specs_tell_their_slides_apart() -> None:
    def made(**window: Any) -> Spec:
        return Spec.make_hopping(on="t", aggs={"n": sw.count()}, **window)

    specs = [
        made(window="1h"),
        made(window="1h", closed="right"),
        made(window="1h", every=sw.rows(2)),
        made(window="1h", every=sw.rows(3)),
        made(window=sw.rows(2)),
        made(window=sw.until("f")),
        made(window=sw.until("g")),
        made(windows="1h"),
        made(windows=["1h", "2h"]),
    ]
    assert len({spec.hash for spec in specs}) == len(specs) == len(set(specs))
    assert made(window="1h", closed="left") == made(window="1h")
    assert made(windows=["1h", sw.until("f")]).results == (
        "window",
        "window_start",
        "window_end",
        "n",
    )
