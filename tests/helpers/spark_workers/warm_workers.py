"""The daemon that forks Spark's Python workers, with their imports done before."""

import pandas  # noqa: F401
import pyarrow.compute  # noqa: F401
import pyspark.worker  # noqa: F401
from pyspark import daemon

import slidewise.spark.batch_worker
import slidewise.spark.operator  # noqa: F401

if __name__ == "__main__":
    daemon.manager()
