"""The edges: writing results to files."""

from mutandis.io.csv_files import write_csv

__all__ = ["write_csv"]
