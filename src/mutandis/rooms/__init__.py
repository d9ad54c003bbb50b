"""Optional parts of mutandis: the core finds them by name (`mutandis.registry`)."""
