"""Files of runs at several sites: which site has which (`catalogue`), and how they get there
(`mirror`, `rsync`)."""
