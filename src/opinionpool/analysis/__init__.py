"""What a fitted pool tells: why an answer, what the panel is worth, whether the model holds."""
