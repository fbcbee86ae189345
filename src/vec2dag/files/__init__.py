"""Tables and graphs in files."""
