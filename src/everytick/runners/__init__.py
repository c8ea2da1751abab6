"""How one attempt is carried out."""
