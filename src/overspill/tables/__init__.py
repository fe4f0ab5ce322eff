"""What a table is: where it is in a text, its header, its cells and what they mean. Cards, SQL, engine and viewer ask here."""
