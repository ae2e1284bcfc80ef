"""Names of columns as Spark resolves them: without case, and fields of structs.

All other modules, and workers, know a column by its exact name. So a column that a call
names otherwise gets the name of the call, and a field becomes a column. The results
have the names of the DataFrame again.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pyspark.sql.types import StructType

from slidewise.errors import SpecError
from slidewise.spark.columns import column

__all__ = ["Named", "keeps_case", "named"]


@dataclass(frozen=True, slots=True)
class Named:
    """A DataFrame whose columns have the names of a call.

    Attributes:
        df: The DataFrame.
        own: The own names of columns that the call names otherwise.
        fields: The columns that are fields of structs.
    """

    df: Any
    own: dict[str, str]
    fields: tuple[str, ...]

    def restored(self, results: Any) -> Any:
        """The results with the DataFrame's own names, and without its fields."""
        if not self.own and not self.fields:
            return results
        names = results.columns
        # Results per window or key have the keys alone, which may be fields.
        dropped = self.fields if set(self.df.columns) <= set(names) else ()
        return results.select(
            [
                column(name).alias(self.own.get(name, name))
                for name in names
                if name not in dropped
            ]
        )


def keeps_case(df: Any) -> bool:
    """Whether names that differ in case are different to the session."""
    setting = df.sparkSession.conf.get("spark.sql.caseSensitive", "false")
    return str(setting).lower() == "true"


def named(df: Any, names: Iterable[str]) -> Named:
    """Gives columns the names of a call; names of no column stay for the checks."""
    names = [*dict.fromkeys(names)]
    missing = [name for name in names if name not in df.columns]
    if not missing:
        return Named(df, {}, ())
    exact = keeps_case(df)
    paths = {name: _path(df.schema, name.split("."), exact) for name in missing}
    own: dict[str, str] = {}
    for name, path in paths.items():
        if path is None or len(path) > 1:
            continue
        others = [other for other in (*names, *own) if own.get(other, other) == path[0]]
        if others:
            raise SpecError(
                f"the column {path[0]!r} is named {others[0]!r} and {name!r}: name it "
                "in one way"
            )
        own[name] = path[0]
    new = {given: name for name, given in own.items()}
    columns = [column(name).alias(new.get(name, name)) for name in df.columns]
    fields = {name: path for name, path in paths.items() if path and len(path) > 1}
    for name, (first, *rest) in fields.items():
        field = column(first)
        for part in rest:
            field = field.getField(part)
        columns.append(field.alias(name))
    return Named(df.select(columns), own, tuple(fields))


def _path(kind: StructType, parts: list[str], exact: bool) -> list[str] | None:
    """The names of a column, and of fields within it; None without one, or several."""
    for end in range(len(parts), 0, -1):
        name, rest = ".".join(parts[:end]), parts[end:]
        found = [
            field
            for field in kind
            if field.name == name or (not exact and field.name.lower() == name.lower())
        ]
        if len(found) != 1:
            continue
        (field,) = found
        if not rest:
            return [field.name]
        if isinstance(field.dataType, StructType):
            within = _path(field.dataType, rest, exact)
            if within is not None:
                return [field.name, *within]
    return None
