"""`Features`: several Specs over one stream, each with keys of its own."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any

from slidewise.caching import cached_property
from slidewise.errors import SpecError, describe_value
from slidewise.spec import files
from slidewise.spec.agg_records import refuse_unknown, shorten
from slidewise.spec.arguments import refuse_duplicates
from slidewise.spec.document import VERSION, check_version
from slidewise.spec.naming import in_group
from slidewise.spec.notebook import as_html
from slidewise.spec.spec import Spec, document_of_spec, spec_of_document

__all__ = ["Features", "load_specs", "parts_of"]

# The key of a document that is one of Features.
_KEY = "features"
_TWICE = (
    "the result column {} would occur twice: give the Specs other names, or one of "
    "them names= or prefix="
)


@dataclass(frozen=True, init=False, repr=False)
class Features:
    """Several Specs over one stream, such as one for each kind of key.

    Functions of slidewise take it where they take a `Spec`, and give the results of all
    Specs, in their order. Each result column begins with the name of its Spec, such as
    `card_n_1h`; with `{group}` in the `names=` of a Spec, the name is there instead.

    Raises:
        SpecError: If there is none, one is not a Spec with a window per row, their
            columns of times differ, or two result columns have one name.

    Cost: that of each Spec; functions name how they share work.

    Attributes:
        given: The names and Specs, as the author gave them.

    Example:
        >>> import slidewise as sw
        >>> spent = {"n": sw.count(), "spent": sw.sum("amount")}
        >>> features = sw.Features(
        ...     card=sw.Spec(on="t", by="card", windows=["1h", "1d"], aggs=spent),
        ...     shop=sw.Spec(on="t", by="shop", windows="1h", aggs={"n": sw.count()}))
        >>> features.results
        ('card_n_1h', 'card_spent_1h', 'card_n_1d', 'card_spent_1d', 'shop_n_1h')
        >>> features.on, features.by, features.times, features.columns
        ('t', ('card', 'shop'), ('t',), ('t', 'card', 'amount', 'shop'))
        >>> features["shop"].results, [*features.parts], features.is_hopping
        (('n_1h',), ['card', 'shop'], False)
        >>> features.counts_ticks
        False
        >>> again = sw.Features.from_json(features.to_json())
        >>> again == features, again.hash == features.hash
        (True, True)
        >>> again.canonical() == features.canonical()
        True
    """

    given: tuple[tuple[str, Spec], ...]

    def __init__(self, /, **specs: Spec) -> None:
        """Checks the Specs, which the class documents."""
        object.__setattr__(self, "given", tuple(specs.items()))
        if not specs:
            raise SpecError(
                "Features are empty: give at least one Spec by name, such as "
                "card=sw.Spec(...)"
            )
        for name, spec in specs.items():
            _check(name, spec)
        (first, one), *others = self.given
        for name, spec in others:
            if spec.on != one.on:
                raise SpecError(
                    f"{first}= has on={one.on!r}, and {name}= has on={spec.on!r}: "
                    "Features have one column of times"
                )
        refuse_duplicates(self.results, _TWICE)

    def __getitem__(self, name: str) -> Spec:
        return dict(self.given)[name]

    def __iter__(self) -> Iterator[str]:
        """The names."""
        return iter(self.parts)

    def __repr__(self) -> str:
        parts = [f"{name}={spec!r}" for name, spec in self.given]
        return f"{type(self).__name__}({', '.join(parts)})"

    def _repr_html_(self) -> str:
        return as_html({name: spec.keywords for name, spec in self.given})

    def __getstate__(self) -> dict[str, Any]:
        """The Specs alone, without what was computed of them."""
        return {"given": self.given}

    @cached_property
    def parts(self) -> dict[str, Spec]:
        """The Specs by name, with the names of their result columns."""
        return {
            name: spec.replace(**in_group(spec.names, spec.prefix, name))
            for name, spec in self.given
        }

    @property
    def on(self) -> str:
        """The column of event times."""
        return self.given[0][1].on

    @cached_property
    def by(self) -> tuple[str, ...]:
        """The key columns of all Specs, each once."""
        return _each_once(self, lambda spec: spec.by)

    @cached_property
    def times(self) -> tuple[str, ...]:
        """The columns of times: of events, then of arrival; each once."""
        return _each_once(self, lambda spec: spec.times)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns that they read, each once."""
        return _each_once(self, lambda spec: spec.columns)

    @cached_property
    def results(self) -> tuple[str, ...]:
        """The names of the result columns, Spec by Spec."""
        return tuple(name for spec in self.parts.values() for name in spec.results)

    @property
    def is_hopping(self) -> bool:
        """False: each Spec has a window per row."""
        return False

    @cached_property
    def counts_ticks(self) -> bool:
        """Whether lengths are in the units of integer times."""
        return any(spec.counts_ticks for _, spec in self.given)

    def canonical(self) -> str:
        """The Specs as JSON: equal ones have equal text in every release."""
        specs = [[name, json.loads(spec.canonical())] for name, spec in self.given]
        return json.dumps({_KEY: specs}, sort_keys=True, separators=(",", ":"))

    @cached_property
    def hash(self) -> str:
        """The SHA-256 of `canonical` in hex."""
        return hashlib.sha256(self.canonical().encode()).hexdigest()

    def to_json(self) -> str:
        """The Specs as JSON for people to read and write, which `from_json` reads.

        Raises:
            SpecError: As for `Spec.to_json`.

        Example:
            >>> import slidewise as sw
            >>> spec = sw.Spec(on="t", windows="1h", aggs={"n": sw.count()})
            >>> print(sw.Features(all=spec).to_json(), end="")
            {
              "version": 1,
              "features": {
                "all": {
                  "on": "t",
                  "windows": "1h",
                  "aggs": {
                    "n": {"kind": "count"}
                  }
                }
              }
            }
        """
        return files.to_json(self._document())

    @classmethod
    def from_json(cls, text: str) -> "Features":
        """Reads Features that `to_json` or a person wrote.

        It imports the modules of user-defined aggregations, as `Spec.from_json` does.

        Args:
            text: The JSON.

        Raises:
            SpecError: If the text is not such JSON; the message names the Spec, the key
                and the value.

        Example:
            >>> import slidewise as sw
            >>> sw.Features.from_json('{"features": {"card": {"of": "t"}}}')
            Traceback (most recent call last):
            ...
            slidewise.errors.SpecError: features['card']: unknown key 'of'; ...
        """
        return cls._of_document(files.from_json(text))

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the Specs to a file, which `load` reads.

        Args:
            path: The file: JSON (.json), or YAML (.yaml or .yml), as for `Spec.save`.

        Raises:
            SpecError: If the file has another ending, or as for `to_json`.
            OSError: If the file cannot be written.

        Example:
            >>> import slidewise as sw, tempfile
            >>> spec = sw.Spec(on="t", windows="1h", aggs={"n": sw.count()})
            >>> features = sw.Features(card=spec.replace(by="card"), all=spec)
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     features.save(f"{folder}/features.json")
            ...     sw.Features.load(f"{folder}/features.json") == features
            True
        """
        files.write_document(self._document(), path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> "Features":
        """Reads Features from a file that `save` or a person wrote.

        It imports the modules of user-defined aggregations, as `from_json` does.

        Args:
            path: The file: .json, .yaml or .yml.

        Raises:
            SpecError: If it is not the file of Features; the message names the file,
                the Spec, the key and the value.
            OSError: If the file cannot be read.

        Example:
            >>> import slidewise as sw
            >>> sw.Features.load("features.toml")
            Traceback (most recent call last):
            ...
            slidewise.errors.SpecError: features.toml: the file of a Spec is named ...
        """
        return files.read(path, cls._of_document)

    def _document(self) -> dict[str, Any]:
        specs = {name: document_of_spec(spec) for name, spec in self.given}
        for spec in specs.values():
            del spec["version"]
        return {"version": VERSION, _KEY: specs}

    @classmethod
    def _of_document(cls, document: object) -> "Features":
        if not isinstance(document, Mapping) or _KEY not in document:
            raise SpecError(
                f"Features are a mapping with the key {_KEY!r}; got {shorten(document)}"
            )
        check_version(document.get("version", VERSION))
        refuse_unknown(document, ("version", _KEY), "")
        specs = document[_KEY]
        if not isinstance(specs, Mapping):
            raise SpecError(
                f"{_KEY}={shorten(specs)} is not a mapping from names to Specs"
            )
        made = {}
        for name, given in specs.items():
            try:
                made[name] = spec_of_document(given)
            except SpecError as error:
                raise SpecError(f"{_KEY}[{shorten(name)}]: {error}") from error
        return cls(**made)


def _check(name: str, spec: object) -> None:
    if not isinstance(spec, Spec):
        raise SpecError(f"{name}= takes a Spec, got {describe_value(spec)}")
    if spec.is_hopping:
        raise SpecError(
            f"the windows of {name}= are not one per row, which those of Features "
            "are: give this Spec to hopping by itself"
        )


def _each_once(
    features: Features, names: Callable[[Spec], tuple[str, ...]]
) -> tuple[str, ...]:
    found = (name for _, spec in features.given for name in names(spec))
    return tuple(dict.fromkeys(found))


def parts_of(specs: Spec | Features) -> tuple[Spec, ...]:
    """The Specs of Features, with the names of their results; or the Spec itself."""
    return tuple(specs.parts.values()) if isinstance(specs, Features) else (specs,)


def load_specs(path: str | PathLike[str]) -> Spec | Features:
    """Reads a Spec or Features from a file."""

    def made(document: object) -> Spec | Features:
        if isinstance(document, Mapping) and _KEY in document:
            return Features._of_document(document)
        return spec_of_document(document)

    return files.read(path, made)
