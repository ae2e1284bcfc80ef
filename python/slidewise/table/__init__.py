"""Windows over tables: rolling and hopping, by one call of the native kernel."""
