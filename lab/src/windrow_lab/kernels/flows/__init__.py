"""Jobs that move data: the wide area shared by all, volumes that take space, and who may start
when."""
