"""The files of checkpoints, by the file systems that Spark knows.

```text
metadata                the id of the query
offsets/N, commits/N    micro-batch N: where its sources end, and that it was committed
sources/                what sources remember
state/0/P/V.zip         version V of partition P of the state: after micro-batch V - 1
```

Offsets and commits are logs: a line with their version, then a line of JSON for the
watermark and the settings, then lines of the sources.
"""

import json
from collections.abc import Callable
from typing import Any

from slidewise.errors import SpecError

__all__ = ["Files", "batches_of", "edited"]


class Files:
    """The files of a folder, by paths relative to it.

    Args:
        spark: SparkSession.
        path: The folder, which need not exist.
    """

    def __init__(self, spark: Any, path: str) -> None:
        if not hasattr(spark, "_jsc"):
            raise SpecError(
                "migrate writes files by the JVM of the driver, which Spark Connect "
                "hides: call it in a session that is not of Spark Connect"
            )
        self._jvm, self._conf = spark._jvm, spark._jsc.hadoopConfiguration()
        given = self._jvm.org.apache.hadoop.fs.Path(path)
        self._fs = given.getFileSystem(self._conf)
        self._root = self._fs.makeQualified(given)

    @property
    def path(self) -> str:
        """The folder, with its file system."""
        return str(self._root.toString())

    def _at(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self._root, name)

    def exists(self, name: str | None = None) -> bool:
        """Whether there is a file or folder; by default the folder itself."""
        return bool(self._fs.exists(self._root if name is None else self._at(name)))

    def names(self, folder: str) -> list[str]:
        """The names in a folder; none if it does not exist."""
        if not self.exists(folder):
            return []
        found = self._fs.listStatus(self._at(folder))
        return sorted(str(status.getPath().getName()) for status in found)

    def read(self, name: str) -> str:
        """The text of a file."""
        stream = self._fs.open(self._at(name))
        try:
            return str(
                self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8")
            )
        finally:
            stream.close()

    def write(self, name: str, text: str) -> None:
        """Writes the text of a file."""
        stream = self._fs.create(self._at(name), True)
        try:
            stream.write(bytearray(text, "utf-8"))
        finally:
            stream.close()

    def rename(self, name: str, other: str) -> None:
        """Renames a file."""
        self._require(self._fs.rename(self._at(name), self._at(other)), name)

    def copy(self, other: "Files", name: str) -> None:
        """Copies a file or folder into another folder."""
        copy = self._jvm.org.apache.hadoop.fs.FileUtil.copy
        places = (self._fs, self._at(name), other._fs, other._at(name))
        self._require(copy(*places, False, self._conf), name)

    def move(self, other: "Files") -> None:
        """Renames the folder."""
        self._require(self._fs.rename(self._root, other._root), "")

    def remove(self, name: str | None = None) -> None:
        """Removes a file or folder with what is in it; by default the folder itself."""
        self._fs.delete(self._root if name is None else self._at(name), True)

    def _require(self, done: bool, name: str) -> None:
        """Checks that the file system did what it was told.

        Raises:
            OSError: If it did not.
        """
        if not done:
            raise OSError(f"cannot rename or copy {name!r} in {self.path}")


def batches_of(files: Files, log: str) -> list[int]:
    """The numbers of the micro-batches in a log, `offsets` or `commits`."""
    return sorted(int(name) for name in files.names(log) if name.isdigit())


def edited(entry: str, edit: Callable[[dict[str, Any]], Any]) -> str:
    r"""An entry of a log with other values in its line of JSON.

    Example:
        >>> edited('v1\n{"nextBatchWatermarkMs":0}', lambda own: own | {"more": 1})
        'v1\n{"nextBatchWatermarkMs":0,"more":1}'
    """
    version, values, *rest = entry.split("\n")
    values = json.dumps(edit(json.loads(values)), separators=(",", ":"))
    return "\n".join([version, values, *rest])
