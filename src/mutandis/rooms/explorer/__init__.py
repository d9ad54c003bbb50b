"""The explorer: a local web application on an audit."""
