"""The formats of stored state: numbers, the header of bytes, and checks of damage.

```text
magic, 4 bytes | number u16 | zero u16 | crc32 of the body u32 | body
```
"""

import struct
import zlib
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from slidewise.errors import SnapshotError

__all__ = ["BROKEN", "STATE_FORMAT", "Format", "checked_ints"]

# The format of a state, in its directory and in the guard of a checkpoint.
STATE_FORMAT = 1
_HEADER = struct.Struct("<4sHHI")

# Errors that readers of damaged bytes raise.
BROKEN = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    EOFError,
    LookupError,
    OSError,
    RecursionError,
    TypeError,
    ValueError,
    pa.ArrowException,
    struct.error,
)

_INT64 = range(-(2**63), 2**63)


def checked_ints(*numbers: Any) -> int:
    """Checks that all numbers are int64, and returns the first.

    Raises:
        TypeError: If one is not an int.
        ValueError: If one is beyond int64.
    """
    for number in numbers:
        if type(number) is not int:
            raise TypeError(f"{number!r} is not an int")
        if number not in _INT64:
            raise ValueError(f"{number} is beyond int64")
    return int(numbers[0])


@dataclass(frozen=True, slots=True)
class Format:
    """Bytes with a header that names them.

    Attributes:
        magic: The first four bytes.
        number: The number of the format, which a change of it raises.
    """

    magic: bytes
    number: int

    def seal(self, body: bytes) -> tuple[bytes, int]:
        """Puts the header before a body; also returns the checksum of the body."""
        checksum = zlib.crc32(body)
        header = _HEADER.pack(self.magic, self.number, 0, checksum)
        return b"".join((header, body)), checksum

    def is_of(self, blob: memoryview | bytes) -> bool:
        """Whether bytes begin with the magic."""
        return bytes(blob[: len(self.magic)]) == self.magic

    def open(self, blob: memoryview | bytes, name: str) -> tuple[memoryview, int]:
        """Returns the body and its checksum.

        Args:
            blob: The bytes.
            name: What they are, for messages.

        Raises:
            SnapshotError: If they are damaged, or of another format.
        """
        if len(blob) < _HEADER.size or not self.is_of(blob):
            raise SnapshotError(f"{name} is damaged: its header is missing")
        _, number, zero, checksum = _HEADER.unpack_from(blob)
        if number != self.number:
            raise SnapshotError(
                f"{name} is in format {number}, and this version of slidewise reads "
                f"format {self.number}: restore it by the version that wrote it, or "
                "ingest the rows again"
            )
        body = memoryview(blob)[_HEADER.size :]
        if zero or zlib.crc32(body) != checksum:
            raise SnapshotError(f"{name} is damaged: its checksum differs")
        return body, checksum

    @staticmethod
    def size(body: int) -> int:
        """The number of bytes with a body of this many."""
        return _HEADER.size + body
