"""Python processes of Spark import the installed PySpark, whose bytecode is cached.

Spark puts a zip archive of PySpark first on their path: each process would compile its
modules, and each task would read the directory of the archive.
"""

import sys

sys.path[:] = [path for path in sys.path if not path.endswith("pyspark.zip")]
