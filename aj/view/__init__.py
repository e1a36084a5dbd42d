"""Values to lines: tables, documents and the words on stderr."""
