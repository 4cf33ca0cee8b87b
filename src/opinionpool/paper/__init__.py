"""The paper reproduced, claim by claim; nothing imports it but its command."""
