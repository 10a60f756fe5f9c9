"""What a run was: figures, pictures, explanations, pages."""
