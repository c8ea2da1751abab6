"""Pictures: values in, SVG out. Nothing here asks a store or reads a clock."""
