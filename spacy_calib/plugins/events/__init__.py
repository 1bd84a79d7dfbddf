"""Yes-or-no questions about units of a Doc."""
