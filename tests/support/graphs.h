/* Helpers for tests of graphs. */
#ifndef TESTS_SUPPORT_GRAPHS_H
#define TESTS_SUPPORT_GRAPHS_H

#include <reef/graph.h>

/* Specs of every kind that can be made with any of 12, 24, 60 agents. */
extern const char *const graph_specs[];
extern const ptrdiff_t graph_specs_count;

/* The graph, or a failed test that says why. */
reef_graph *make_graph(const char *spec, ptrdiff_t agents, uint64_t seed);
/* Fails unless the lists are ascending, within range and without repetition. */
void check_graph_form(const reef_graph *graph, const char *what);
/* Fails unless every link has its way back. */
void check_graph_both_ways(const reef_graph *graph, const char *what);
bool same_links(const reef_graph *a, const reef_graph *b);
/* All agents reachable from agent 0 by a plain search, along links and against them. */
bool is_strongly_connected(const reef_graph *graph);
/* Writes text to a new file of that name under the folder for temporary files; path holds 256 bytes. */
void write_temporary(const char *text, char *path);

#endif
