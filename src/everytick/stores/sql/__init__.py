"""What both SQL stores share: statements with named parameters, and rows read by name."""
