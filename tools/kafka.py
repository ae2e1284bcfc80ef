"""Fetches Apache Kafka and Spark's connector for it into .kafka, for the tests.

    python tools/kafka.py [--once]

Both are jars. Ivy, a part of PySpark, fetches them from its default repository;
IVY_SETTINGS names a file with the settings of another one. The version of the connector
is that of the installed PySpark or, if that is not published yet, the newest earlier
one known to run on it. With --once a failed fetch is not repeated; .kafka/missing has
the reason.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from xml.sax.saxutils import quoteattr

import pyspark

from slidewise.errors import SlidewiseError
from slidewise.spark.jre import java

FOLDER = Path(__file__).resolve().parent.parent / ".kafka"
SECONDS = 75
SLOW = f"not there within {SECONDS} seconds"

BROKER = "4.3.1"
# The connector and its library of tokens, which have separate releases.
CONNECTORS = ((pyspark.__version__, pyspark.__version__), ("4.2.0", "4.0.0"))

# Modules that Spark already contains.
OWN = ("org.apache.hadoop", "org.scala-lang", "org.slf4j", "at.yawk.lz4")
OWN_MODULES = ("snappy-java", "zstd-jni", "spark-tags_2.13")


def module(connector: str, tokens: str) -> str:
    """The file for Ivy that names the jars."""
    spark = "org.apache.spark"
    excluded = [f"<exclude org={quoteattr(name)}/>" for name in OWN]
    excluded += [f"<exclude module={quoteattr(name)}/>" for name in OWN_MODULES]
    return f"""\
<ivy-module version="2.0">
  <info organisation="slidewise" module="kafka"/>
  <configurations><conf name="connector"/><conf name="broker"/></configurations>
  <dependencies>
    <dependency org="{spark}" name="spark-sql-kafka-0-10_2.13" rev="{connector}"
                conf="connector->default">
      {"".join(excluded)}
    </dependency>
    <dependency org="org.apache.kafka" name="kafka_2.13" rev="{BROKER}"
                conf="broker->default"/>
    <override org="{spark}" module="spark-token-provider-kafka-0-10_2.13"
              rev="{tokens}"/>
  </dependencies>
</ivy-module>
"""


def fetch(into: Path, connector: str, tokens: str) -> str | None:
    """Puts the jars into a folder; returns an error message, or None."""
    jars = Path(pyspark.__file__).parent / "jars"
    ivy = next(jars.glob("ivy-*.jar"))
    wanted = into / "ivy.xml"
    wanted.write_text(module(connector, tokens), encoding="utf-8")
    command = [java(), "-cp", str(ivy), "org.apache.ivy.Main"]
    if settings := os.environ.get("IVY_SETTINGS"):
        command += ["-settings", settings]
    command += ["-cache", str(into / "cache"), "-ivy", str(wanted), "-mode", "default"]
    command += ["-retrieve", str(into / "[conf]" / "[artifact]-[revision].[ext]")]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return SLOW
    lines = (done.stdout + done.stderr).splitlines()
    lost = [line.strip() for line in lines if line.strip().endswith(": not found")]
    if done.returncode or lost or not list(into.glob("broker/kafka_2.13-*.jar")):
        return "; ".join(line.lstrip(": ") for line in lost) or "Ivy failed"
    return None


def main() -> int:
    """Fetches the jars unless all are there."""
    if (FOLDER / "broker").is_dir():
        return 0
    missing = FOLDER / "missing"
    if "--once" in sys.argv and missing.exists():
        return 0
    partial = FOLDER / "partial"
    reasons = []
    for connector, tokens in CONNECTORS:
        shutil.rmtree(partial / "connector", ignore_errors=True)
        partial.mkdir(parents=True, exist_ok=True)
        try:
            wrong = fetch(partial, connector, tokens)
        except SlidewiseError as error:
            wrong = str(error)
        if wrong is None:
            for name in ("connector", "broker"):
                (partial / name).replace(FOLDER / name)
            shutil.rmtree(partial)
            missing.unlink(missing_ok=True)
            print(f"Kafka {BROKER} and Spark's connector {connector} are in .kafka")
            return 0
        reasons.append(wrong)
        if wrong == SLOW:
            break
    shutil.rmtree(partial)
    missing.write_text("; ".join(reasons) + "\n", encoding="utf-8")
    print(f"Kafka was not fetched: {'; '.join(reasons)}", file=sys.stderr)
    return 0 if "--once" in sys.argv else 1


if __name__ == "__main__":
    sys.exit(main())
