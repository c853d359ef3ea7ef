/* Functions of libreef_net, which is loaded when a command needs it. */
#ifndef REEF_TOOLS_NET_H
#define REEF_TOOLS_NET_H

#include <reef/net.h>

/* The function of that name; false with a sentence if the library, or something it needs, is not there. `function` receives a pointer to a
 * function of `size` bytes. */
bool net_find(const char *name, void *function, size_t size, reef_error *error);
#define NET_FIND(name, function, error) net_find((name), &(function), sizeof(function), (error))

/* Exit codes of these commands beside those of all. */
enum { EXIT_KEY = 4, EXIT_DISK = 5 };
int net_exit_code(reef_status status);

/* Says why a command failed, on standard error, in the format of its log. */
void net_failed(const char *name, reef_log_format format, const reef_error *error);

/* The values of --log and --log-level; false: not one of them. */
bool net_log_format(const char *text, reef_log_format *format);
bool net_log_level(const char *text, reef_log_level *level);

/* Prints a line; and likewise to standard error. */
void net_print(void *user, const char *line);
void net_log(void *user, const char *line);

#endif
