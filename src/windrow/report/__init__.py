"""Pages for people: self-contained HTML with pictures, no script, nothing fetched from anywhere."""
