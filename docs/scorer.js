// Search shows the second part of the documentation behind the first. `first` is what the first has.
"use strict";

const first = new RegExp(
  "^(index$|start/|commands/|keys/" +
    "|how-to/(run-from-python|write-a-workflow|run-a-workflow|choose-a-strategy|several-clusters)$" +
    "|how-to/(clusters-over-ssh|failing-nodes|space|local-data|shared-inputs|volumes)$" +
    "|how-to/(share-a-pool|python-functions)$" +
    "|reference/(command-line|native-workflows|queues|sites|runs|python|troubleshooting)$)"
);

var Scorer = {
  // (document, title, anchor, description, score, file): what is higher comes first
  score: (found) => found[4] + (first.test(found[0]) ? 1000 : 0),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
