/* The kinds of graphs, in the order in which they are listed. To add one, add a line: REEF_GRAPH(name) stands for the
 * const rfi_graph_kind rfi_graph_name of src/graph/name.c. */

/* fixed */
REEF_GRAPH(complete)
REEF_GRAPH(ring)
REEF_GRAPH(line)
REEF_GRAPH(star)
REEF_GRAPH(grid)
REEF_GRAPH(two_cliques)

/* random */
REEF_GRAPH(erdos_renyi)
REEF_GRAPH(geometric)
REEF_GRAPH(regular)
REEF_GRAPH(watts_strogatz)
REEF_GRAPH(barabasi_albert)

/* from outside */
REEF_GRAPH(file)
