"""The audit: settings, plan, run, results, cases, provenance."""
