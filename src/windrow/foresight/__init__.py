"""Looking ahead: courses of action played on likely futures of a cluster, and the strategy that takes the best."""
