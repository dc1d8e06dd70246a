"""What a user holds after a fit: models, the path of all sizes, the choice, summaries and plots."""
