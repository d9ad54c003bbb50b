"""Documents about an audit: the report, the case file, and what they share."""
