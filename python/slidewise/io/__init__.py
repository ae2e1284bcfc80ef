"""Files of tables: readers, writers, and tables larger than memory."""
