"""Looking ahead: courses of action played on likely futures of a cluster, and the strategy that
takes the best.

The way from a decision to a played course:

1. `strategy.Foresight.decide` is given a View with `futures`, and asks for ways in which the
   cluster may continue.
2. In simulation these come from the simulated cluster itself (`futures.SampledFutures`). In a
   real run `live.Ahead` reads the queue through the twin and makes a cluster of it, in which own
   jobs are clients (`sim.Cluster.of_queue`).
3. What is known of others is a `past.QueuePast`: the log up to now, or what was seen of the live
   queue. That is kept by `observed`, read by `observer`, stored by `observed_file`; less than a day
   of it is stretched by `bootstrap`.
4. `courses.Courses` makes the courses that are open: jobs to submit now, and a simple way to
   continue (`course.Course`).
5. For each future the cluster is cloned, with run times of others drawn from the past and past days
   arriving again (`past`); own tasks err as they did so far (`task_errors`).
6. `futures.SampledFutures.play` fills tables and calls one kernel, which plays the course to the
   end of the workflow.
7. `strategy` keeps the best third, continues with more futures, and submits the jobs of the best
   course of all.
"""
