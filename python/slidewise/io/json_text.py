"""Objects of JSON, one per line or in one array, as tables of one schema.

pyarrow reads the text in blocks; here the types of all blocks are brought together. It
takes integers beyond int64 for floats: the columns that may hold one are parsed once
more, by Python, which keeps the digits.
"""

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.json as pa_json

from slidewise.errors import Argument, SpecError
from slidewise.io.exact_integers import ExactIntegers, has_large

__all__ = ["JsonText", "is_array", "lines_of_array"]

_BOM = b"\xef\xbb\xbf"
_SPACE = re.compile(r"[ \t\r\n]*")
_CHANGED = re.compile(r"Column\(/(.*?)\) changed from (\w+) to (\w+)")
_INT64 = range(-(2**63), 2**63)


class _Number(str):
    """A number as it is written."""

    __slots__ = ()


_VALUES = json.JSONDecoder()
_NUMBERS = json.JSONDecoder(
    parse_int=_Number, parse_float=_Number, parse_constant=_Number
)


class JsonText:
    """Objects, one per line.

    Args:
        open_text: Opens the text, in UTF-8.
        by: The keys: their integers beyond 64 bits are text.
        times: The columns of times, whose text stays text, as that of keys.
        text: The columns to read as text, numbers as they are written.
        block_size: How many bytes to read at a time.
        keep: Whether to hold the rows in memory, so as to read them once.

    Example:
        >>> lines = b'{"k": 18446744073709551616, "x": 1}'
        >>> text = JsonText(lambda: pa.BufferReader(lines), by=["k"])
        >>> next(text.tables()).to_pydict()
        {'k': ['18446744073709551616'], 'x': [1]}
    """

    def __init__(
        self,
        open_text: Callable[[], Any],
        *,
        by: Collection[str] = (),
        times: Collection[str] = (),
        text: Collection[str] = (),
        block_size: int = 1 << 23,
        keep: bool = False,
    ) -> None:
        self._open_text = open_text
        self._by = by
        self._block_size = block_size
        self._stay_text = {*by, *times}
        # The columns whose numbers are text, and the types that are known.
        self._quoted = set(text)
        self._types: dict[str, pa.DataType] = dict.fromkeys(text, pa.string())
        self._kept: list[pa.Table] = []
        self.schema = self._read_schema(keep)

    def tables(self) -> Iterator[pa.Table]:
        """The rows, in tables of the schema."""
        if self._kept:
            yield from (_filled(table, self.schema) for table in self._kept)
            return
        for block in self._blocks():
            types = dict(zip(self.schema.names, self.schema.types, strict=True))
            yield self._parse(block, types)

    def _read_schema(self, keep: bool) -> pa.Schema:
        """The types that all rows have, found by reading them."""
        found: dict[str, pa.DataType] = {}
        large: set[str] = set()
        for block in self._blocks():
            if not found:  # given types would come first
                names = self._parse(block, {}).column_names
                found = dict.fromkeys(names, pa.null())
            table = self._read(block)
            for name, column in zip(table.column_names, table.columns, strict=True):
                if name not in found and column.null_count == len(column):
                    continue  # a given type makes a column that is not there
                held = found.get(name, pa.null())
                found[name] = _common(name, held, column.type)
                if name not in large and has_large(column):
                    large.add(name)
            if keep:
                self._kept.append(table)
        # Numbers that are large are rounded only where they are floats.
        rounded = [name for name in found if name in large and _has_floats(found[name])]
        found |= self._exact_types(rounded, found)
        schema = pa.schema(list(found.items()))
        if not all(_is_part(table.schema, schema) for table in self._kept):
            self._kept = []
        return schema

    def _read(self, block: bytes) -> pa.Table:
        table = self._parse(block, self._types)
        dates = [
            name
            for name in self._stay_text.intersection(table.column_names)
            if pa.types.is_timestamp(table.schema.field(name).type)
        ]
        if not dates:
            return table
        self._types |= dict.fromkeys(dates, pa.string())
        return self._parse(block, self._types)

    def _parse(self, block: bytes, types: Mapping[str, pa.DataType]) -> pa.Table:
        if self._quoted:
            block = _with_quotes(block.decode(), self._quoted)
        parse = pa_json.ParseOptions(explicit_schema=pa.schema(list(types.items())))
        read = pa_json.ReadOptions(block_size=len(block) + 1)
        try:
            table = pa_json.read_json(
                pa.BufferReader(block), read_options=read, parse_options=parse
            )
        except pa.ArrowInvalid as error:
            raise _mixed(str(error)) or error from None
        table.validate(full=True)  # that text is UTF-8
        return table

    def _blocks(self) -> Iterator[bytes]:
        """The text in parts that end with a line."""
        with self._open_text() as stream:
            start = stream.read(len(_BOM))
            if not start:
                raise pa.ArrowInvalid("the file is empty")
            rest = start.removeprefix(_BOM)
            while read := stream.read(self._block_size):
                lines, end, read = read.rpartition(b"\n")
                if end and (block := rest + lines).strip():
                    yield block + end
                rest = read if end else rest + read
        if rest.strip():
            yield rest

    def _exact_types(
        self, names: list[str], found: dict[str, pa.DataType]
    ) -> dict[str, pa.DataType]:
        """The types of columns that hold integers which floats would round."""
        if not names:
            return {}
        checks = {name: ExactIntegers(name, is_key=name in self._by) for name in names}
        row = 0
        for block in self._blocks():
            objects = list(_objects(block.decode(), _NUMBERS))
            for name, check in checks.items():
                values = [one.get(name) for one in objects]
                if pa.types.is_nested(found[name]):
                    _refuse_large_inside(name, values, row)
                else:
                    check.add(pa.array(values, pa.string()))
            row += len(objects)
        flat = [one for one in names if not pa.types.is_nested(found[one])]
        types = {name: checks[name].type for name in flat}
        self._quoted |= {name for name in flat if types[name] == pa.string()}
        return types


def is_array(start: bytes) -> bool:
    """Whether a text that starts like this is one array, not objects in lines."""
    return start.removeprefix(_BOM).lstrip().startswith(b"[")


def lines_of_array(text: bytes) -> bytes:
    r"""The objects of an array, one per line.

    Raises:
        pyarrow.ArrowInvalid: If it holds something else.
        json.JSONDecodeError: If it is no JSON.

    Example:
        >>> lines_of_array(b'[{"x": 1},\n {"x": 2.50}]')
        b'{"x": 1}\n{"x": 2.50}\n'
    """
    whole = text.decode("utf-8-sig")
    place = _skip(whole, _skip(whole, 0) + 1)
    lines = []
    separator = "," if whole[place : place + 1] != "]" else "]"
    while separator == ",":
        value, end = _NUMBERS.raw_decode(whole, place)
        if not isinstance(value, dict):
            raise pa.ArrowInvalid("the array holds something else than objects")
        lines.append(whole[place:end].replace("\r", " ").replace("\n", " "))
        end = _skip(whole, end)
        separator, place = whole[end : end + 1], _skip(whole, end + 1)
        if separator not in (",", "]"):
            raise json.JSONDecodeError("Expecting ',' delimiter", whole, end)
    if separator == "]" and lines and place < len(whole):
        raise json.JSONDecodeError("Extra data", whole, place)
    return ("\n".join(lines) + "\n").encode()


def _skip(text: str, place: int) -> int:
    """The place of the next character that is no space."""
    found = _SPACE.match(text, place)
    return place if found is None else found.end()


def _objects(text: str, decoder: json.JSONDecoder) -> Iterator[dict[str, Any]]:
    """The objects of a text, one after another."""
    place = _skip(text, 0)
    while place < len(text):
        value, end = decoder.raw_decode(text, place)
        yield value
        place = _skip(text, end)


def _with_quotes(text: str, names: set[str]) -> bytes:
    """Lines in which the values of some columns are text."""
    lines = []
    both = zip(_objects(text, _VALUES), _objects(text, _NUMBERS), strict=True)
    for values, numbers in both:
        for name in names & values.keys():
            held = numbers[name]
            if held is not None and not isinstance(held, str):
                held = json.dumps(values[name])
            values[name] = held
        lines.append(json.dumps(values))
    return "\n".join([*lines, ""]).encode()


def _common(name: str, one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """The type of a column that has one type in some rows and another in others."""
    if one == other or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    if {one, other} == {pa.int64(), pa.float64()}:
        return pa.float64()
    if _is_text(one) and _is_text(other):
        return pa.string()
    if pa.types.is_list(one) and pa.types.is_list(other):
        return pa.list_(_common(name, one.value_type, other.value_type))
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        fields = {field.name: field.type for field in one}
        for field in other:
            known = fields.get(field.name, field.type)
            fields[field.name] = _common(name, known, field.type)
        return pa.struct(list(fields.items()))
    raise _of_two_kinds(name, str(one), str(other))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_timestamp(kind))


def _mixed(message: str) -> SpecError | None:
    """The error of pyarrow about a column of two kinds, if it is one."""
    found = _CHANGED.search(message)
    if found is None:
        return None
    return _of_two_kinds(found[1], found[2], found[3])


def _of_two_kinds(name: str, one: str, other: str) -> SpecError:
    return SpecError(
        f"column {name!r} holds both {one} and {other}: write it alike in all rows, or "
        "read it as text with ",
        Argument("text", name),
    )


def _has_floats(kind: pa.DataType) -> bool:
    inner = [kind.field(place).type for place in range(kind.num_fields)]
    return bool(pa.types.is_floating(kind)) or any(map(_has_floats, inner))


def _refuse_large_inside(name: str, values: list[Any], first: int) -> None:
    """Refuses integers beyond int64 within lists and objects."""
    for row, value in enumerate(values, first):
        for number in _numbers_in(value):
            digits = number.lstrip("-")
            if digits.isdigit() and (len(digits) > 19 or int(number) not in _INT64):
                raise SpecError(
                    f"column {name!r} holds {number} within a value of row {row} "
                    "(counting from 0), which is beyond int64: write it as text"
                )


def _numbers_in(value: Any) -> Iterator[_Number]:
    if isinstance(value, _Number):
        yield value
    elif isinstance(value, list | dict):
        inner = value if isinstance(value, list) else value.values()
        for one in inner:
            yield from _numbers_in(one)


def _is_part(part: pa.Schema, whole: pa.Schema) -> bool:
    """Whether a table of a schema lacks only columns and values of another."""
    return all(
        pa.types.is_null(field.type)
        or field.name not in whole.names  # a given one, in no row
        or field.type == whole.field(field.name).type
        for field in part
    )


def _filled(table: pa.Table, schema: pa.Schema) -> pa.Table:
    columns = [
        table[field.name].cast(field.type)
        if field.name in table.column_names
        else pa.nulls(len(table), field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)
