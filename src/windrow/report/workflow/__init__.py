"""The page of a workflow: figures, profile, drawing."""
