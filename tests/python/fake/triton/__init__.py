"""Stands for Triton 3.6: its knobs, and as much of its compiler as calls the hook."""
