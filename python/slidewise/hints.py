"""Hints for users of pandas, polars, SQL, Spark and other libraries.

An unknown argument or name raises the same exception as in Python, with a suggestion:
what a word of another library means here (`hint_words`), else the name of which it is a
typing error.
"""

import functools
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType, UnionType
from typing import Any, TypeVar, cast

from slidewise.hint_words import ADVICE, ARGUMENTS, NAMES, WAYS

__all__ = [
    "find_argument",
    "find_typo",
    "readable",
    "suggest_argument",
    "suggest_name",
    "unknown_name_error",
    "with_hints",
]

_Function = TypeVar("_Function", bound=Callable[..., Any])

# The modules before the name of a type, and what `inspect` puts before a variable's.
_MODULES = re.compile(r"\b(?:\w+\.)+(?=\w)|~")

# What calls with one more argument by position mean in other libraries.
_SECOND = {
    "first": "for the first {} values there is sw.first_k('x', {})",
    "last": "for the last {} values there is sw.last_k('x', {})",
}

# Their names.
_NUMBERS = ("count", "k", "limit", "n")


def with_hints(function: _Function) -> _Function:
    """Decorates a function: its `TypeError` for an unknown argument suggests one.

    Example:
        >>> @with_hints
        ... def roll(table, *, on, min_rows=0): ...
        >>> roll([], on="t", min_periods=3)
        Traceback (most recent call last):
        ...
        TypeError: roll() takes no argument 'min_periods': did you mean min_rows=?
    """
    signature = inspect.signature(function)
    parameters = signature.parameters
    leading = [
        name for name, one in parameters.items() if one.kind is not one.KEYWORD_ONLY
    ]
    named = [name for name in parameters if name not in leading]
    caller = function.__name__
    if caller == "__init__":
        caller = function.__qualname__.split(".")[-2]

    @functools.wraps(function)
    def checked(*args: Any, **options: Any) -> Any:
        for name in options:
            if name not in parameters:
                hint = suggest_argument(name, parameters)
                if not hint and caller in _SECOND and name in _NUMBERS:
                    number = options[name]
                    hint = f": {_SECOND[caller].format(number, number)}"
                raise TypeError(f"{caller}() takes no argument {name!r}{hint}")
        if len(args) > len(leading):
            raise TypeError(f"{caller}() {_by_name(caller, leading, named, args)}")
        return function(*args, **options)

    return readable(cast("_Function", checked))


def readable(function: _Function) -> _Function:
    """Decorates a function: `help` shows its types by the names of their aliases.

    Example:
        >>> from slidewise.spec.durations import WindowLike
        >>> @readable
        ... def last(length: WindowLike, keys: Sequence[str]) -> None: ...
        >>> print(inspect.signature(last))
        (length: WindowLike, keys: Sequence[str]) -> None
    """
    given = inspect.signature(function)
    shown = _Readable(
        [*given.parameters.values()], return_annotation=given.return_annotation
    )
    shown.known = inspect.unwrap(function).__globals__
    function.__signature__ = shown  # type: ignore[attr-defined]
    return function


class _Shown(str):
    """The text of an annotation, which `help` shows as it is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class _Readable(inspect.Signature):
    """A signature with annotations by the names of their module's aliases.

    `inspect` writes unions out, with the modules of their types. Made when it is read,
    as most signatures of a process never are.
    """

    known: Mapping[str, Any] | None = None

    @cached_property
    def parameters(self) -> MappingProxyType[str, inspect.Parameter]:
        found = super().parameters
        return MappingProxyType(
            {
                name: each.replace(annotation=self._shown(each.annotation))
                for name, each in found.items()
            }
        )

    @cached_property
    def return_annotation(self) -> Any:
        return self._shown(super().return_annotation)

    @cached_property
    def _aliases(self) -> dict[str, str]:
        """The names of unions by their texts, the longest first."""
        unions = {
            inspect.formatannotation(value): name
            for name, value in (self.known or {}).items()
            if isinstance(value, UnionType)
        }
        return {text: unions[text] for text in sorted(unions, key=len, reverse=True)}

    def _shown(self, annotation: Any) -> Any:
        if isinstance(annotation, _Shown) or annotation is inspect.Parameter.empty:
            return annotation
        is_text = isinstance(annotation, str)
        text = annotation if is_text else inspect.formatannotation(annotation)
        for union, name in self._aliases.items():
            text = text.replace(union, name)
        return _Shown(_MODULES.sub("", text))


def _by_name(
    caller: str, leading: Sequence[str], named: Sequence[str], args: Sequence[Any]
) -> str:
    """The message for more arguments by position than a function takes."""
    known = list(leading)
    if "spec" in known and isinstance(args[known.index("spec")], str):
        known.remove("spec")  # the text is the value of on=
    rest = args[len(known) :]
    if caller in _SECOND and len(rest) == 1:
        return f"takes one column: {_SECOND[caller].format(rest[0], rest[0])}"
    first = " and ".join(name for name in known if name != "self")
    which = f"the arguments after {first}" if first else "its arguments"
    return f"takes {which} by name: {', '.join(_named(rest, named))}"


def _named(values: Sequence[Any], named: Sequence[str]) -> Iterator[str]:
    """Arguments by position, each with the name that it probably means."""
    rest = list(named)
    lengths = next((name for name in rest if name in ("windows", "window")), "")
    for at, value in enumerate(values):
        name = rest[0] if rest else "?"
        if lengths in rest and "aggs" in rest and at:
            name = "aggs" if isinstance(value, Mapping) else lengths
        if name in rest:
            rest.remove(name)
        yield f"{name}={value!r:.60}"


def suggest_argument(name: str, known: Iterable[str]) -> str:
    """The suggestion for an unknown argument, as the end of a message.

    Example:
        >>> suggest_argument("min_periods", ["on", "min_rows"])
        ': did you mean min_rows=?'
        >>> suggest_argument("xyzzy", ["on"])
        ''
    """
    known = list(known)
    word = _word(name)
    same = (one for one in known if _word(one) == word)
    meant = _equivalent(name, known) or next(same, None)
    for one in () if meant else (word, *ARGUMENTS.get(word, ())):
        for needed, advice in ADVICE.get(one, {}).items():
            if needed in known:
                return f": {advice}"
    meant = meant or find_typo(name, known)
    return f": did you mean {meant}=?" if meant else ""


def find_argument(name: str, known: Iterable[str]) -> str | None:
    """The argument that a word of another library or a typing error means, or None.

    Example:
        >>> find_argument("group_by", ["by"]), find_argument("windws", ["windows"])
        ('by', 'windows')
    """
    known = list(known)
    return _equivalent(name, known) or find_typo(name, known)


def _equivalent(name: str, known: Sequence[str]) -> str | None:
    meant = (one for one in ARGUMENTS.get(_word(name), ()) if one in known)
    return next(meant, None)


def suggest_name(
    name: str, names: Iterable[str], shown: Callable[[str], str] = repr
) -> str:
    """The suggestion for an unknown name, as the end of a message.

    Args:
        name: The unknown name.
        names: The known names.
        shown: Writes a known name, which may have arguments: "stddev(ddof=0)".

    Example:
        >>> suggest_name("nunique", ["count_distinct"]), suggest_name("meen", ["mean"])
        (": did you mean 'count_distinct'?", ": did you mean 'mean'?")
        >>> suggest_name("stddev_pop", ["stddev"])
        ": did you mean 'stddev(ddof=0)'?"
    """
    names, word = list(names), _word(name)
    if word in WAYS:
        return f": {WAYS[word]}"
    meant = _meant(word, names) or find_typo(name, names)
    if meant is not None:
        return f": did you mean {shown(meant)}?"
    for start, end, text in _COMPOUND:
        inner = word[len(start) : len(word) - len(end)]
        if word == start + inner + end and (meant := _meant(inner, names)):
            return f": {text.format(shown(meant))}"
    return ""


# Beginnings and ends of words such as nanmean, rolling_std_by and sumIf.
_COMPOUND = (
    ("rolling", "by", "did you mean {}?"),
    ("rolling", "", "did you mean {}?"),
    ("moving", "", "did you mean {}?"),
    ("nan", "", "did you mean {}, with nan='skip'?"),
    ("", "if", "did you mean {}, with where='flag'?"),
)


def _meant(word: str, names: Sequence[str]) -> str | None:
    """The known name that a word means; it may have arguments."""
    meant = NAMES.get(word)
    if meant is not None and meant.partition("(")[0] in names:
        return meant
    return next((known for known in names if _word(known) == word), None)


def _word(name: str) -> str:
    return name.lower().replace("_", "")


def find_typo(name: str, names: Iterable[str]) -> str | None:
    """The name that a word differs from by typing errors only; None if there is none.

    One letter may be wrong, missing, too many or in the place of the next one, from
    eight letters on two. Words of three letters have too many neighbours: there, two
    letters may be exchanged.

    Example:
        >>> find_typo("clsoed", ["closed"]), find_typo("label", ["table"])
        ('closed', None)
    """
    word, found = _word(name), []
    for known in names:
        other = _word(known)
        errors = _typing_errors(word, other)
        allowed = 1 + (min(len(word), len(other)) >= 8)
        short = max(len(word), len(other)) <= 3 and sorted(word) != sorted(other)
        if errors <= allowed and not (short and errors):
            found.append((errors, known))
    return min(found)[1] if found else None


def _typing_errors(word: str, other: str) -> int:
    """The number of letters wrong, missing, too many, or exchanged."""
    if abs(len(word) - len(other)) > 2:
        return 3
    before: list[int] = []
    row = list(range(len(other) + 1))
    for at, letter in enumerate(word, 1):
        older, before, row = before, row, [at]
        for to, wanted in enumerate(other, 1):
            cost = min(before[to] + 1, row[-1] + 1, before[to - 1] + (letter != wanted))
            if at > 1 and to > 1 and (letter, word[at - 2]) == (other[to - 2], wanted):
                cost = min(cost, older[to - 2] + 1)
            row.append(cost)
    return row[-1]


def unknown_name_error(name: str, names: Iterable[str]) -> AttributeError:
    """The exception for an unknown name in `slidewise`.

    Example:
        >>> str(unknown_name_error("std", ["stddev"]))
        "module 'slidewise' has no attribute 'std': did you mean sw.stddev?"
    """
    hint = "" if name.startswith("_") else suggest_name(name, names, "sw.{}".format)
    return AttributeError(f"module 'slidewise' has no attribute {name!r}{hint}")
