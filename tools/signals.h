/* Signals that end a command cleanly. */
#ifndef REEF_TOOLS_SIGNALS_H
#define REEF_TOOLS_SIGNALS_H

#include <signal.h>

/* Becomes non-zero when one of them has come. */
extern volatile sig_atomic_t stop_wanted;

/* From now on SIGINT, SIGTERM and SIGHUP only set stop_wanted; each one's second time ends the process at once. What is ignored stays
 * so (nohup). */
void stop_on_signals(void);
/* At the start: writing beyond the limit of a file's size is an error and no signal; and a standard stream that is closed is put where
 * nothing can be written, or the next file to be opened would take its number and get what is printed. */
void prepare_process(void);

#endif
