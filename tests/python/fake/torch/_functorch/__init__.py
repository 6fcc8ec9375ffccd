"""torch/_functorch of PyTorch 2.11."""
