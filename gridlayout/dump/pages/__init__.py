"""Output formats of an explanation: text tables, an HTML page, records for JSON."""
