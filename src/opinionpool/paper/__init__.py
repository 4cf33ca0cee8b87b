"""The paper reproduced, claim by claim; only the command ``paper`` imports it."""
