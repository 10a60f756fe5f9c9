"""Zhang's thesis, chapter 5: hybrid rescheduling over batch queues, against static and dynamic
ways."""
