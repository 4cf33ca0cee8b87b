"""Beliefs moved by outcomes: the default pool, crowds, class weights (model.md, sections 2.6, 2.7 and 3)."""
