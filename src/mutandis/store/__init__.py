"""Files: audit files, tables, databases, results folders."""
