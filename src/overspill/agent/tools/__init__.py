"""What an agent's model may call."""
