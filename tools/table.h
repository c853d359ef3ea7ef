/* The summary of a results folder as a table for the terminal. */
#ifndef REEF_TOOLS_TABLE_H
#define REEF_TOOLS_TABLE_H

/* Nothing if the folder has no summary. */
void print_table(const char *folder);

#endif
