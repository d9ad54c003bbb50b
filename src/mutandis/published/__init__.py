"""The EAAMO '23 publication: its quirks, its data, its printed tables."""
