"""How each program is built: what it is made of, and what two programs have in common."""
