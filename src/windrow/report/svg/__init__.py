"""Pictures as SVG, drawn by hand: axes, plots, bars."""
