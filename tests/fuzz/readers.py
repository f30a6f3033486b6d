"""Every reader of the package, by name."""

from fuzz import data_readers, run_readers
from fuzz.harness import Reader

READERS: dict[str, Reader] = {reader.name: reader for reader in (*run_readers.READERS, *data_readers.READERS)}
